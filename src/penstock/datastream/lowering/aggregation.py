"""sum, min and max of a field by key, reduced by Spark before the source is read.

Spark gives one record for each key; rows that are left to Python come as they are. The job's own operator reduces what
it gets, as always: it only gets less. So nothing depends on Spark having seen all rows of a key; where keys go, in
which order, and what happens to None is still decided by Python. The result is the same if the order of reducing does
not matter. It does matter for floats, and for fields that are neither part of the key nor constant: such jobs are not
lowered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from types import FunctionType
from typing import Any

from penstock.datastream.fields import DeclaredKey, FieldAggregation, FieldKey
from penstock.datastream.lowering.expressions import Call, Column, Expression, Kind, NotLowerable
from penstock.datastream.lowering.program import ComputedColumn, LoweredProgram, named_program
from penstock.datastream.lowering.purity import pure_function
from penstock.datastream.lowering.shapes import (
    ConstantShape,
    FieldShape,
    ListShape,
    RowShape,
    Shape,
    TupleShape,
)
from penstock.datastream.lowering.values import Value, expression_of

_ORDERED: frozenset[Kind] = frozenset(["int", "string", "boolean"])
"""Kinds whose equal values cannot be distinguished."""
_KEPT: dict[type | None, Kind] = {int: "int", str: "string", bool: "boolean"}
"""By their types in Python."""


@dataclass(frozen=True)
class Aggregation:
    """How rows of `before` become those of the program it belongs to. Names are those of columns in SQL."""

    before: LoweredProgram
    keys: tuple[str, ...]
    needed: str | None
    """A column without which a row is left to Python."""


class _OnlyFields:
    """The path of functions that may pick fields, and nothing else."""

    def decide(self, condition: Expression) -> bool:
        raise NotLowerable("a key that depends on a condition")

    def computed(self, expression: Call) -> None:
        raise NotLowerable("a key that is computed; map it to a field first")


def aggregated(
    program: LoweredProgram, columns: list[Column], selector: Callable[[Any], Any], reduce: FieldAggregation
) -> LoweredProgram:
    """`program` with its elements reduced by key; raises NotLowerable if that could change the result."""
    fields = _fields(program, columns)
    values = [[Value(Column(at, "", kind), _OnlyFields())] for at, (_, kind) in enumerate(fields)]
    element = program.shape.elements(values, 1)[0]
    keys = _picked(_key(selector.select if isinstance(selector, DeclaredKey) else selector, element))
    if isinstance(selector, DeclaredKey) and [fields[at][1] for at in keys] != [_KEPT.get(selector.kept_kind)]:
        raise NotLowerable("a declared type of the key that may change it")
    position, parts = _position(program.shape, reduce.field), _with_parts(program.shape).parts
    part = parts[position]
    for other in (*parts[:position], *parts[position + 1 :]):
        if not isinstance(other, ConstantShape) and not (isinstance(other, FieldShape) and other.column in keys):
            raise NotLowerable("a field besides the key")
    if not keys or any(fields[at][1] not in _ORDERED for at in keys):
        raise NotLowerable("a key of other than whole numbers, text and truth values")
    total, kind, needed = _total(part, fields, keys, reduce)
    return _built(
        program, keys, position, ComputedColumn("", total, kind, None, is_decimal=reduce.kind == "sum"), needed
    )


def _fields(program: LoweredProgram, columns: list[Column]) -> list[tuple[str, Kind]]:
    """The name in SQL and the kind of every field that elements are made of."""
    passed_on: list[tuple[str, Kind]] = [(columns[at].sql(), columns[at].kind) for at in program.passed_on]
    return passed_on + [(each.name, each.kind) for each in program.computed]


def _key(selector: Callable[[Any], Any], element: Any) -> Any:
    if isinstance(selector, (itemgetter, FieldKey)):
        return selector(element)
    if not isinstance(selector, FunctionType):
        raise NotLowerable("a key selector that is not a plain function")
    function = pure_function(selector)
    if function.tests_none:
        raise NotLowerable("a key selector that tests for None")
    return function.call(element)


def _picked(key: Any) -> list[int]:
    """The fields that a key consists of."""
    found = []
    for each in key if isinstance(key, tuple) else (key,):
        expression = expression_of(each)
        if isinstance(expression, Column):
            found.append(expression.index)
    return list(dict.fromkeys(found))


def _with_parts(shape: Shape) -> TupleShape | ListShape | RowShape:
    if not isinstance(shape, (TupleShape, ListShape, RowShape)):
        raise NotLowerable("elements without fields")
    return shape


def _position(shape: Shape, field: int | str) -> int:
    """Which part of an element is reduced."""
    parts = _with_parts(shape).parts
    if isinstance(field, str):
        if not isinstance(shape, RowShape) or shape.names is None or field not in shape.names:
            raise NotLowerable("a field that elements do not have")
        return shape.names.index(field)
    if not -len(parts) <= field < len(parts):
        raise NotLowerable("a field that elements do not have")
    return field % len(parts)


def _total(
    part: Shape, fields: list[tuple[str, Kind]], keys: list[int], reduce: FieldAggregation
) -> tuple[str, Kind, str | None]:
    """The reduced field in SQL, its kind, and the column that must not be null for it.

    38 digits hold every sum of 64-bit numbers: there are no 10**19 rows.
    """
    if isinstance(part, ConstantShape) and reduce.kind == "sum" and type(part.value) is int:
        return f"CAST(count(1) AS DECIMAL(19,0)) * CAST('{part.value}' AS DECIMAL(19,0))", "int", None
    if not isinstance(part, FieldShape) or part.column in keys:
        raise NotLowerable("a reduced field that is part of the key, or no single value")
    name, kind = fields[part.column]
    if reduce.kind == "sum" and kind == "int":
        return f"sum(CAST({name} AS DECIMAL(28,0)))", kind, name
    if reduce.kind in ("min", "max") and kind in _ORDERED:
        of_kind = f"CAST({name} AS BIGINT)" if kind == "int" else name
        return f"{reduce.kind}({of_kind})", kind, name
    raise NotLowerable(f"{reduce.kind} of a {kind}")


def _built(
    program: LoweredProgram, keys: list[int], position: int, total: ComputedColumn, needed: str | None
) -> LoweredProgram:
    count = len(program.passed_on)
    passed_on = [program.passed_on[at] for at in keys if at < count]
    computed = [program.computed[at - count] for at in keys if at >= count]
    ordered = [at for at in keys if at < count] + [at for at in keys if at >= count]
    places = {field: place for place, field in enumerate(ordered)}

    def moved(at: int, part: Shape) -> Shape:
        if at == position:
            return FieldShape(len(ordered))
        return FieldShape(places[part.column]) if isinstance(part, FieldShape) else part

    shape = _with_parts(program.shape)
    parts = tuple(moved(at, part) for at, part in enumerate(shape.parts))
    names = [f"c{at}" for at in passed_on] + [each.name for each in computed]
    done = named_program(
        program.verdict_sql,
        (*computed, total),
        tuple(passed_on),
        replace(shape, parts=parts),
        repr(names),
    )
    key_columns = tuple(replace(new, name=old.name) for new, old in zip(done.computed, computed, strict=False))
    return replace(
        done,
        computed=(*key_columns, done.computed[-1]),
        aggregation=Aggregation(program, tuple(names), needed),
        has_functions=program.has_functions,
    )
