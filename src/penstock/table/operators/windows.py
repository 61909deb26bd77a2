"""The windows of a plan: which ones a row belongs to, and the clock they are measured with.

Inside, windows are milliseconds of local time, as their columns show them. For a TIMESTAMP that is the time itself; for
a TIMESTAMP_LTZ it is what clocks of the session's time zone show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.table.durations import duration_ms
from penstock.table.logical_types import parse_type
from penstock.table.operators.plan import ExecNode
from penstock.table.rows import NANOS_PER_MILLI, RowTuple
from penstock.table.types import LocalZonedTimestampType
from penstock.table.values.times import to_instant, to_local


@dataclass(frozen=True)
class WindowClock:
    """Where a row's time is, and how it becomes the time of windows and of timers."""

    column: int
    is_event_time: bool
    zone: str
    """UTC for TIMESTAMP, whose values are local already."""

    @staticmethod
    def of(column: int, time_type: Any, is_event_time: bool, zone: str) -> WindowClock:
        is_instant = not is_event_time or isinstance(parse_type(time_type), LocalZonedTimestampType)
        return WindowClock(column, is_event_time, zone if is_instant else "UTC")

    def local_ms(self, row: RowTuple, timers: Any) -> int:
        if not self.is_event_time:
            return self.to_local(timers.current_processing_time())
        time = row[self.column]
        if time is None:
            raise ValueError("RowTime field should not be null, please convert it to a non-null long value.")
        local = time // NANOS_PER_MILLI
        return local if self.zone == "UTC" else self.to_local(local)

    def to_local(self, instant_ms: int) -> int:
        return (
            instant_ms if self.zone == "UTC" else to_local(instant_ms * NANOS_PER_MILLI, self.zone) // NANOS_PER_MILLI
        )

    def to_instant(self, local_ms: int) -> int:
        return local_ms if self.zone == "UTC" else to_instant(local_ms * NANOS_PER_MILLI, self.zone) // NANOS_PER_MILLI

    def timer_ms(self, window_end: int) -> int:
        """When the window is complete."""
        return self.to_instant(window_end) - 1

    def window_end(self, timer_ms: int) -> int:
        return self.to_local(timer_ms + 1)

    def progress(self, timers: Any) -> int:
        return int(timers.current_watermark() if self.is_event_time else timers.current_processing_time())

    def is_over(self, window_end: int, timers: Any) -> bool:
        """True if the window was complete before; then a row of it is late."""
        return self.is_event_time and self.timer_ms(window_end) <= timers.current_watermark()

    def register(self, window_end: int, timers: Any) -> None:
        if self.is_event_time:
            timers.register_event_time_timer(self.timer_ms(window_end))
        else:
            timers.register_processing_time_timer(self.timer_ms(window_end))

    def delete(self, window_end: int, timers: Any) -> None:
        if self.is_event_time:
            timers.delete_event_time_timer(self.timer_ms(window_end))
        else:
            timers.delete_processing_time_timer(self.timer_ms(window_end))


@dataclass(frozen=True)
class AlignedWindows:
    """Windows that begin at the same times for all rows. They consist of slices, which windows share.

    A tumbling window is one slice; a hopping one has as many as its size and slide need; a cumulating one grows
    by a slice at a time.
    """

    size_ms: int
    slide_ms: int
    offset_ms: int = 0
    is_cumulating: bool = False

    @cached_property
    def slice_ms(self) -> int:
        return self.slide_ms if self.is_cumulating else math.gcd(self.size_ms, self.slide_ms)

    def slice_end(self, time_ms: int) -> int:
        slice_ms = self.slice_ms
        return time_ms - (time_ms - self.offset_ms) % slice_ms + slice_ms

    def first_end(self, slice_end: int) -> int:
        """The end of the first window that has this slice."""
        if self.is_cumulating:
            return slice_end
        latest_start = self._aligned(slice_end - self.size_ms + self.slide_ms - 1)
        return latest_start + self.size_ms

    def last_end(self, slice_end: int) -> int:
        if self.is_cumulating:
            return self.start_of(slice_end) + self.size_ms
        return self._aligned(slice_end - 1) + self.size_ms

    def _aligned(self, time_ms: int) -> int:
        """The last begin of a window that is not after the time."""
        return time_ms - (time_ms - self.offset_ms) % self.slide_ms

    def start_of(self, window_end: int) -> int:
        if self.is_cumulating:
            return window_end - 1 - (window_end - 1 - self.offset_ms) % self.size_ms
        return window_end - self.size_ms

    def next_end(self, window_end: int) -> int | None:
        """The end of the window that follows and shares slices with this one; None if there is none."""
        following = window_end + self.slide_ms
        if self.is_cumulating:
            return following if self.start_of(following) == self.start_of(window_end) else None
        return following if self.slide_ms < self.size_ms else None

    def windows_at(self, time_ms: int) -> list[tuple[int, int]]:
        """All windows of a row, the earliest first."""
        end = self.slice_end(time_ms)
        window, last = self.first_end(end), self.last_end(end)
        found = []
        while window <= last:
            found.append((self.start_of(window), window))
            window += self.slide_ms
        return found


