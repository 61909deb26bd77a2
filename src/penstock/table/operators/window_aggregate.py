"""GROUP BY over windows: of window TVFs, and of the older functions TUMBLE, HOP and SESSION."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.functions.aggregates import AggregateHandler, make_aggregates
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state, value_state
from penstock.table.operators.windows import (
    AlignedWindows,
    AttachedWindows,
    SessionWindows,
    WindowClock,
    WindowProperties,
    Windows,
    group_windows_of,
    windows_of,
)
from penstock.table.rows import NANOS_PER_MILLI, RowTuple, is_accumulate, values_of


class _WindowFunction(KeyedProcessFunction):
    """What all kinds of windows share. The contents of a window or slice are [number of rows, accumulators]."""

    def __init__(
        self,
        grouping: tuple[int, ...],
        aggregates: AggregateHandler,
        windows: Any,
        properties: WindowProperties,
        is_changelog: bool,
    ) -> None:
        self.grouping = grouping
        self.aggregates = aggregates
        self.windows = windows
        self.properties = properties
        self.clock: WindowClock = properties.clock
        self.is_changelog = is_changelog

    def open(self, runtime_context: RuntimeContext) -> None:
        self.group = value_state(runtime_context, "group")
        self.group_of = values_of(self.grouping)
        self.accumulate = self.aggregates.accumulate

    def change(self, contents: list[Any], row: RowTuple) -> None:
        if not self.is_changelog or is_accumulate(row[-1]):
            contents[0] += 1
            self.accumulate(contents[1], row)
        else:
            contents[0] -= 1
            self.aggregates.retract(contents[1], row)

    def created(self) -> list[Any]:
        return [0, self.aggregates.create_accumulators()]

    def result(self, contents: list[Any], start_ms: int, end_ms: int) -> RowTuple:
        values = self.aggregates.get_value(contents[1])
        return (*self.group.value(), *values, *self.properties.values(start_ms, end_ms))


class AlignedWindowFunction(_WindowFunction):
    """Tumbling, hopping and cumulating windows: rows are added to slices, which are merged for a complete window."""

    windows: AlignedWindows

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self.slices = map_state(runtime_context, "slices")
        self.slice_end = self.windows.slice_end
        self.local_ms = self.clock.local_ms

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        end = self.slice_end(self.local_ms(value, ctx.timer_service()))
        contents = self.slices.get(end)
        if contents is None:  # Else a timer is set: for the next window with this slice.
            if not self.opens(end, ctx.timer_service()):
                return  # Late.
            contents = self.created()
            self.group.update(self.group_of(value))
        self.change(contents, value)
        self.slices.put(end, contents)
        yield from ()

    def opens(self, slice_end: int, timers: Any) -> bool:
        """Sets a timer for the first window with the slice that is not over; False if all are."""
        windows, is_over = self.windows, self.clock.is_over
        if is_over(windows.last_end(slice_end), timers):
            return False
        window = windows.first_end(slice_end)
        while is_over(window, timers):
            window += windows.slide_ms
        self.clock.register(window, timers)
        return True

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        windows = self.windows
        end = self.clock.window_end(timestamp)
        start = windows.start_of(end)
        ends = sorted([each for each in self.slices if start < each <= end])
        merged = self.merged(ends)
        if merged[0] > 0:
            yield self.result(merged, start, end)
        following = windows.next_end(end)
        for each in ends:
            if windows.last_end(each) <= end:
                self.slices.remove(each)
        if following is not None:
            begin = windows.start_of(following)
            if any(begin < each for each in ends):
                self.clock.register(following, ctx.timer_service())
        if self.slices.is_empty():
            self.slices.clear()
            self.group.clear()

    def merged(self, ends: list[int]) -> list[Any]:
        if len(ends) == 1:
            found: list[Any] = self.slices.get(ends[0])
            return found
        merged = self.created()
        for each in ends:
            count, accumulators = self.slices.get(each)
            merged[0] += count
            self.aggregates.merge(merged[1], accumulators)
        return merged


class AttachedWindowFunction(_WindowFunction):
    """Windows that the rows carry. A window is kept by its begin and end."""

    windows: AttachedWindows

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self.contents = map_state(runtime_context, "windows")

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        timers = ctx.timer_service()
        window = value[self.windows.start] // NANOS_PER_MILLI, value[self.windows.end] // NANOS_PER_MILLI
        if self.clock.is_over(window[1], timers):
            return
        contents = self.contents.get(window)
        if contents is None:
            contents = self.created()
            self.group.update(self.group_of(value))
            self.clock.register(window[1], timers)
        self.change(contents, value)
        self.contents.put(window, contents)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        end = self.clock.window_end(timestamp)
        for window in sorted(each for each in self.contents if each[1] == end):
            contents = self.contents.get(window)
            if contents[0] > 0:
                yield self.result(contents, *window)
            self.contents.remove(window)
        if self.contents.is_empty():
            self.contents.clear()
            self.group.clear()


class SessionWindowFunction(_WindowFunction):
    """Sessions: each row opens a window, which is merged with those it touches."""

    windows: SessionWindows

    def open(self, runtime_context: RuntimeContext) -> None:
        super().open(runtime_context)
        self.sessions = map_state(runtime_context, "sessions")

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        timers = ctx.timer_service()
        start = self.clock.local_ms(value, timers)
        end = start + self.windows.gap_ms
        touched = sorted(each for each in self.sessions if each[0] <= end and each[1] >= start)
        merged_end = max([end, *(each[1] for each in touched)])
        if self.clock.is_over(merged_end, timers):
            return  # Late.
        merged_start = min([start, *(each[0] for each in touched)])
        contents = self.created()
        for session in touched:
            count, accumulators = self.sessions.get(session)
            contents[0] += count
            self.aggregates.merge(contents[1], accumulators)
            self.sessions.remove(session)
            if session[1] != merged_end:
                self.clock.delete(session[1], timers)
        self.change(contents, value)
        if not touched:
            self.group.update(self.group_of(value))
        self.clock.register(merged_end, timers)
        self.sessions.put((merged_start, merged_end), contents)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        end = self.clock.window_end(timestamp)
        for session in [each for each in self.sessions if each[1] == end]:
            contents = self.sessions.get(session)
            self.sessions.remove(session)
            if contents[0] > 0:
                yield self.result(contents, *session)
        if self.sessions.is_empty():
            self.sessions.clear()
            self.group.clear()


_FUNCTIONS: dict[type, type[_WindowFunction]] = {
    AlignedWindows: AlignedWindowFunction,
    AttachedWindows: AttachedWindowFunction,
    SessionWindows: SessionWindowFunction,
}


def window_aggregate(at: Translation) -> TableStream:
    return _aggregate(at, *windows_of(at.node, at.node["windowing"], at.context.time_zone))


def group_window_aggregate(at: Translation) -> TableStream:
    if (at.node.get("emitStrategy") or at.node.get("emit")) is not None:
        raise at.node.unsupported("the emission of early or late results of a window")
    return _aggregate(at, *group_windows_of(at.node, at.context.time_zone))


def _aggregate(at: Translation, windows: Windows, clock: WindowClock) -> TableStream:
    node, source = at.node, at.input
    calls = node["aggCalls"]
    retracts = [source.is_changelog and node.get("needRetraction", False)] * len(calls)
    aggregates = make_aggregates(calls, source.row_type, retracts, at.context.expressions)
    grouping = tuple(node["grouping"])
    function = _FUNCTIONS[type(windows)](
        grouping, aggregates, windows, WindowProperties.of(node, clock), source.is_changelog
    )
    return at.keyed_process(grouping, function, is_changelog=False)
