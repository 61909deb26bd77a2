"""Joins of rows whose times are close to each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from penstock.graph import descriptions as d
from penstock.table.operators.joins import OUTER, JoinCondition
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state
from penstock.table.rows import NANOS_PER_MILLI, RowTuple


class IntervalJoinFunction(KeyedCoProcessFunction):
    """Rows of each side wait for those of the other as long as one may come. State: time -> [[row, has matched]].

    A left row of time t matches right rows of the times t - `upper` to t - `lower`.
    """

    def __init__(
        self,
        condition: JoinCondition,
        bounds: tuple[int, int],
        columns: tuple[int, int],
        is_event_time: bool,
        outer: tuple[bool, bool],
        widths: tuple[int, int],
    ) -> None:
        self.condition = condition
        self.lower, self.upper = bounds
        self.columns = columns
        self.is_event_time = is_event_time
        self.outer = outer
        self.widths = widths

    def open(self, runtime_context: RuntimeContext) -> None:
        self.rows = map_state(runtime_context, "leftRows"), map_state(runtime_context, "rightRows")

    def process_element1(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        return self.process(0, value, ctx)

    def process_element2(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        return self.process(1, value, ctx)

    def now(self, timers: Any) -> int:
        return int(timers.current_watermark() if self.is_event_time else timers.current_processing_time())

    def span(self, side: int, time_ms: int) -> tuple[int, int]:
        """The times of rows of the other side that a row matches."""
        return (
            (time_ms - self.upper, time_ms - self.lower) if side == 0 else (time_ms + self.lower, time_ms + self.upper)
        )

    def last_use(self, side: int, time_ms: int) -> int:
        """The time of the last row of the other side that can still match."""
        return self.span(side, time_ms)[1]

    def joined(self, side: int, row: RowTuple, other: RowTuple) -> RowTuple:
        return (*row, *other) if side == 0 else (*other, *row)

    def padded(self, side: int, row: RowTuple) -> RowTuple:
        return self.joined(side, row, (None,) * self.widths[1 - side])

    def process(self, side: int, row: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        timers = ctx.timer_service()
        now = self.now(timers)
        time_ms = row[self.columns[side]] // NANOS_PER_MILLI if self.is_event_time else now
        first, last = self.span(side, time_ms)
        others = self.rows[1 - side]
        has_matched = False
        for other_time in sorted(each for each in others if first <= each <= last):
            entries = others.get(other_time)
            for entry in entries:
                pair = (row, entry[0]) if side == 0 else (entry[0], row)
                if self.condition.matches(*pair):
                    has_matched = entry[1] = True
                    yield (*pair[0], *pair[1])
            others.put(other_time, entries)
        if last > now:
            kept = self.rows[side].get(time_ms) or []
            kept.append([row, has_matched])
            self.rows[side].put(time_ms, kept)
            self.register(last + 1, timers)
        elif self.outer[side] and not has_matched:
            yield self.padded(side, row)

    def register(self, time_ms: int, timers: Any) -> None:
        if self.is_event_time:
            timers.register_event_time_timer(time_ms)
        else:
            timers.register_processing_time_timer(time_ms)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        """Drop the rows that nothing can match any more."""
        for side in (0, 1):
            rows = self.rows[side]
            for time_ms in sorted(each for each in rows if self.last_use(side, each) < timestamp):
                if self.outer[side]:
                    for row, has_matched in rows.get(time_ms):
                        if not has_matched:
                            yield self.padded(side, row)
                rows.remove(time_ms)


def interval_join(at: Translation) -> TableStream:
    spec = at.node["intervalJoinSpec"]
    join, bounds = spec["joinSpec"], spec["windowBounds"]
    left, right = at.inputs
    if join["joinType"] not in OUTER:
        raise at.node.unsupported(f"an interval join of type {join['joinType']}")
    function = IntervalJoinFunction(
        JoinCondition(join, left.row_type, right.row_type, at.context.expressions),
        (bounds["leftLowerBound"], bounds["leftUpperBound"]),
        (bounds["leftTimeIndex"], bounds["rightTimeIndex"]),
        bounds["isEventTime"],
        OUTER[join["joinType"]],
        (len(left.row_type), len(right.row_type)),
    )
    made = at.keyed_co_process((join["leftKeys"], join["rightKeys"]), function, is_changelog=False)
    if not bounds["isEventTime"]:
        return made
    # Joined rows carry the times of both sides, so those behind must wait for the older one.
    delay_ms = max(-bounds["leftLowerBound"], bounds["leftUpperBound"], 0)
    delayed = made.stream._then("Watermark delay", d.WatermarkDelayDescription(delay_ms), None)
    return TableStream(at.named(delayed, "watermark-delay"), made.row_type, False)
