"""Joins of two streams of changes, without a bound in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from penstock.table.codegen.compiler import ExpressionContext, compile_condition
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.operators.states import map_state
from penstock.table.rows import (
    DELETE,
    INSERT,
    RowTuple,
    hashable,
    is_accumulate,
    is_hashable,
    values_of,
)
from penstock.table.types import RowType

Matches = Callable[[RowTuple, RowTuple], bool]


class JoinCondition:
    """Whether two rows match: their keys are not NULL where NULLs are no match, and the rest of ON is true."""

    def __init__(self, spec: Any, left: RowType, right: RowType, context: ExpressionContext) -> None:
        self.spec = spec
        self.left = left
        self.right = right
        self.context = context
        pairs = zip(spec["leftKeys"], spec["filterNulls"], strict=True)
        self.never_null = tuple(left_key for left_key, filters in pairs if filters)
        rest = spec["nonEquiCondition"]
        joined = RowType([*left.fields, *right.fields])
        self.rest = None if rest is None else compile_condition(rest, joined, context)

    def __reduce__(self) -> tuple[Any, ...]:
        return JoinCondition, (self.spec, self.left, self.right, self.context)

    def matches(self, left: RowTuple, right: RowTuple) -> bool:
        for column in self.never_null:  # Equal keys come together, NULLs too.
            if left[column] is None:
                return False
        return self.rest is None or self.rest((*left, *right))


class SideState:
    """The rows of one side for the current key: by their unique key, or by the whole row with a count.

    An entry is [row, count, number of matches on the other side].
    """

    def __init__(self, row_type: RowType, unique_key: tuple[int, ...] | None) -> None:
        self.unique_key = unique_key
        columns = range(len(row_type)) if unique_key is None else unique_key
        types = row_type.field_types()
        self.is_plain = all(is_hashable(types[column]) for column in columns)
        self.key_values = values_of(tuple(columns))

    def open(self, context: RuntimeContext, name: str, ttl_ms: int) -> None:
        self.records = map_state(context, name, ttl_ms)

    def key_of(self, row: RowTuple) -> RowTuple:
        key = self.key_values(row)
        return key if self.is_plain else hashable(key)

    def add(self, row: RowTuple, matches: int) -> None:
        key = self.key_of(row)
        entry = None if self.unique_key is not None else self.records.get(key)
        if entry is None:
            self.records.put(key, [row, 1, matches])
        else:
            self.records.put(key, [row, entry[1] + 1, matches])

    def retract(self, row: RowTuple) -> None:
        key = self.key_of(row)
        entry = self.records.get(key)
        if entry is None:
            return
        if entry[1] > 1:
            self.records.put(key, [entry[0], entry[1] - 1, entry[2]])
        else:
            self.records.remove(key)

    def set_matches(self, row: RowTuple, matches: int) -> None:
        key = self.key_of(row)
        entry = self.records.get(key)
        if entry is not None:
            self.records.put(key, [entry[0], entry[1], matches])

    def all(self) -> list[list[Any]]:
        return list(self.records.values())


class JoinFunction(KeyedCoProcessFunction):
    """What both kinds of joins share: the rows of both sides, and which of them match a row."""

    def __init__(
        self,
        condition: JoinCondition,
        sides: tuple[SideState, SideState],
        are_changelogs: tuple[bool, bool],
        ttls_ms: tuple[int, int],
        emits_changes: bool,
    ) -> None:
        self.condition = condition
        self.sides = sides
        self.are_changelogs = are_changelogs
        self.ttls_ms = ttls_ms
        self.emits_changes = emits_changes

    def open(self, runtime_context: RuntimeContext) -> None:
        for side, name, ttl_ms in zip(self.sides, ("leftState", "rightState"), self.ttls_ms, strict=True):
            side.open(runtime_context, name, ttl_ms)

    def process_element1(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        return self.process(0, value)

    def process_element2(self, value: RowTuple, ctx: Any) -> Iterator[RowTuple]:
        return self.process(1, value)

    def process(self, side: int, value: RowTuple) -> Iterator[RowTuple]:
        raise NotImplementedError

    def parts(self, side: int, value: RowTuple) -> tuple[RowTuple, int]:
        return (value[:-1], value[-1]) if self.are_changelogs[side] else (value, INSERT)

    def matching(self, side: int, row: RowTuple) -> list[list[Any]]:
        """The entries of the other side that match; one for each row, also of equal rows."""
        matches = self.condition.matches
        others = self.sides[1 - side].all()
        if side == 0:
            found = [entry for entry in others if matches(row, entry[0])]
        else:
            found = [entry for entry in others if matches(entry[0], row)]
        return found

    def emitted(self, row: RowTuple, kind: int) -> RowTuple:
        return (*row, kind) if self.emits_changes else row


class RegularJoinFunction(JoinFunction):
    """INNER, LEFT, RIGHT and FULL joins. A row of an outer side without a match is joined with NULLs."""

    def __init__(self, *parts: Any, outer: tuple[bool, bool], widths: tuple[int, int]) -> None:
        super().__init__(*parts)
        self.outer = outer
        self.widths = widths

    def joined(self, side: int, row: RowTuple, other: RowTuple) -> RowTuple:
        return (*row, *other) if side == 0 else (*other, *row)

    def padded(self, side: int, row: RowTuple) -> RowTuple:
        return self.joined(side, row, (None,) * self.widths[1 - side])

    def process(self, side: int, value: RowTuple) -> Iterator[RowTuple]:
        row, kind = self.parts(side, value)
        mine, others = self.sides[side], self.sides[1 - side]
        is_outer, other_is_outer = self.outer[side], self.outer[1 - side]
        found = self.matching(side, row)
        total = sum([entry[1] for entry in found])
        is_plain = not is_outer and not other_is_outer
        if is_accumulate(kind):
            if is_outer and not found:
                yield self.emitted(self.padded(side, row), INSERT)
            mine.add(row, total)
            if other_is_outer:
                for other, count, matches in found:
                    if matches == 0:
                        for _ in range(count):
                            yield self.emitted(self.padded(1 - side, other), DELETE)
                    others.set_matches(other, matches + 1)
            yield from self.all_joined(side, row, found, kind if is_plain else INSERT)
        else:
            mine.retract(row)
            if is_outer and not found:
                yield self.emitted(self.padded(side, row), DELETE)
            yield from self.all_joined(side, row, found, DELETE if is_outer else kind)
            if other_is_outer:
                for other, count, matches in found:
                    if matches == 1:
                        for _ in range(count):
                            yield self.emitted(self.padded(1 - side, other), INSERT)
                    others.set_matches(other, max(matches - 1, 0))

    def all_joined(self, side: int, row: RowTuple, found: list[list[Any]], kind: int) -> Iterator[RowTuple]:
        for other, count, _ in found:
            for _ in range(count):
                yield self.emitted(self.joined(side, row, other), kind)


class SemiAntiJoinFunction(JoinFunction):
    """Rows of the left side that have (or, `is_anti`, do not have) a match on the right."""

    def __init__(self, *parts: Any, is_anti: bool) -> None:
        super().__init__(*parts)
        self.is_anti = is_anti

    def process(self, side: int, value: RowTuple) -> Iterator[RowTuple]:
        row, kind = self.parts(side, value)
        found = self.matching(side, row)
        if side == 0:
            if bool(found) != self.is_anti:
                yield self.emitted(row, kind)
            if is_accumulate(kind):
                self.sides[0].add(row, sum([entry[1] for entry in found]))
            else:
                self.sides[0].retract(row)
            return
        left, right = self.sides
        if is_accumulate(kind):
            right.add(row, 0)
            for other, count, matches in found:
                if matches == 0:
                    for _ in range(count):
                        yield self.emitted(other, DELETE if self.is_anti else kind)
                left.set_matches(other, matches + 1)
        else:
            right.retract(row)
            for other, count, matches in found:
                if matches == 1:
                    for _ in range(count):
                        yield self.emitted(other, INSERT if self.is_anti else kind)
                left.set_matches(other, max(matches - 1, 0))


OUTER = {"INNER": (False, False), "LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}


def _unique_key(upsert_keys: list[list[int]] | None, join_keys: list[int]) -> tuple[int, ...] | None:
    """The smallest of a side's unique keys; None if it has none."""
    if not upsert_keys:
        return None
    within = [key for key in upsert_keys if set(key) <= set(join_keys)]
    return tuple(sorted(within or upsert_keys, key=len)[0])


def join(at: Translation) -> TableStream:
    node, spec = at.node, at.node["joinSpec"]
    left, right = at.inputs
    condition = JoinCondition(spec, left.row_type, right.row_type, at.context.expressions)
    keys = spec["leftKeys"], spec["rightKeys"]
    sides = (
        SideState(left.row_type, _unique_key(node.get("leftUpsertKeys"), keys[0])),
        SideState(right.row_type, _unique_key(node.get("rightUpsertKeys"), keys[1])),
    )
    are_changelogs = left.is_changelog, right.is_changelog
    ttls = node.state_ttl_ms(0), node.state_ttl_ms(1)
    kind = spec["joinType"]
    function: JoinFunction
    if kind in ("SEMI", "ANTI"):
        emits_changes = kind == "ANTI" or any(are_changelogs)
        function = SemiAntiJoinFunction(condition, sides, are_changelogs, ttls, emits_changes, is_anti=kind == "ANTI")
    else:
        emits_changes = kind != "INNER" or any(are_changelogs)
        widths = len(left.row_type), len(right.row_type)
        function = RegularJoinFunction(
            condition, sides, are_changelogs, ttls, emits_changes, outer=OUTER[kind], widths=widths
        )
    return at.keyed_co_process(keys, function, emits_changes)
