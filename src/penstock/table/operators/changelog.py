"""Changes made complete, or left out: for sources and sinks that know only part of a changelog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.codegen.compiler import CompiledCalc
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import value_state
from penstock.table.rows import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, RowTuple, is_accumulate


def without_update_before(rows: list[RowTuple]) -> list[RowTuple]:
    return [row for row in rows if row[-1] != UPDATE_BEFORE]


def drop_update_before(at: Translation) -> TableStream:
    if not at.input.is_changelog:
        return at.input
    return TableStream(at.on_rows(without_update_before), at.node.row_type, True)


class NormalizeFunction(KeyedProcessFunction):
    """Makes of upserts and deletes by key a changelog in which each change follows from the row before."""

    def __init__(self, generates_update_before: bool, condition: CompiledCalc | None, ttl_ms: int) -> None:
        self.generates_update_before = generates_update_before
        self.condition = condition
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "changelogNormalizeState", self.ttl_ms)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        row, kind = value[:-1], value[-1]
        known = self.state.value()
        passes = is_accumulate(kind) and (self.condition is None or bool(self.condition([row])))
        if passes:
            self.state.update(row)
            if known is None:
                yield (*row, INSERT)
            elif self.ttl_ms > 0 or known != row:
                if self.generates_update_before:
                    yield (*known, UPDATE_BEFORE)
                yield (*row, UPDATE_AFTER)
        elif known is not None and kind != UPDATE_BEFORE:
            self.state.clear()
            yield (*known, DELETE)


def changelog_normalize(at: Translation) -> TableStream:
    node = at.node
    condition = node.get("filterCondition")
    compiled = None if condition is None else CompiledCalc(None, condition, at.input.row_type, at.context.expressions)
    function = NormalizeFunction(node["generateUpdateBefore"], compiled, node.state_ttl_ms())
    source = at.input if at.input.is_changelog else changelog_of(at)
    keyed = Translation(at.env, at.context, node, (source,))
    return keyed.keyed_process(tuple(node["uniqueKeys"]), function, is_changelog=True)


def changelog_of(at: Translation) -> TableStream:
    from penstock.table.operators.calc import with_kinds

    return TableStream(at.on_rows(with_kinds, "kinds"), at.input.row_type, True)
