"""ORDER BY the event time: rows wait until the watermark says that none before them will come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state, value_state
from penstock.table.rows import NANOS_PER_MILLI, RowOrder, RowTuple


class TemporalSortFunction(KeyedProcessFunction):
    """State: time -> rows. Rows of the same time are sorted by the other columns."""

    def __init__(self, rowtime: int, order: RowOrder) -> None:
        self.rowtime = rowtime
        self.order = order

    def open(self, runtime_context: RuntimeContext) -> None:
        self.rows = map_state(runtime_context, "dataState")
        self.last = value_state(runtime_context, "lastTriggeringTsState")

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        time_ms = value[self.rowtime] // NANOS_PER_MILLI
        last = self.last.value()
        if last is None or time_ms > last:  # Else it is late.
            rows = self.rows.get(time_ms)
            if rows is None:
                rows = []
                ctx.timer_service().register_event_time_timer(time_ms)
            rows.append(value)
            self.rows.put(time_ms, rows)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[RowTuple]:
        rows = self.rows.get(timestamp)
        if rows is None:
            return
        self.rows.remove(timestamp)
        self.last.update(timestamp)
        yield from sorted(rows, key=self.order.key)


def temporal_sort(at: Translation) -> TableStream:
    node, source = at.node, at.input
    order = RowOrder.of(node["orderBy"])
    if source.is_changelog:
        raise node.unsupported("an order by time of rows that change")
    first = order.fields[0]
    kind = getattr(source.row_type.field_types()[first.column], "kind", "REGULAR")
    if kind == "PROCTIME":
        if len(order.fields) > 1:
            raise node.unsupported("an order by processing time and more")
        return source
    if kind != "ROWTIME" or not first.is_ascending:
        raise node.unsupported("an order that does not begin with the event time, ascending")
    function = TemporalSortFunction(first.column, RowOrder(order.fields[1:]))
    return at.keyed_process((), function, is_changelog=False)
