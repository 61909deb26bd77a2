"""Reads what most JSON messages are: an object whose values have just the types of the columns.

The reader is generated for the columns. It answers None for everything else: numbers in texts, dates in other shapes,
what is missing where it must not be. `JsonDecoder` has the rules for that.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from penstock.table import types as t
from penstock.table.codegen.compiler import compiled
from penstock.table.rows import RowTuple
from penstock.table.types import DataType, RowType
from penstock.table.values import times

_scan_once: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def plain_reader(row_type: RowType, is_iso: bool) -> Callable[[bytes], RowTuple | None] | None:
    """A reader of messages; None if a column has a type for which there is no plain form."""
    read_row = _row_reader(row_type, "T" if is_iso else " ")
    if read_row is None:
        return None

    def read(message: bytes) -> RowTuple | None:
        try:
            text = message.decode()
            value, end = _scan_once(text, 0)
        except (ValueError, StopIteration):
            return None
        return read_row(value) if end == len(text) and value.__class__ is dict else None

    return read


def _row_reader(row_type: RowType, separator: str) -> Callable[[Any], RowTuple | None] | None:
    constants: dict[str, Any] = {}
    lines = []
    for number, field in enumerate(row_type.fields):
        name = f"v{number}"
        found = _lines(name, field.data_type, separator, constants)
        if found is None:
            return None
        lines += [f"{name} = get({field.name!r})", f"if {name} is not None:", *("    " + line for line in found)]
    values = "".join(f"v{number}, " for number in range(len(row_type)))
    body = "".join(f"    {line}\n" for line in ["get = value.get", *lines, f"return ({values})"])
    return compiled(f"def read(value):\n{body}", "read", constants)


def _lines(name: str, data_type: DataType, separator: str, constants: dict[str, Any]) -> list[str] | None:
    """Statements that check a value and make it that of a row, or return None from the reader."""

    def only(kind: str, also: str = "") -> str:
        return f"if {name}.__class__ is not {kind}{also}: return None"

    def called(function: Callable[[Any], Any], kind: str) -> list[str]:
        known = f"c{len(constants)}"
        constants[known] = function
        return [only(kind), f"{name} = {known}({name})", f"if {name} is None: return None"]

    match data_type:
        case t.BooleanType():
            return [only("bool")]
        case t.IntegralType(bits=bits):
            return [only("int", f" or not {-(2 ** (bits - 1))} <= {name} < {2 ** (bits - 1)}")]
        case t.DoubleType():
            return [only("float")]
        case t.CharType() | t.VarCharType():
            return [only("str")]
        case t.TimestampType(precision=precision) if precision >= 3:
            return called(lambda text: times.plain_timestamp(text, separator), "str")
        case t.ArrayType(element_type=element):
            return _called_or_none(called, _array_reader(element, separator), "list")
        case RowType():
            return _called_or_none(called, _row_reader(data_type, separator), "dict")
    return None


def _called_or_none(
    called: Callable[[Callable[[Any], Any], str], list[str]], function: Callable[[Any], Any] | None, kind: str
) -> list[str] | None:
    return None if function is None else called(function, kind)


def _array_reader(element: DataType, separator: str) -> Callable[[Any], Any] | None:
    constants: dict[str, Any] = {}
    lines = _lines("v", element, separator, constants)
    if lines is None:
        return None
    body = "".join(f"            {line}\n" for line in lines)
    source = (
        "def read(values):\n    found = []\n    for v in values:\n        if v is not None:\n"
        f"{body}        found.append(v)\n    return found\n"
    )
    return compiled(source, "read", constants)
