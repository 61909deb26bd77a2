"""OVER: each row with the aggregates of the rows before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.codegen.rex import literal_value
from penstock.table.functions.aggregates import AggregateHandler, make_aggregates
from penstock.table.logical_types import parse_type
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state, value_state
from penstock.table.rows import NANOS_PER_MILLI, RowTuple
from penstock.table.types import RowField, RowType


class OverFunction(KeyedProcessFunction):
    """Rows in the order of their time, each with the result of its frame.

    A frame ends with the current row (`is_rows`) or with all rows of its time, and begins with the first row of all, or
    `preceding` rows or milliseconds before. State: the rows that wait by their time; [accumulators, rows in the frame].
    """

    def __init__(
        self,
        aggregates: AggregateHandler,
        constants: RowTuple,
        rowtime: int | None,
        is_rows: bool,
        preceding: int | None,
        ttl_ms: int,
    ) -> None:
        self.aggregates = aggregates
        self.constants = constants
        self.rowtime = rowtime
        self.is_rows = is_rows
        self.preceding = preceding
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = map_state(runtime_context, "inputState", self.ttl_ms)
        self.frame = value_state(runtime_context, "accState", self.ttl_ms)
        self.last = value_state(runtime_context, "lastTriggeringTsState", self.ttl_ms)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        timers = ctx.timer_service()
        if self.rowtime is None:
            now = timers.current_processing_time()
            if self.is_rows or self.preceding is None:
                yield from self.results([value], now)
                return
            time_ms = now
        else:
            time_ms = value[self.rowtime] // NANOS_PER_MILLI
            if self.is_late(time_ms, timers):
                return
        rows = self.waiting.get(time_ms)
        if rows is None:
            rows = []
            if self.rowtime is None:
                timers.register_processing_time_timer(time_ms + 1)
            else:
                timers.register_event_time_timer(time_ms)
        rows.append(value)
        self.waiting.put(time_ms, rows)

    def is_late(self, time_ms: int, timers: Any) -> bool:
        """A frame without a begin never goes back; others take what is behind the last row that they had."""
        if self.preceding is None:
            return bool(time_ms <= timers.current_watermark())
        last = self.last.value()
        return last is not None and time_ms <= last

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        time_ms = timestamp if self.rowtime is not None else timestamp - 1
        rows = self.waiting.get(time_ms)
        if rows is None:
            return
        self.waiting.remove(time_ms)
        if self.preceding is not None:
            self.last.update(time_ms)
        yield from self.results(rows, time_ms)

    def results(self, rows: list[RowTuple], time_ms: int) -> Iterator[RowTuple]:
        frame = self.frame.value() or [self.aggregates.create_accumulators(), []]
        accumulators, kept = frame
        if self.is_rows:
            for row in rows:
                self.accumulate(accumulators, kept, row, time_ms)
                if self.preceding is not None and len(kept) > self.preceding + 1:
                    self.retract_first(accumulators, kept)
                yield (*row, *self.aggregates.get_value(accumulators))
        else:
            for row in rows:
                self.accumulate(accumulators, kept, row, time_ms)
            while self.preceding is not None and kept and kept[0][0] < time_ms - self.preceding:
                self.retract_first(accumulators, kept)
            result = self.aggregates.get_value(accumulators)
            for row in rows:
                yield (*row, *result)
        self.frame.update(frame)

    def accumulate(self, accumulators: Any, kept: list[Any], row: RowTuple, time_ms: int) -> None:
        self.aggregates.accumulate(accumulators, (*row, *self.constants))
        if self.preceding is not None:
            kept.append((time_ms, row))

    def retract_first(self, accumulators: Any, kept: list[Any]) -> None:
        _, row = kept.pop(0)
        self.aggregates.retract(accumulators, (*row, *self.constants))


def over_aggregate(at: Translation) -> TableStream:
    node, source = at.node, at.input
    spec = node["overSpec"]
    if source.is_changelog:
        raise node.unsupported("OVER of rows that change")
    if len(spec["groups"]) != 1:
        raise node.unsupported("OVER with several windows")
    (group,) = spec["groups"]
    fields = group["orderBy"]["fields"]
    kind = getattr(source.row_type.field_types()[fields[0]["index"]], "kind", "REGULAR") if len(fields) == 1 else None
    if kind not in ("ROWTIME", "PROCTIME") or not fields[0]["isAscending"]:
        raise node.unsupported("OVER with an order that is not a time attribute, ascending")
    constants = [(parse_type(each["type"]), each.get("value")) for each in spec["constants"]]
    values = tuple([literal_value(value, data_type) for data_type, value in constants])
    preceding = _preceding(at, group, spec["originalInputFields"], values)
    wide = [RowField(f"constant{number}", data_type) for number, (data_type, _) in enumerate(constants)]
    row_type = RowType([*source.row_type.fields, *wide])
    calls = group["aggCalls"]
    aggregates = make_aggregates(calls, row_type, [preceding is not None] * len(calls), at.context.expressions)
    rowtime = fields[0]["index"] if kind == "ROWTIME" else None
    function = OverFunction(aggregates, values, rowtime, group["isRows"], preceding, node.state_ttl_ms())
    return at.keyed_process(tuple(spec["partition"]["fields"]), function, is_changelog=False)


def _preceding(at: Translation, group: Any, width: int, constants: RowTuple) -> int | None:
    """How many rows or milliseconds before the current row the frame begins; None for all."""
    lower, upper = group["lowerBound"], group["upperBound"]
    if upper["kind"] != "CURRENT_ROW":
        raise at.node.unsupported("OVER with rows that follow")
    match lower["kind"]:
        case "UNBOUNDED_PRECEDING":
            return None
        case "CURRENT_ROW":
            return 0
        case "BOUNDED_WINDOW" if lower["isPreceding"]:
            return int(constants[lower["offset"]["inputIndex"] - width])
    raise at.node.unsupported("OVER with such a frame")
