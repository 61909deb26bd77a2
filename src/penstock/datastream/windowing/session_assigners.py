"""Session windows: they grow while elements keep arriving within a gap, fixed or read from the element."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.windowing.assigner import MergingWindowAssigner, WindowAssigner
from penstock.datastream.windowing.spans import Span, check_positive, span_ms
from penstock.datastream.windowing.time_assigners import InTime
from penstock.datastream.windowing.time_domains import EVENT_TIME, PROCESSING_TIME
from penstock.datastream.windowing.windows import TimeWindow, within_time


class SessionWindowTimeGapExtractor(ABC):
    """Reads the gap of a session from an element, in milliseconds. A plain function works, too.

    >>> class GapOfUser(SessionWindowTimeGapExtractor):
    ...     def extract(self, element):
    ...         return 60_000 if element["user"] == "robot" else 1_800_000
    >>> EventTimeSessionWindows.with_dynamic_gap(GapOfUser()).gap_of({"user": "robot"})
    60000
    """

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap after this element, in milliseconds; it must be positive."""


class _Sessions(InTime, MergingWindowAssigner[Any, TimeWindow]):
    """What all four session assigners share: windows that touch or overlap become one."""

    @abstractmethod
    def gap_of(self, element: Any) -> int:
        """How long after this element its session ends, in milliseconds."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        start = self.time.time_of(self, element, timestamp, context)
        return [TimeWindow(*within_time(start, start + self.gap_of(element)))]

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        TimeWindow.merge_windows(windows, callback)


@dataclass(frozen=True)
class _FixedGap(_Sessions):
    session_gap: int

    def __post_init__(self) -> None:
        check_positive(type(self).__name__, "gap", self.session_gap)

    def gap_of(self, element: Any) -> int:
        return self.session_gap

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


@dataclass(frozen=True)
class _GapOfElement(_Sessions):
    session_window_time_gap_extractor: SessionWindowTimeGapExtractor

    def gap_of(self, element: Any) -> int:
        extractor: Any = self.session_window_time_gap_extractor
        gap: int = extractor.extract(element) if hasattr(extractor, "extract") else extractor(element)
        if gap <= 0:
            raise InvalidProgramError(
                f"{self}: the session gap must be positive, but the extractor returned {gap} for element {element!r}"
            )
        return gap

    def __str__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True)
class EventTimeSessionWindows(_FixedGap):
    """Sessions by event time: a session ends when no element follows within `session_gap` milliseconds.

    A late element may join two sessions into one.

    >>> from penstock.common import Time
    >>> from penstock.testing import OperatorHarness
    >>> sessions = EventTimeSessionWindows.with_gap(Time.seconds(30))
    >>> harness = OperatorHarness.of(lambda stream: stream.key_by(lambda pair: pair[0]).window(sessions).sum(1))
    >>> _ = harness.element(("a", 1), at=0).element(("a", 2), at=50_000).element(("a", 4), at=25_000)
    >>> harness.watermark(80_000).output
    [('a', 7)]
    """

    time = EVENT_TIME

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


@dataclass(frozen=True)
class ProcessingTimeSessionWindows(_FixedGap):
    """Sessions by the clock: a session ends when no element is handled within `session_gap` milliseconds.

    >>> from penstock.common import Time
    >>> str(ProcessingTimeSessionWindows.with_gap(Time.seconds(30)))
    'ProcessingTimeSessionWindows(30000)'
    """

    time = PROCESSING_TIME

    @staticmethod
    def with_gap(size: Span) -> ProcessingTimeSessionWindows:
        """Sessions with a fixed gap."""
        return ProcessingTimeSessionWindows(span_ms("ProcessingTimeSessionWindows", "gap", size))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Sessions whose gap `extractor` reads from each element."""
        return DynamicProcessingTimeSessionWindows(extractor)


@dataclass(frozen=True)
class DynamicEventTimeSessionWindows(_GapOfElement):
    """Sessions by event time whose gap is read from each element.

    `SessionWindowTimeGapExtractor` has an example.
    """

    time = EVENT_TIME

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows:
        """Sessions whose gap `extractor` reads from each element."""
        return DynamicEventTimeSessionWindows(extractor)


@dataclass(frozen=True)
class DynamicProcessingTimeSessionWindows(_GapOfElement):
    """Sessions by the clock whose gap is read from each element.

    `SessionWindowTimeGapExtractor` has an example.
    """

    time = PROCESSING_TIME

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicProcessingTimeSessionWindows:
        """Sessions whose gap `extractor` reads from each element."""
        return DynamicProcessingTimeSessionWindows(extractor)
