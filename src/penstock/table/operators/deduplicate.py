"""The first or the last row of each key, by event time or by arrival."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import value_state
from penstock.table.rows import (
    DELETE,
    INSERT,
    NANOS_PER_MILLI,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    RowTuple,
    is_accumulate,
)


class KeepFirstByArrival(KeyedProcessFunction):
    """The first row of each key, which never changes."""

    def __init__(self, ttl_ms: int) -> None:
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "deduplicateState", self.ttl_ms)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        if self.state.value() is None:
            self.state.update(True)
            yield value


class KeepFirstByTime(KeyedProcessFunction):
    """The row with the earliest time, when the watermark says that none earlier will come."""

    def __init__(self, rowtime: int, ttl_ms: int) -> None:
        self.rowtime = rowtime
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.earliest = value_state(runtime_context, "earliest", self.ttl_ms)
        self.is_emitted = value_state(runtime_context, "isEmitted", self.ttl_ms)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        if self.is_emitted.value():
            return
        known, time = self.earliest.value(), value[self.rowtime]
        if known is None or time < known[self.rowtime]:
            self.earliest.update(value)
            timers = ctx.timer_service()
            if known is not None:
                timers.delete_event_time_timer(known[self.rowtime] // NANOS_PER_MILLI)
            timers.register_event_time_timer(time // NANOS_PER_MILLI)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        row = self.earliest.value()
        if row is not None:
            self.earliest.clear()
            self.is_emitted.update(True)
            yield row


class KeepOne(KeyedProcessFunction):
    """The row that is the key's so far, with updates. `rowtime` is None by arrival, where the last row is kept."""

    def __init__(
        self, rowtime: int | None, keeps_last: bool, is_changelog: bool, generates_update_before: bool, ttl_ms: int
    ) -> None:
        self.rowtime = rowtime
        self.keeps_last = keeps_last
        self.is_changelog = is_changelog
        self.generates_update_before = generates_update_before
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "deduplicateState", self.ttl_ms)

    def replaces(self, row: RowTuple, known: RowTuple) -> bool:
        if self.rowtime is None:
            return self.ttl_ms > 0 or row != known
        if self.keeps_last:
            return bool(known[self.rowtime] <= row[self.rowtime])
        return bool(row[self.rowtime] < known[self.rowtime])

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        row, kind = (value[:-1], value[-1]) if self.is_changelog else (value, INSERT)
        known = self.state.value()
        if not is_accumulate(kind):
            if kind == DELETE and known is not None:
                self.state.clear()
                yield (*known, DELETE)
            return
        if known is None:
            self.state.update(row)
            yield (*row, INSERT)
        elif self.replaces(row, known):
            self.state.update(row)
            if self.generates_update_before:
                yield (*known, UPDATE_BEFORE)
            yield (*row, UPDATE_AFTER)


def deduplicate(at: Translation) -> TableStream:
    node, source = at.node, at.input
    keys, ttl_ms = tuple(node["uniqueKeys"]), node.state_ttl_ms()
    if not node["isRowtime"]:
        if not node["keepLastRow"]:
            return at.keyed_process(keys, KeepFirstByArrival(ttl_ms), is_changelog=False)
        rowtime = None
    else:
        rowtime = rowtime_column(at)
        if node.get("outputInsertOnly"):
            return at.keyed_process(keys, KeepFirstByTime(rowtime, ttl_ms), is_changelog=False)
    function = KeepOne(rowtime, node["keepLastRow"], source.is_changelog, node["generateUpdateBefore"], ttl_ms)
    return at.keyed_process(keys, function, is_changelog=True)


def rowtime_column(at: Translation) -> int:
    """The only column that is the rows' event time."""
    for index, data_type in enumerate(at.input.row_type.field_types()):
        if getattr(data_type, "kind", "REGULAR") == "ROWTIME":
            return index
    raise at.node.unsupported("an order by something else than the event time attribute")
