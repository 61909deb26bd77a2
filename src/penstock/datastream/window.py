"""Windows, window assigners, triggers and evictors, under the names PyFlink's users know."""

from __future__ import annotations

from penstock.common.time import Time
from penstock.datastream.windowing.assigner import MergingWindowAssigner, WindowAssigner
from penstock.datastream.windowing.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner
from penstock.datastream.windowing.element_triggers import CountTrigger, DeltaFunction, DeltaTrigger
from penstock.datastream.windowing.evictors import (
    CountEvictor,
    DeltaEvictor,
    Evictor,
    TimeEvictor,
    TimestampedValue,
)
from penstock.datastream.windowing.global_windows import EndOfStreamTrigger, GlobalWindows, NeverTrigger
from penstock.datastream.windowing.nested_triggers import ProcessingTimeoutTrigger, PurgingTrigger
from penstock.datastream.windowing.session_assigners import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from penstock.datastream.windowing.stagger import WindowStagger
from penstock.datastream.windowing.time_assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.datastream.windowing.time_triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    EventTimeTrigger,
    ProcessingTimeTrigger,
)
from penstock.datastream.windowing.trigger import Trigger, TriggerResult
from penstock.datastream.windowing.windows import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
    Window,
)

__all__ = [
    "Time",
    "Window",
    "TimeWindow",
    "CountWindow",
    "GlobalWindow",
    "WindowAssigner",
    "MergingWindowAssigner",
    "TumblingProcessingTimeWindows",
    "TumblingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "SlidingEventTimeWindows",
    "ProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "DynamicEventTimeSessionWindows",
    "SessionWindowTimeGapExtractor",
    "WindowStagger",
    "GlobalWindows",
    "CountTumblingWindowAssigner",
    "CountSlidingWindowAssigner",
    "TriggerResult",
    "Trigger",
    "EventTimeTrigger",
    "ProcessingTimeTrigger",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountTrigger",
    "DeltaFunction",
    "DeltaTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "NeverTrigger",
    "EndOfStreamTrigger",
    "Evictor",
    "CountEvictor",
    "TimeEvictor",
    "DeltaEvictor",
    "TimestampedValue",
    "TimeWindowSerializer",
    "CountWindowSerializer",
    "GlobalWindowSerializer",
]
