"""Tumbling and sliding windows, by event time and by processing time."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from penstock.common.serializer import TypeSerializer
from penstock.datastream.windowing.assigner import WindowAssigner
from penstock.datastream.windowing.spans import Span, check_offset, check_positive, offset_ms, span_ms
from penstock.datastream.windowing.stagger import WindowStagger
from penstock.datastream.windowing.time_domains import EVENT_TIME, PROCESSING_TIME, TimeDomain
from penstock.datastream.windowing.time_triggers import trigger_at_end
from penstock.datastream.windowing.trigger import Trigger
from penstock.datastream.windowing.windows import TimeWindow, TimeWindowSerializer, within_time

_START = TimeWindow.get_window_start_with_offset


class InTime(WindowAssigner[Any, TimeWindow]):
    """An assigner that goes by one of the two times; windows fire at their end."""

    time: ClassVar[TimeDomain]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return trigger_at_end(self.time)

    def is_event_time(self) -> bool:
        return self.time.is_event_time

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class TimeWindowAssigner(InTime):
    """An assigner whose windows depend on nothing but the time of an element."""

    @abstractmethod
    def windows_at(self, time: int) -> list[TimeWindow]:
        """The windows of an element at `time`, the latest first."""

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return self.windows_at(self.time.time_of(self, element, timestamp, context))


@dataclass(frozen=True)
class _Tumbling(TimeWindowAssigner):
    """Windows of `size` milliseconds one after the other, begun at multiples of `size`, shifted by `offset`."""

    size: int
    offset: int = 0
    window_stagger: WindowStagger = WindowStagger.ALIGNED

    def __post_init__(self) -> None:
        check_positive(type(self).__name__, "size", self.size)
        check_offset(type(self).__name__, self.offset, "size", self.size)

    @property
    def slide(self) -> int:
        """Tumbling windows slide by their size."""
        return self.size

    def windows_at(self, time: int) -> list[TimeWindow]:
        start = _START(time, self.offset, self.size)
        return [TimeWindow(*within_time(start, start + self.size))]

    def stagger_offset_ms(self, current_processing_time: int) -> int:
        return self.window_stagger.get_stagger_offset(current_processing_time, self.size)

    def shifted(self, stagger_offset_ms: int) -> _Tumbling:
        offset = (self.offset + stagger_offset_ms) % self.size
        return replace(self, offset=offset, window_stagger=WindowStagger.ALIGNED)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.size})"


@dataclass(frozen=True)
class TumblingEventTimeWindows(_Tumbling):
    """Windows of one size, by the elements' event time; they do not overlap.

    `offset` shifts them: `of(Time.days(1), Time.hours(-8))` gives days that begin at midnight in UTC+08:00.
    """

    time = EVENT_TIME

    @staticmethod
    def of(
        size: Span,
        offset: Span | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> TumblingEventTimeWindows:
        """Windows of `size`, moved by `offset` from full multiples; times are `Time`, `Duration` or `timedelta`.

        >>> from penstock.common import Time
        >>> str(TumblingEventTimeWindows.of(Time.minutes(1)))
        'TumblingEventTimeWindows(60000)'
        """
        owner = "TumblingEventTimeWindows"
        return TumblingEventTimeWindows(span_ms(owner, "size", size), offset_ms(owner, offset), window_stagger)


@dataclass(frozen=True)
class TumblingProcessingTimeWindows(_Tumbling):
    """Windows of one size, by the clock at the moment an element is handled; they do not overlap.

    >>> from penstock.common import Time
    >>> str(TumblingProcessingTimeWindows.of(Time.seconds(5)))
    'TumblingProcessingTimeWindows(5000)'
    """

    time = PROCESSING_TIME

    @staticmethod
    def of(
        size: Span,
        offset: Span | None = None,
        window_stagger: WindowStagger = WindowStagger.ALIGNED,
    ) -> TumblingProcessingTimeWindows:
        """Windows of `size`, moved by `offset` from full multiples; times are `Time`, `Duration` or `timedelta`."""
        owner = "TumblingProcessingTimeWindows"
        return TumblingProcessingTimeWindows(span_ms(owner, "size", size), offset_ms(owner, offset), window_stagger)


@dataclass(frozen=True)
class _Sliding(TimeWindowAssigner):
    """Windows of `size` milliseconds, one begun every `slide` milliseconds, shifted by `offset`."""

    size: int
    slide: int
    offset: int = 0

    def __post_init__(self) -> None:
        check_positive(type(self).__name__, "size", self.size)
        check_positive(type(self).__name__, "slide", self.slide)
        check_offset(type(self).__name__, self.offset, "slide", self.slide)

    def windows_at(self, time: int) -> list[TimeWindow]:
        """The windows that hold `time`, the latest first; none if `time` falls in a gap (slide longer than size)."""
        last = _START(time, self.offset, self.slide)
        starts = range(last, time - self.size, -self.slide)
        return [TimeWindow(*within_time(start, start + self.size)) for start in starts]

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide})"


@dataclass(frozen=True)
class SlidingEventTimeWindows(_Sliding):
    """Windows of one size that begin every `slide`, by the elements' event time; they overlap if slide < size."""

    time = EVENT_TIME

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingEventTimeWindows:
        """Windows of `size`, one beginning every `slide`, moved by `offset` from full multiples.

        >>> from penstock.common import Time
        >>> str(SlidingEventTimeWindows.of(Time.minutes(10), Time.minutes(1)))
        'SlidingEventTimeWindows(600000, 60000)'
        """
        owner = "SlidingEventTimeWindows"
        sizes = span_ms(owner, "size", size), span_ms(owner, "slide", slide)
        return SlidingEventTimeWindows(*sizes, offset_ms(owner, offset))


@dataclass(frozen=True)
class SlidingProcessingTimeWindows(_Sliding):
    """Windows of one size that begin every `slide`, by the clock at the moment an element is handled.

    >>> from penstock.common import Time
    >>> str(SlidingProcessingTimeWindows.of(Time.minutes(1), Time.seconds(5)))
    'SlidingProcessingTimeWindows(60000, 5000)'
    """

    time = PROCESSING_TIME

    @staticmethod
    def of(size: Span, slide: Span, offset: Span | None = None) -> SlidingProcessingTimeWindows:
        """Windows of `size`, one beginning every `slide`, moved by `offset` from full multiples."""
        owner = "SlidingProcessingTimeWindows"
        sizes = span_ms(owner, "size", size), span_ms(owner, "slide", slide)
        return SlidingProcessingTimeWindows(*sizes, offset_ms(owner, offset))