@dataclass(frozen=True)
class SessionWindows:
    """Windows that end when no row came for the gap."""

    gap_ms: int


@dataclass(frozen=True)
class AttachedWindows:
    """Windows that the rows already carry, in two columns."""

    start: int
    end: int


Windows = AlignedWindows | SessionWindows | AttachedWindows


def windows_of(node: ExecNode, windowing: Mapping[str, Any], zone: str) -> tuple[Windows, WindowClock]:
    """The windows of a `windowing` of window TVFs."""
    time_type, is_event_time = windowing["timeAttributeType"], windowing["isRowtime"]
    match windowing["strategy"]:
        case "TimeAttribute":
            clock = WindowClock.of(windowing["timeAttributeIndex"], time_type, is_event_time, zone)
            return _windows(node, windowing["window"]), clock
        case "WindowAttached":
            clock = WindowClock.of(-1, time_type, is_event_time, zone)
            return AttachedWindows(windowing["windowStart"], windowing["windowEnd"]), clock
    raise node.unsupported(f"windowing by {windowing['strategy']}")


def _windows(node: ExecNode, window: Mapping[str, Any]) -> Windows:
    offset = duration_ms(window.get("offset") or "0 ms")
    match window["type"]:
        case "TumblingWindow":
            size = duration_ms(window["size"])
            return AlignedWindows(size, size, offset)
        case "HoppingWindow":
            return AlignedWindows(duration_ms(window["size"]), duration_ms(window["slide"]), offset)
        case "CumulativeWindow":
            return AlignedWindows(duration_ms(window["maxSize"]), duration_ms(window["step"]), offset, True)
        case "SessionWindow":
            return SessionWindows(duration_ms(window["gap"]))
    raise node.unsupported(f"windows of type {window['type']}")


def group_windows_of(node: ExecNode, zone: str) -> tuple[Windows, WindowClock]:
    """The windows of GROUP BY TUMBLE(...), HOP(...), SESSION(...)."""
    window = node["window"]
    field = window["timeField"]
    kind = getattr(parse_type(field["fieldType"]), "kind", "REGULAR")
    if not window.get("isTimeWindow", True):
        raise node.unsupported("a window of a number of rows")
    clock = WindowClock.of(field["fieldIndex"], field["fieldType"], kind != "PROCTIME", zone)
    match window["kind"]:
        case "TUMBLING":
            size = duration_ms(window["size"])
            return AlignedWindows(size, size), clock
        case "SLIDING":
            return AlignedWindows(duration_ms(window["size"]), duration_ms(window["slide"])), clock
        case "SESSION":
            return SessionWindows(duration_ms(window["gap"])), clock
    raise node.unsupported(f"windows of kind {window['kind']}")


@dataclass(frozen=True)
class WindowProperties:
    """The columns that tell a window's begin and end: `kinds` in the order of the output."""

    kinds: tuple[str, ...]
    clock: WindowClock

    @staticmethod
    def of(node: ExecNode, clock: WindowClock) -> WindowProperties:
        return WindowProperties(tuple(each["property"]["kind"] for each in node["namedWindowProperties"]), clock)

    def values(self, start_ms: int, end_ms: int) -> RowTuple:
        return tuple([self._value(kind, start_ms, end_ms) for kind in self.kinds])

    def _value(self, kind: str, start_ms: int, end_ms: int) -> int | None:
        match kind:
            case "WindowStart":
                return start_ms * NANOS_PER_MILLI
            case "WindowEnd":
                return end_ms * NANOS_PER_MILLI
            case "Rowtime":
                return self.clock.timer_ms(end_ms) * NANOS_PER_MILLI
        return None
