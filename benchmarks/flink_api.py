"""The DataStream API that a benchmark runs on: Penstock's, or PyFlink's if BENCH_PACKAGE=pyflink."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

PACKAGE = os.environ.get("BENCH_PACKAGE", "penstock")

if TYPE_CHECKING or PACKAGE == "penstock":
    from penstock.common import Configuration, Duration, Encoder, Row, Time, Types, WatermarkStrategy
    from penstock.common.watermark_strategy import TimestampAssigner
    from penstock.datastream import (
        AggregateFunction,
        DataStream,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        ProcessWindowFunction,
        RuntimeContext,
        StreamExecutionEnvironment,
    )
    from penstock.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
    from penstock.datastream.connectors.number_seq import NumberSequenceSource
    from penstock.datastream.functions import ProcessAllWindowFunction
    from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
    from penstock.datastream.window import (
        EventTimeSessionWindows,
        SlidingEventTimeWindows,
        TimeWindow,
        Trigger,
        TriggerResult,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
    )
elif PACKAGE == "pyflink":
    from pyflink.common import Configuration, Duration, Encoder, Row, Time, Types, WatermarkStrategy
    from pyflink.common.watermark_strategy import TimestampAssigner
    from pyflink.datastream import (
        AggregateFunction,
        DataStream,
        KeyedBroadcastProcessFunction,
        KeyedCoProcessFunction,
        KeyedProcessFunction,
        ProcessWindowFunction,
        RuntimeContext,
        StreamExecutionEnvironment,
    )
    from pyflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
    from pyflink.datastream.connectors.number_seq import NumberSequenceSource
    from pyflink.datastream.functions import ProcessAllWindowFunction
    from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
    from pyflink.datastream.window import (
        EventTimeSessionWindows,
        SlidingEventTimeWindows,
        TimeWindow,
        Trigger,
        TriggerResult,
        TumblingEventTimeWindows,
        TumblingProcessingTimeWindows,
    )
else:
    raise ImportError(f"BENCH_PACKAGE is {PACKAGE!r}; it must be penstock or pyflink")

__all__ = [
    "AggregateFunction",
    "Configuration",
    "DataStream",
    "Duration",
    "Encoder",
    "EventTimeSessionWindows",
    "FileSink",
    "FileSource",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "ListStateDescriptor",
    "MapStateDescriptor",
    "NumberSequenceSource",
    "PACKAGE",
    "ProcessAllWindowFunction",
    "ProcessWindowFunction",
    "Row",
    "RuntimeContext",
    "SlidingEventTimeWindows",
    "StreamExecutionEnvironment",
    "StreamFormat",
    "Time",
    "TimeWindow",
    "TimestampAssigner",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Types",
    "ValueStateDescriptor",
    "WatermarkStrategy",
]
