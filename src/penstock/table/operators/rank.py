"""The first rows of each key in some order: ROW_NUMBER() <= n, ORDER BY ... LIMIT n, LIMIT n."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

from penstock.datastream.functions import KeyedProcessFunction, RuntimeContext
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import value_state
from penstock.table.rows import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    RowOrder,
    RowTuple,
    is_accumulate,
    values_of,
)


class TopNFunction(KeyedProcessFunction):
    """Keeps the key's rows in order and emits how the ranks from `start` to `end` change.

    Rows behind the last rank are kept only where a row before them may go away again (`keeps_all`). With `unique_key` a
    row replaces the one with the same key.
    """

    def __init__(
        self,
        order: RowOrder,
        ranks: tuple[int, int],
        emits_rank: bool,
        generates_update_before: bool,
        is_changelog: bool,
        keeps_all: bool,
        unique_key: tuple[int, ...] | None,
        ttl_ms: int,
    ) -> None:
        self.order = order
        self.start, self.end = ranks
        self.emits_rank = emits_rank
        self.generates_update_before = generates_update_before
        self.is_changelog = is_changelog
        self.keeps_all = keeps_all
        self.unique_key = unique_key
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "rankState", self.ttl_ms)
        self.sort_key = self.order.key
        self.key_of = None if self.unique_key is None else values_of(self.unique_key)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        row, kind = (value[:-1], value[-1]) if self.is_changelog else (value, INSERT)
        before = self.state.value() or []
        after = list(before)
        replaced = self.removed(after, row, kind)
        if is_accumulate(kind):
            after.insert(bisect_right(after, self.sort_key(row), key=self.sort_key), row)
        if not self.keeps_all:
            del after[self.end :]
        if after:
            self.state.update(after)
        else:
            self.state.clear()
        if self.emits_rank or self.start > 1:
            yield from self.changed_ranks(before, after)
        else:
            yield from self.changed_rows(before[: self.end], after[: self.end], row, replaced)

    def removed(self, rows: list[RowTuple], row: RowTuple, kind: int) -> RowTuple | None:
        """Take out the row that this one replaces or retracts."""
        if self.key_of is not None:
            key = self.key_of(row)
            for place, known in enumerate(rows):
                if self.key_of(known) == key:
                    return rows.pop(place)
            return None
        if is_accumulate(kind):
            return None
        place = bisect_left(rows, self.sort_key(row), key=self.sort_key)
        while place < len(rows) and self.order.compare(rows[place], row) == 0:
            if rows[place] == row:
                return rows.pop(place)
            place += 1
        return None

    def changed_ranks(self, before: list[RowTuple], after: list[RowTuple]) -> Iterator[RowTuple]:
        changes = self.changes_by_rank(before, after)
        if self.unique_key is None:
            yield from changes
            return
        # As Flink does it where rows are replaced by key: a key is gone from its old rank before it gets a new one.
        later = []
        for change in changes:
            if change[-1] == UPDATE_BEFORE:
                yield change
            else:
                later.append(change)
        yield from later

    def changes_by_rank(self, before: list[RowTuple], after: list[RowTuple]) -> Iterator[RowTuple]:
        for rank in range(self.start, self.end + 1):
            old = before[rank - 1] if rank <= len(before) else None
            new = after[rank - 1] if rank <= len(after) else None
            if old is None and new is None:
                return
            if old == new:
                continue
            if old is None:
                yield self.output(new, rank, INSERT)
            elif new is None:
                yield self.output(old, rank, DELETE)
            else:
                if self.generates_update_before:
                    yield self.output(old, rank, UPDATE_BEFORE)
                yield self.output(new, rank, UPDATE_AFTER)

    def changed_rows(
        self, before: list[RowTuple], after: list[RowTuple], row: RowTuple, replaced: RowTuple | None
    ) -> Iterator[RowTuple]:
        if replaced is not None and replaced in before and self.key_of is not None and row in after:
            if replaced != row:
                if self.generates_update_before:
                    yield (*replaced, UPDATE_BEFORE)
                yield (*row, UPDATE_AFTER)
            return
        gone, come = list(before), []
        for each in after:
            if each in gone:
                gone.remove(each)
            else:
                come.append(each)
        for each in gone:
            yield (*each, DELETE)
        for each in come:
            yield (*each, INSERT)

    def output(self, row: Any, rank: int, kind: int) -> RowTuple:
        return (*row, rank, kind) if self.emits_rank else (*row, kind)


class FirstFunction(KeyedProcessFunction):
    """The first row of each key, without its rank, of rows that are never taken back: an update where one is better."""

    def __init__(self, order: RowOrder, generates_update_before: bool, is_changelog: bool, ttl_ms: int) -> None:
        self.order = order
        self.generates_update_before = generates_update_before
        self.is_changelog = is_changelog
        self.ttl_ms = ttl_ms

    def open(self, runtime_context: RuntimeContext) -> None:
        self.state = value_state(runtime_context, "rankState", self.ttl_ms)

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        row = value[:-1] if self.is_changelog else value
        known = self.state.value()
        if known is None:
            self.state.update(row)
            yield (*row, INSERT)
        elif self.order.compare(row, known) < 0:
            self.state.update(row)
            if self.generates_update_before:
                yield (*known, UPDATE_BEFORE)
            yield (*row, UPDATE_AFTER)


class LimitFunction(KeyedProcessFunction):
    """LIMIT without an order, of rows that never change: rows by their number."""

    def __init__(self, ranks: tuple[int, int]) -> None:
        self.start, self.end = ranks

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = value_state(runtime_context, "rankState")

    def process_element(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        number = (self.count.value() or 0) + 1
        if number <= self.end:
            self.count.update(number)
            if number >= self.start:
                yield value


def rank(at: Translation) -> TableStream:
    node, source = at.node, at.input
    if node["rankType"] != "ROW_NUMBER":
        raise node.unsupported(f"{node['rankType']} on streams")
    limits = node["rankRange"]
    if limits["type"] != "Constant":
        raise node.unsupported("a number of rows that is no constant")
    ranks = limits["start"], limits["end"]
    partition = tuple(node["partition"]["fields"])
    order, strategy = RowOrder.of(node["orderBy"]), node["rankStrategy"]
    emits_rank, ttl_ms = node["outputRowNumber"], node.state_ttl_ms()
    if not order.fields and not source.is_changelog and not emits_rank:
        return at.keyed_process(partition, LimitFunction(ranks), is_changelog=False)
    generates_update_before = node["generateUpdateBefore"]
    function: KeyedProcessFunction
    if strategy["type"] == "AppendFast" and ranks == (1, 1) and not emits_rank:
        function = FirstFunction(order, generates_update_before, source.is_changelog, ttl_ms)
    else:
        keys = tuple(strategy["primaryKeys"]) if strategy["type"] == "UpdateFast" else None
        function = TopNFunction(
            order,
            ranks,
            emits_rank,
            generates_update_before,
            source.is_changelog,
            strategy["type"] == "Retract",
            keys,
            ttl_ms,
        )
    return at.keyed_process(partition, function, is_changelog=True)
