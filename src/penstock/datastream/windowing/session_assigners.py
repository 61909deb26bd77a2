"""Session windows: they grow while elements keep arriving within a gap, fixed or read from the element."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.serializer import TypeSerializer
from penstock.datastream.windowing.assigner import MergingWindowAssigner, WindowAssigner
from penstock.datastream.windowing.spans import Span, check_positive, span_ms
from penstock.datastream.windowing.time_assigners import check_event_time
from penstock.datastream.windowing.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from penstock.datastream.windowing.trigger import Trigger
from penstock.datastream.windowing.windows import TimeWindow, TimeWindowSerializer


class SessionWindowTimeGapExtractor(ABC):
    """Reads the gap of a session from an element, in milliseconds. A plain function does as well."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap after this element, in milliseconds; it must be positive."""


class _Sessions(MergingWindowAssigner[Any, TimeWindow]):
    """What all four session assigners share: windows that touch or overlap become one."""

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class _EventTimeSessions(_Sessions):
    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class _ProcessingTimeSessions(_Sessions):
    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False


@dataclass(frozen=True)
class EventTimeSessionWindows(_EventTimeSessions):
    """Sessions by event time: a session ends when no element follows within `session_gap` milliseconds.

    A late element may join two sessions into one.
    """

    session_gap: int

    def __post_init__(self) -> None:
        check_positive("EventTimeSessionWindows", "gap", self.session_gap)

    @staticmethod
    def with_gap(size: Span) -> EventTimeSessionWindows:
        """Sessions with a fixed gap.

        >>> from penstock.common import Time
        >>> str(EventTimeSessionWindows.with_gap(Time.seconds(30)))
        'EventTimeSessionWindows(30000)'
        """
        return EventTimeSessionWindows(span_ms("EventTimeSessionWindows", "gap", size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows:
        """Sessions whose gap `extractor` reads from each element."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        check_event_time(self, element, timestamp)
        return [TimeWindow(timestamp, timestamp + self.session_gap)]

    def __str__(self) -> str:
        return f"EventTimeSessionWindows({self.session_gap})"


@dataclass(frozen=True)
class ProcessingTimeSessionWindows(_ProcessingTimeSessions):
    """Sessions by the clock: a session ends when no element is handled within `session_gap` milliseconds."""

    session_gap: int

    def __post_init__(self) -> None:
        check_positive("ProcessingTimeSessionWindows", "gap", self.session_gap)

    @staticmethod
    def with_gap(size: Span) -> ProcessingTimeSessionWindows:
        """Sessions with a fixed gap."""
        return ProcessingTimeSessionWindows(span_ms("ProcessingTimeSessionWindows", "gap", size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Sessions whose gap `extractor` reads from each element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        now = context.get_current_processing_time()
        return [TimeWindow(now, now + self.session_gap)]

    def __str__(self) -> str:
        return f"ProcessingTimeSessionWindows({self.session_gap})"


@dataclass(frozen=True)
class DynamicEventTimeSessionWindows(_EventTimeSessions):
    """Sessions by event time whose gap is read from each element."""

    session_window_time_gap_extractor: SessionWindowTimeGapExtractor

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows:
        """Sessions whose gap `extractor` reads from each element."""
        return DynamicEventTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        check_event_time(self, element, timestamp)
        return [TimeWindow(timestamp, timestamp + _gap(self, self.session_window_time_gap_extractor, element))]

    def __str__(self) -> str:
        return "DynamicEventTimeSessionWindows()"


@dataclass(frozen=True)
class DynamicProcessingTimeSessionWindows(_ProcessingTimeSessions):
    """Sessions by the clock whose gap is read from each element."""

    session_window_time_gap_extractor: SessionWindowTimeGapExtractor

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Sessions whose gap `extractor` reads from each element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        now = context.get_current_processing_time()
        return [TimeWindow(now, now + _gap(self, self.session_window_time_gap_extractor, element))]

    def __str__(self) -> str:
        return "DynamicProcessingTimeSessionWindows()"


def _gap(assigner: object, extractor: Any, element: Any) -> int:
    gap: int = extractor.extract(element) if hasattr(extractor, "extract") else extractor(element)
    if gap <= 0:
        raise InvalidProgramError(
            f"{assigner}: the session gap must be positive, but the extractor returned {gap} for element {element!r}"
        )
    return gap
