"""The first rows of each window, when it is complete."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state
from penstock.table.operators.windows import AttachedWindows, WindowClock, windows_of
from penstock.table.rows import NANOS_PER_MILLI, RowOrder, RowTuple, SortField


class WindowRankFunction(KeyedProcessFunction):
    """State: (begin, end) of a window -> its first rows in order. Of equal ones the earlier is first, or the later."""

    def __init__(
        self,
        order: RowOrder,
        ranks: tuple[int, int],
        emits_rank: bool,
        windows: AttachedWindows,
        clock: WindowClock,
        prefers_later: bool = False,
    ) -> None:
        self.order = order
        self.start, self.end = ranks
        self.emits_rank = emits_rank
        self.windows = windows
        self.clock = clock
        self.prefers_later = prefers_later

    def open(self, runtime_context: RuntimeContext) -> None:
        self.rows = map_state(runtime_context, "rows")
        self.sort_key = self.order.key

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        timers = ctx.timer_service()
        window = value[self.windows.start] // NANOS_PER_MILLI, value[self.windows.end] // NANOS_PER_MILLI
        if self.clock.is_over(window[1], timers):
            return
        rows = self.rows.get(window)
        if rows is None:
            rows = []
            self.clock.register(window[1], timers)
        place = bisect_right(rows, self.sort_key(value), key=self.sort_key)
        if self.prefers_later:
            while place > 0 and self.order.compare(rows[place - 1], value) == 0:
                place -= 1
        rows.insert(place, value)
        self.rows.put(window, rows[: self.end])
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        end = self.clock.window_end(timestamp)
        for window in sorted(each for each in self.rows if each[1] == end):
            rows = self.rows.get(window)
            self.rows.remove(window)
            for number, row in enumerate(rows, start=1):
                if number >= self.start:
                    yield (*row, number) if self.emits_rank else row


def _attached(at: Translation) -> tuple[AttachedWindows, WindowClock]:
    if at.input.is_changelog:
        raise at.node.unsupported("a window top-N over rows that change")
    windows, clock = windows_of(at.node, at.node["windowing"], at.context.time_zone)
    if not isinstance(windows, AttachedWindows):
        raise at.node.unsupported("a window top-N whose windows are not columns of its input")
    return windows, clock


def window_rank(at: Translation) -> TableStream:
    node = at.node
    if node["rankType"] != "ROW_NUMBER" or node["rankRange"]["type"] != "Constant":
        raise node.unsupported("a window top-N other than ROW_NUMBER with constants")
    windows, clock = _attached(at)
    ranks = node["rankRange"]["start"], node["rankRange"]["end"]
    order = RowOrder.of(node["sortSpec"])
    function = WindowRankFunction(order, ranks, node["outputRowNumber"], windows, clock)
    return at.keyed_process(tuple(node["partitionSpec"]["fields"]), function, is_changelog=False)


def window_deduplicate(at: Translation) -> TableStream:
    node = at.node
    windows, clock = _attached(at)
    keeps_last = node["keepLastRow"]
    order = RowOrder((SortField(node["orderKey"], not keeps_last, True),))
    function = WindowRankFunction(order, (1, 1), False, windows, clock, prefers_later=keeps_last)
    return at.keyed_process(tuple(node["partitionKeys"]), function, is_changelog=False)
