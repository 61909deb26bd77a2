"""Expressions of a compiled plan (RexNodes) as small frozen nodes, each with its type."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.logical_types import parse_type, row_type_of
from penstock.table.types import DataType, RowType
from penstock.table.values import times
from penstock.table.values.numbers import decimal_of_type, to_float32


@dataclass(frozen=True)
class Node:
    """An expression."""

    type: DataType

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children():
            yield from child.walk()

    def children(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True)
class InputRef(Node):
    """A column of the input."""

    index: int


@dataclass(frozen=True)
class Literal(Node):
    """A constant, as a value inside a row."""

    value: Any


@dataclass(frozen=True)
class Symbol(Node):
    """A word that is an argument of a function, such as a unit of time."""

    name: str


@dataclass(frozen=True)
class Range:
    """Values between two bounds. A bound that is None does not exist."""

    lower: Any
    upper: Any
    is_lower_closed: bool
    is_upper_closed: bool


@dataclass(frozen=True)
class Sarg(Node):
    """A set of ranges to search in, and what NULL is: TRUE, FALSE or UNKNOWN."""

    ranges: tuple[Range, ...]
    null_as: str


@dataclass(frozen=True)
class FieldAccess(Node):
    """A field of a row."""

    row: Node
    index: int

    def children(self) -> tuple[Node, ...]:
        return (self.row,)


@dataclass(frozen=True)
class Call(Node):
    """A built-in function or operator."""

    function: str
    operands: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        return self.operands


@dataclass(frozen=True)
class UserCall(Node):
    """A function of the user."""

    name: str
    operands: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        return self.operands


def parse_rex(rex: Mapping[str, Any]) -> Node:
    """The node of a RexNode in a plan."""
    match rex["kind"]:
        case "INPUT_REF":
            return InputRef(parse_type(rex["type"]), rex["inputIndex"])
        case "LITERAL":
            return _literal(rex)
        case "FIELD_ACCESS":
            return _field_access(rex)
        case "CALL":
            return _call(rex)
    raise UnsupportedFeatureError(f"expressions of kind {rex['kind']} are not supported: {dict(rex)}")


def _field_access(rex: Mapping[str, Any]) -> Node:
    if rex["expr"]["kind"] == "CORREL_VARIABLE":  # The row that a table function is called for.
        correlated = row_type_of(rex["expr"]["type"])
        index = correlated.field_names().index(rex["name"])
        return InputRef(correlated.field_types()[index], index)
    row = parse_rex(rex["expr"])
    if not isinstance(row.type, RowType):
        raise UnsupportedFeatureError(f"field {rex['name']!r} of a value of type {row.type.as_sql()} is not supported")
    index = row.type.field_names().index(rex["name"])
    field = row.type.field_types()[index]
    return FieldAccess(field.nullable() if row.type.is_nullable else field, row, index)


def _call(rex: Mapping[str, Any]) -> Node:
    operands = tuple(parse_rex(operand) for operand in rex.get("operands", ()))
    data_type = parse_type(rex["type"])
    name = rex.get("internalName")
    if name is None:
        name = rex.get("catalogName") or rex.get("systemName") or rex.get("class") or "?"
        return UserCall(data_type, name, operands)
    return Call(data_type, function_name(name), operands)


def function_name(internal: str) -> str:
    """`$CAST$1` is CAST: between the first dollar and the version; `$$SUM0$1` is $SUM0."""
    return internal[1:].rpartition("$")[0] if internal.startswith("$") else internal


def _literal(rex: Mapping[str, Any]) -> Node:
    data_type = parse_type(rex["type"])
    if "symbol" in rex:
        return Symbol(data_type, rex["value"])
    if "sarg" in rex:
        sarg = rex["sarg"]
        ranges = tuple(_range(one, data_type) for one in sarg["ranges"])
        return Sarg(data_type, ranges, sarg.get("nullAs", "UNKNOWN"))
    return Literal(data_type, literal_value(rex.get("value"), data_type))


def _range(description: Mapping[str, Any], data_type: DataType) -> Range:
    lower, upper = description.get("lower"), description.get("upper")
    return Range(
        None if lower is None else literal_value(lower["value"], data_type),
        None if upper is None else literal_value(upper["value"], data_type),
        lower is not None and lower["boundType"] == "CLOSED",
        upper is not None and upper["boundType"] == "CLOSED",
    )


def literal_value(value: Any, data_type: DataType) -> Any:
    """A value inside a row for how a plan writes a literal of this type."""
    if value is None:
        return None
    match data_type:
        case t.BooleanType():
            return value if isinstance(value, bool) else str(value).lower() == "true"
        case t.IntegralType() | t.DayTimeIntervalType() | t.YearMonthIntervalType():
            return int(value)
        case t.FloatType():
            return to_float32(float(value))
        case t.DoubleType():
            return float(value)
        case t.DecimalType(precision=precision, scale=scale):
            return decimal_of_type(Decimal(str(value)), precision, scale)
        case t.CharType() | t.VarCharType():
            return str(value)
        case t.BinaryType() | t.VarBinaryType():
            return base64.b64decode(value)
        case t.DateType():
            return times.date_of_text(value)
        case t.TimeType():
            return times.time_of_text(value)
        case t.TimestampType() | t.LocalZonedTimestampType():  # The plan writes both in UTC.
            return times.timestamp_of_text(value.replace("T", " ").rstrip("Z"))
    raise UnsupportedFeatureError(f"literals of type {data_type.as_sql()} are not supported: {value!r}")
