"""GROUP BY without a window: the groups' results, and how they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.functions.aggregates import AggregateHandler, make_aggregates
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import value_state
from penstock.table.rows import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    RowTuple,
    is_accumulate,
    values_of,
)


class GroupAggregateFunction(KeyedProcessFunction):
    """Emits the new result of a group if it changed. The state is [number of rows, accumulators, last result]."""

    def __init__(
        self,
        grouping: tuple[int, ...],
        aggregates: AggregateHandler,
        is_changelog: bool,
        generates_update_before: bool,
        ttl_ms: int,
    ) -> None:
        self.grouping = grouping
        self.aggregates = aggregates
        self.is_changelog = is_changelog
        self.generates_update_before = generates_update_before
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "groupAggregateState", self.ttl_ms)
        self.group_of = values_of(self.grouping)
        self.accumulate, self.get_value = self.aggregates.accumulate, self.aggregates.get_value

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        accumulates = not self.is_changelog or is_accumulate(value[-1])
        group = self.state.value()
        if group is None:
            if not accumulates:
                return  # Its row was never here, or has expired.
            group = [0, self.aggregates.create_accumulators(), None]
        before = group[2]
        if accumulates:
            group[0] += 1
            self.accumulate(group[1], value)
        else:
            group[0] -= 1
            self.aggregates.retract(group[1], value)
        key = self.group_of(value)
        if group[0] == 0:
            self.state.clear()
            if before is not None:
                yield (*key, *before, DELETE)
            return
        after = group[2] = self.get_value(group[1])
        self.state.update(group)
        if before is None:
            yield (*key, *after, INSERT)
        elif self.ttl_ms > 0 or before != after:  # With a time to live, the same result again keeps those behind alive.
            if self.generates_update_before:
                yield (*key, *before, UPDATE_BEFORE)
            yield (*key, *after, UPDATE_AFTER)


class DistinctFunction(KeyedProcessFunction):
    """SELECT DISTINCT of rows that never change: each group once."""

    def __init__(self, grouping: tuple[int, ...], ttl_ms: int) -> None:
        self.grouping = grouping
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "groupAggregateState", self.ttl_ms)
        self.group_of = values_of(self.grouping)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        if self.state.value() is None:
            self.state.update(True)
            yield self.group_of(value)


def group_aggregate(at: Translation) -> TableStream:
    node, source = at.node, at.input
    grouping = tuple(node["grouping"])
    ttl_ms = node.state_ttl_ms()
    if not node["aggCalls"] and not source.is_changelog and ttl_ms == 0:
        return at.keyed_process(grouping, DistinctFunction(grouping, ttl_ms), is_changelog=False)
    aggregates = make_aggregates(
        node["aggCalls"], source.row_type, node["aggCallNeedRetractions"], at.context.expressions
    )
    function = GroupAggregateFunction(grouping, aggregates, source.is_changelog, node["generateUpdateBefore"], ttl_ms)
    return at.keyed_process(grouping, function, is_changelog=True)
