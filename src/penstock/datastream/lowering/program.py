"""What Spark SQL computes in place of functions: columns that are added to a DataFrame, and become elements."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.datastream.lowering.expressions import (
    Call,
    Column,
    Constant,
    Expression,
    Kind,
    NotLowerable,
    call,
    sql_type,
)
from penstock.datastream.lowering.shapes import (
    ConstantShape,
    FieldShape,
    ListShape,
    RowShape,
    Shape,
    TupleShape,
    taken_apart,
)
from penstock.datastream.lowering.tracing import Branch, Dropped, Element, InPython, Tree

if TYPE_CHECKING:
    from penstock.datastream.lowering.aggregation import Aggregation

DROPPED, LOWERED, IN_PYTHON = 0, 1, 2
"""What the verdict column says of a row."""
LONGEST_SQL = 50_000


@dataclass(frozen=True)
class ComputedColumn:
    """A column that Spark SQL computes and adds."""

    name: str
    sql: str
    kind: Kind
    like: int | None
    """The column whose type it has, if its kind does not say it."""
    is_decimal: bool = False
    """True for whole numbers that may be larger than 64 bits."""


@dataclass(frozen=True)
class LoweredProgram:
    """`verdict_sql` says for each row: dropped, lowered, or left to Python. Columns are called c0, c1 ... in SQL."""

    verdict_name: str
    verdict_sql: str
    computed: tuple[ComputedColumn, ...]
    passed_on: tuple[int, ...]
    """Columns of the DataFrame that elements have as they are."""
    shape: Shape
    """Its fields are `passed_on`, then `computed`."""
    aggregation: Aggregation | None = None
    """How rows are reduced by key, if they are."""
    has_functions: bool = True
    """False if rows that are left to Python are elements as they are."""


def program_of(tree: Tree) -> LoweredProgram:
    """The program of a tree; NotLowerable if the ways through the functions do not lead to elements of one shape."""
    elements = [each for each in _leaves(tree) if isinstance(each, Element)]
    if not elements:
        raise NotLowerable("no element comes out of it")
    apart = [taken_apart(each.value) for each in elements]
    shape = apart[0][0]
    if any(other != shape for other, _ in apart):
        raise NotLowerable("elements of different shapes")
    verdict = _verdict(tree)
    fields = _Fields(tree, [expressions for _, expressions in apart])
    final = fields.settle(shape)
    computed = tuple(fields.computed)
    if len(verdict) + sum(len(each.sql) for each in computed) > LONGEST_SQL:
        raise NotLowerable("the SQL gets too long")
    return named_program(verdict, computed, tuple(fields.passed_on), final)


def named_program(
    verdict: str, computed: tuple[ComputedColumn, ...], passed_on: tuple[int, ...], shape: Shape, more: str = ""
) -> LoweredProgram:
    """A program whose columns are named after all they depend on: files of another program are not mistaken for its."""
    text = repr((verdict, [each.sql for each in computed], passed_on, shape, more))
    prefix = f"_penstock_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    named = tuple(replace(each, name=f"{prefix}_{at}") for at, each in enumerate(computed))
    return LoweredProgram(prefix, verdict, named, passed_on, shape)


def _leaves(tree: Tree) -> Iterator[Dropped | InPython | Element]:
    if isinstance(tree, Branch):
        yield from _leaves(tree.if_true)
        yield from _leaves(tree.if_false)
    else:
        yield tree


def _verdict(tree: Tree) -> str:
    match tree:
        case Dropped(computed):
            return _unless_null(computed, DROPPED)
        case InPython():
            return str(IN_PYTHON)
        case Branch(condition, if_true, if_false):
            asked = condition_sql(condition)
            yes, no = _verdict(if_true), _verdict(if_false)
            return f"CASE WHEN {asked} THEN {yes} WHEN NOT {asked} THEN {no} ELSE {IN_PYTHON} END"
        case Element(_, computed):
            return _unless_null(computed, LOWERED)


def _unless_null(computed: Sequence[Call], verdict: int) -> str:
    if not computed:
        return str(verdict)
    tests = " OR ".join(f"{each.sql()} IS NULL" for each in computed)
    return f"CASE WHEN {tests} THEN {IN_PYTHON} ELSE {verdict} END"


def condition_sql(condition: Expression) -> str:
    return f"({call('boolean_truth', condition).sql()})"


class _Fields:
    """Decides for every field of the shape where its values come from."""

    def __init__(self, tree: Tree, by_leaf: Sequence[list[Expression]]) -> None:
        self._tree = tree
        self._by_leaf = by_leaf
        self.passed_on: list[int] = []
        self.computed: list[ComputedColumn] = []
        self._places: dict[int, int | Constant] = {}

    def settle(self, shape: Shape) -> Shape:
        for field in range(len(self._by_leaf[0])):
            self._decide(field)
        return self._filled(shape)

    def _decide(self, field: int) -> None:
        choices = set(expressions[field] for expressions in self._by_leaf)
        only = next(iter(choices)) if len(choices) == 1 else None
        columns = {each.index for each in choices if isinstance(each, Column)}
        if isinstance(only, Constant):
            self._places[field] = only
        elif len(columns) == 1 and all(isinstance(each, Column) for each in choices):
            (index,) = columns
            if index not in self.passed_on:
                self.passed_on.append(index)
            self._places[field] = index
        else:
            self._compute(field, choices)

    def _compute(self, field: int, choices: set[Expression]) -> None:
        kinds = {each.kind for each in choices} - {"none"}
        types = {(each.index, each.spark_type) for each in choices if isinstance(each, Column)}
        if len(kinds) != 1:
            raise NotLowerable(f"a field that is one of {sorted(kinds)}")
        (kind,) = kinds
        if kind == "other" and len({spark_type for _, spark_type in types}) != 1:
            raise NotLowerable("a field of several types")
        sql = _field_sql(self._tree, field, kind)
        self._places[field] = ~len(self.computed)
        self.computed.append(ComputedColumn("", sql, kind, min(types)[0] if kind == "other" else None))

    def _filled(self, shape: Shape) -> Shape:
        match shape:
            case FieldShape(field):
                place = self._places[field]
                if isinstance(place, Constant):
                    return ConstantShape(place.value, place.text)
                return FieldShape(self.passed_on.index(place) if place >= 0 else len(self.passed_on) + ~place)
            case TupleShape(parts):
                return TupleShape(tuple(map(self._filled, parts)))
            case ListShape(parts):
                return ListShape(tuple(map(self._filled, parts)))
            case RowShape(parts, names):
                return RowShape(tuple(map(self._filled, parts)), names)
        return shape


def _field_sql(tree: Tree, field: int, kind: Kind) -> str:
    match tree:
        case Branch(condition, if_true, if_false):
            asked = condition_sql(condition)
            yes, no = _field_sql(if_true, field, kind), _field_sql(if_false, field, kind)
            return f"CASE WHEN {asked} THEN {yes} WHEN NOT {asked} THEN {no} END"
        case Element(value, _):
            expression = taken_apart(value)[1][field]
            if isinstance(expression, Column):
                return expression.sql_as_kind()
            if expression.kind != "none":
                return expression.sql()
    return "NULL" if kind == "other" else f"CAST(NULL AS {sql_type(kind)})"
