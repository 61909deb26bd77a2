"""How elements are built from the columns of a batch: column by column, not element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from penstock.common.types import Row, RowKind, make_row
from penstock.datastream.lowering.expressions import Column, Expression, NotLowerable
from penstock.datastream.lowering.values import expression_of

Columns = Sequence[list[Any]]


@dataclass(frozen=True)
class FieldShape:
    """A single value: that of a column."""

    column: int

    def elements(self, columns: Columns, count: int) -> list[Any]:
        return columns[self.column]


@dataclass(frozen=True)
class ConstantShape:
    value: bool | int | float | str | None
    text: str

    def elements(self, columns: Columns, count: int) -> list[Any]:
        return list(repeat(self.value, count))


@dataclass(frozen=True)
class TupleShape:
    parts: tuple[Shape, ...]

    def elements(self, columns: Columns, count: int) -> list[Any]:
        return _tuples(self.parts, columns, count)


@dataclass(frozen=True)
class ListShape:
    parts: tuple[Shape, ...]

    def elements(self, columns: Columns, count: int) -> list[Any]:
        return list(map(list, _tuples(self.parts, columns, count)))


@dataclass(frozen=True)
class RowShape:
    parts: tuple[Shape, ...]
    names: tuple[str, ...] | None

    def elements(self, columns: Columns, count: int) -> list[Any]:
        values = _tuples(self.parts, columns, count)
        if self.names is None:
            return [Row(*each) for each in values]
        names = list(self.names)
        return [make_row(names, list(each)) for each in values]


Shape = FieldShape | ConstantShape | TupleShape | ListShape | RowShape


def _tuples(parts: tuple[Shape, ...], columns: Columns, count: int) -> list[tuple[Any, ...]]:
    if not parts:
        return [()] * count
    return list(zip(*(part.elements(columns, count) for part in parts), strict=True))


def taken_apart(value: Any) -> tuple[Shape, list[Expression]]:
    """The shape of a traced element, whose fields are numbered in order, and the expressions of the fields.

    Raises NotLowerable if an object that can be changed is in the element twice: it must still be one object there.
    """
    expressions: list[Expression] = []
    shape = _shape(value, expressions, [])
    passed_on = [each for each in expressions if isinstance(each, Column) and each.kind == "other"]
    if len(passed_on) != len(set(passed_on)):
        raise NotLowerable("a list, map or row that is in an element twice")
    return shape, expressions


def _shape(value: Any, expressions: list[Expression], seen: list[Any]) -> Shape:
    if type(value) is list or isinstance(value, Row):
        if any(value is each for each in seen):
            raise NotLowerable("a list or row that is in an element twice")
        seen.append(value)
    if isinstance(value, Row):
        if value.get_row_kind() is not RowKind.INSERT:
            raise NotLowerable("a row that is not an insert")
        names = None if value._fields is None else tuple(value._fields)
        return RowShape(tuple(_shape(each, expressions, seen) for each in value._values), names)
    if type(value) in (tuple, list):
        parts = tuple(_shape(each, expressions, seen) for each in value)
        return TupleShape(parts) if type(value) is tuple else ListShape(parts)
    expressions.append(expression_of(value))
    return FieldShape(len(expressions) - 1)
