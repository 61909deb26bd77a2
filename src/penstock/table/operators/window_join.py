"""Joins of rows of the same window, when it is complete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from penstock.table.operators.joins import OUTER, JoinCondition
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state
from penstock.table.operators.windows import AttachedWindows, WindowClock, windows_of
from penstock.table.rows import NANOS_PER_MILLI, RowTuple


class WindowJoinFunction(KeyedCoProcessFunction):
    """State: (begin, end) of a window -> its rows, for each side."""

    def __init__(
        self,
        condition: JoinCondition,
        windows: tuple[AttachedWindows, AttachedWindows],
        clock: WindowClock,
        kind: str,
        widths: tuple[int, int],
    ) -> None:
        self.condition = condition
        self.windows = windows
        self.clock = clock
        self.kind = kind
        self.widths = widths

    def open(self, runtime_context: RuntimeContext) -> None:
        self.rows = map_state(runtime_context, "leftRows"), map_state(runtime_context, "rightRows")

    def process_element1(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        return self.process(0, value, ctx)

    def process_element2(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        return self.process(1, value, ctx)

    def process(self, side: int, row: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        timers, windows = ctx.timer_service(), self.windows[side]
        window = row[windows.start] // NANOS_PER_MILLI, row[windows.end] // NANOS_PER_MILLI
        if self.clock.is_over(window[1], timers):
            return
        rows = self.rows[side].get(window) or []
        rows.append(row)
        self.rows[side].put(window, rows)
        self.clock.register(window[1], timers)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        end = self.clock.window_end(timestamp)
        for window in sorted({each for rows in self.rows for each in rows if each[1] == end}):
            lefts, rights = [rows.get(window) or [] for rows in self.rows]
            yield from self.joined(lefts, rights)
            for rows in self.rows:
                rows.remove(window)

    def joined(self, lefts: list[RowTuple], rights: list[RowTuple]) -> Iterator[RowTuple]:
        matches = self.condition.matches
        if self.kind in ("SEMI", "ANTI"):
            for left in lefts:
                if any(matches(left, right) for right in rights) == (self.kind == "SEMI"):
                    yield left
            return
        left_outer, right_outer = OUTER[self.kind]
        matched_rights = set()
        for left in lefts:
            has_matched = False
            for number, right in enumerate(rights):
                if matches(left, right):
                    has_matched = True
                    matched_rights.add(number)
                    yield (*left, *right)
            if left_outer and not has_matched:
                yield (*left, *(None,) * self.widths[1])
        if right_outer:
            for number, right in enumerate(rights):
                if number not in matched_rights:
                    yield (*(None,) * self.widths[0], *right)


def window_join(at: Translation) -> TableStream:
    node, spec = at.node, at.node["joinSpec"]
    left, right = at.inputs
    zone = at.context.time_zone
    left_windows, clock = windows_of(node, node["leftWindowing"], zone)
    right_windows, _ = windows_of(node, node["rightWindowing"], zone)
    if not isinstance(left_windows, AttachedWindows) or not isinstance(right_windows, AttachedWindows):
        raise node.unsupported("a window join whose windows are not columns of its inputs")
    function = WindowJoinFunction(
        JoinCondition(spec, left.row_type, right.row_type, at.context.expressions),
        (left_windows, right_windows),
        clock,
        spec["joinType"],
        (len(left.row_type), len(right.row_type)),
    )
    return at.keyed_co_process((spec["leftKeys"], spec["rightKeys"]), function, is_changelog=False)
