"""Joins with the version of a table that was valid at a row's time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from penstock.table.operators.joins import JoinCondition
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state, value_state
from penstock.table.rows import INSERT, NANOS_PER_MILLI, RowTuple, is_accumulate


class EventTimeTemporalJoin(KeyedCoProcessFunction):
    """Left rows wait until the watermark says that all versions of their time are known.

    State: left rows in the order of arrival as [time, number, row]; versions as time -> [row, kind].
    """

    def __init__(
        self,
        condition: JoinCondition,
        columns: tuple[int, int],
        are_changelogs: tuple[bool, bool],
        is_left_outer: bool,
        right_width: int,
    ) -> None:
        self.condition = condition
        self.left_column, self.right_column = columns
        self.are_changelogs = are_changelogs
        self.is_left_outer = is_left_outer
        self.right_width = right_width

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = map_state(runtime_context, "left")
        self.next_number = value_state(runtime_context, "nextLeftIndex")
        self.versions = map_state(runtime_context, "right")

    def process_element1(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        number = self.next_number.value() or 0
        self.next_number.update(number + 1)
        time_ms = value[self.left_column] // NANOS_PER_MILLI
        self.waiting.put(number, [time_ms, value])
        ctx.timer_service().register_event_time_timer(max(time_ms, ctx.timer_service().current_watermark() + 1))
        yield from ()

    def process_element2(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        row, kind = (value[:-1], value[-1]) if self.are_changelogs[1] else (value, INSERT)
        time_ms = row[self.right_column] // NANOS_PER_MILLI
        self.versions.put(time_ms, [row, kind])
        ctx.timer_service().register_event_time_timer(max(time_ms, ctx.timer_service().current_watermark() + 1))
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        watermark = ctx.timer_service().current_watermark()
        times = sorted(self.versions.keys())
        due = sorted([(entry[0], number) for number, entry in self.waiting.items() if entry[0] <= watermark])
        for time_ms, number in due:
            yield from self.joined(self.waiting.get(number)[1], self.version_at(times, time_ms))
            self.waiting.remove(number)
        # The newest version up to now is still that of rows to come; what is older is not.
        for old in [each for each in times if each <= watermark][:-1]:
            self.versions.remove(old)
        if self.waiting.is_empty():
            self.waiting.clear()
            self.next_number.clear()

    def version_at(self, times: list[int], time_ms: int) -> RowTuple | None:
        before = [each for each in times if each <= time_ms]
        if not before:
            return None
        row, kind = self.versions.get(before[-1])
        return row if is_accumulate(kind) else None

    def joined(self, value: RowTuple, version: RowTuple | None) -> Iterator[RowTuple]:
        left, kind = (value[:-1], (value[-1],)) if self.are_changelogs[0] else (value, ())
        if version is not None and self.condition.matches(left, version):
            yield (*left, *version, *kind)
        elif self.is_left_outer:
            yield (*left, *(None,) * self.right_width, *kind)


class ProcessingTimeTemporalJoin(KeyedCoProcessFunction):
    """Left rows are joined with the version that is known when they arrive."""

    def __init__(
        self, condition: JoinCondition, are_changelogs: tuple[bool, bool], is_left_outer: bool, right_width: int
    ) -> None:
        self.condition = condition
        self.are_changelogs = are_changelogs
        self.is_left_outer = is_left_outer
        self.right_width = right_width

    def open(self, runtime_context: RuntimeContext) -> None:
        self.version = value_state(runtime_context, "right")

    def process_element1(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        left, kind = (value[:-1], (value[-1],)) if self.are_changelogs[0] else (value, ())
        version = self.version.value()
        if version is not None and self.condition.matches(left, version):
            yield (*left, *version, *kind)
        elif self.is_left_outer:
            yield (*left, *(None,) * self.right_width, *kind)

    def process_element2(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        row, kind = (value[:-1], value[-1]) if self.are_changelogs[1] else (value, INSERT)
        if is_accumulate(kind):
            self.version.update(row)
        else:
            self.version.clear()
        yield from ()


def temporal_join(at: Translation) -> TableStream:
    node, spec = at.node, at.node["joinSpec"]
    left, right = at.inputs
    if spec["joinType"] not in ("INNER", "LEFT"):
        raise node.unsupported(f"a temporal join of type {spec['joinType']}")
    condition = JoinCondition(spec, left.row_type, right.row_type, at.context.expressions)
    are_changelogs = left.is_changelog, right.is_changelog
    is_outer, width = spec["joinType"] == "LEFT", len(right.row_type)
    columns = node["leftTimeAttributeIndex"], node["rightTimeAttributeIndex"]
    function: KeyedCoProcessFunction
    if columns[1] < 0:
        function = ProcessingTimeTemporalJoin(condition, are_changelogs, is_outer, width)
    else:
        function = EventTimeTemporalJoin(condition, columns, are_changelogs, is_outer, width)
    return at.keyed_co_process((spec["leftKeys"], spec["rightKeys"]), function, left.is_changelog)
