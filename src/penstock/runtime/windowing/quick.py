"""The common base of the fast window operators, and when they may be used."""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

from penstock.common.constants import MAX_LONG_VALUE
from penstock.datastream.window import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    Window,
)
from penstock.graph.descriptions import AccumulatorMerge, WindowDescription
from penstock.runtime.batch import Batch
from penstock.runtime.state.table import StateTable
from penstock.runtime.timers import TIMER_TABLE_PREFIX, InternalTimerService, TimerQueue
from penstock.runtime.windowing.accumulation import Accumulation, Merging
from penstock.runtime.windowing.operator import TIMER_SERVICE, WindowOperator

ALIGNED = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingProcessingTimeWindows,
)
SESSIONS = (
    EventTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)


def fires_at_end(description: WindowDescription) -> bool:
    """True for Penstock's own time windows with their default trigger and without an evictor.

    Until such a window ends, elements are added to its panes, and nothing else happens to these. A pane fires once at
    the end, and then again with every late element until it is dropped. Subclasses of these assigners and triggers are
    excluded, because they may behave differently.
    """
    assigner = description.assigner
    if type(assigner) not in (*ALIGNED, *SESSIONS) or description.evictor is not None:
        return False
    return type(description.trigger) is (EventTimeTrigger if assigner.is_event_time() else ProcessingTimeTrigger)


class QuickWindowOperator(WindowOperator):
    """A window operator for descriptions for which `fires_at_end` is True."""

    takes_accumulators = False
    """True if the operator receives accumulators in place of elements."""

    def __init__(self, description: WindowDescription) -> None:
        super().__init__(description)
        self.kept_ms = self.lateness_ms if self.is_event_time else 0
        """How long a pane is kept after the end of its window."""

    def build_accumulation(self) -> Accumulation:
        if not self.takes_accumulators:
            return super().build_accumulation()
        merge = cast(AccumulatorMerge, self.description.merge)
        return Merging(self.description.aggregate_function, merge, self.context.copied)

    def open_timers(self) -> InternalTimerService:
        service = super().open_timers()
        domain = "event-time" if self.is_event_time else "processing-time"
        self.queue = self.make_queue(self.backend.table(f"{TIMER_TABLE_PREFIX}{TIMER_SERVICE}/{domain}"))
        if self.is_event_time:
            service.event_time = self.queue
        else:
            service.processing_time = self.queue
        return service

    @abstractmethod
    def make_queue(self, table: StateTable) -> TimerQueue:
        """The queue of timers for the time domain of the windows. Many timers of it fire at a time."""

    def process_elements(self, batch: Batch) -> None:
        if self.is_event_time and (batch.timestamps is None or None in batch.timestamps):
            super().process_elements(batch)  # Fails with an error that names the element without an event time.
        else:
            self.process_quickly(batch)

    @abstractmethod
    def process_quickly(self, batch: Batch) -> None:
        """Process a batch whose elements have all the timestamps they need."""

    def timer_times(self, window: Window) -> tuple[int, ...]:
        """When the timers of a pane fire: at the end of its window and, if that is later, at its cleanup time."""
        end = window.max_timestamp()
        if not self.kept_ms or end + self.kept_ms >= MAX_LONG_VALUE:
            return (end,)
        return end, end + self.kept_ms
