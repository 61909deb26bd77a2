"""How values look in `print()` and text files: as Flink shows them.

Without a declared type, tuples and rows have Flink's look and everything else Python's `str`. With a declared type
all of it looks as in Java: `true`, `null`, `{a=1}`, `1.0E10`.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from penstock.common.types import Row

__all__ = ["format_value", "formatter_for", "pyflink_formatter_for"]

Formatter = Callable[[Any], str]


def format_value(value: object, type_info: TypeInformation | None = None) -> str:
    """The text Flink prints for a value.

    >>> format_value(("hi", 1))
    '(hi,1)'
    >>> format_value(Row("a", None), Types.ROW([Types.STRING(), Types.INT()]))
    '+I[a, null]'
    """
    return formatter_for(type_info)(value)


def pyflink_formatter_for(type_info: TypeInformation | None) -> Formatter:
    """What PyFlink's `print()` makes of elements: Python's own text, unless a type other than a row is declared."""
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return str
    if isinstance(type_info, (RowTypeInfo, ExternalTypeInfo)):
        return lambda row: f"{row.get_row_kind()}[{','.join(map(str, row))}]" if isinstance(row, Row) else str(row)
    return _formatter(type_info)


def formatter_for(type_info: TypeInformation | None) -> Formatter:
    """What `format_value` does for one type, settled once: for printing many values."""
    return format_untyped if type_info is None else _formatter(type_info)


def format_untyped(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({','.join(map(format_untyped, value))})"
    if isinstance(value, Row):
        return _row_text(value, map(format_untyped, value))
    return str(value)


def _formatter(type_info: TypeInformation) -> Formatter:
    match type_info:
        case PickledBytesTypeInfo():
            return format_untyped
        case ExternalTypeInfo():
            return _formatter(type_info._type_info)
        case TupleTypeInfo():
            return _tuple_formatter([_formatter(t) for t in type_info.get_field_types()])
        case RowTypeInfo():
            return _row_formatter([_formatter(t) for t in type_info.get_field_types()], type_info)
        case ListTypeInfo():
            return _list_formatter(_formatter(type_info.elem_type))
        case PrimitiveArrayTypeInfo() | BasicArrayTypeInfo() | ObjectArrayTypeInfo():
            return _list_formatter(_formatter(type_info._element_type))
        case MapTypeInfo():
            return _map_formatter(_formatter(type_info._key_type_info), _formatter(type_info._value_type_info))
    return format_float if type_info == Types.FLOAT() else format_as_java


def _tuple_formatter(fields: list[Formatter]) -> Formatter:
    def format_tuple(value: Any) -> str:
        if not isinstance(value, (tuple, list, Row)) or len(value) != len(fields):
            return format_as_java(value)
        return f"({','.join(f(v) for f, v in zip(fields, value, strict=True))})"

    return format_tuple


def _row_formatter(fields: list[Formatter], row_type: RowTypeInfo) -> Formatter:
    def format_row(value: Any) -> str:
        if isinstance(value, (tuple, list)):
            value = Row(*value)
        elif isinstance(value, dict):
            value = Row(*map(value.get, row_type.get_field_names()))
        if not isinstance(value, Row) or len(value) != len(fields):
            return format_as_java(value)
        return _row_text(value, (f(v) for f, v in zip(fields, value, strict=True)))

    return format_row


def _list_formatter(element: Formatter) -> Formatter:
    def format_list(value: Any) -> str:
        if isinstance(value, (bytes, bytearray)) or not isinstance(value, Iterable) or isinstance(value, str):
            return format_as_java(value)
        return f"[{', '.join(map(element, value))}]"

    return format_list


def _map_formatter(key: Formatter, item: Formatter) -> Formatter:
    def format_map(value: Any) -> str:
        if not isinstance(value, Mapping):
            return format_as_java(value)
        return f"{{{', '.join(f'{key(k)}={item(v)}' for k, v in value.items())}}}"

    return format_map


def format_as_java(value: Any) -> str:
    """The text of a value whose declared type says no more than the value itself does."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _java_number(value, repr(value))
        case bytes() | bytearray():
            return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"
        case tuple():
            return f"({','.join(map(format_as_java, value))})"
        case Row():
            return _row_text(value, map(format_as_java, value))
        case list():
            return f"[{', '.join(map(format_as_java, value))}]"
        case dict():
            return f"{{{', '.join(f'{format_as_java(k)}={format_as_java(v)}' for k, v in value.items())}}}"
        case Instant():
            return _instant_text(value)
        case datetime.datetime():
            # java.sql.Timestamp: a space, and at least one digit of the fraction.
            fraction = f"{value.microsecond:06}".rstrip("0") or "0"
            # Not strftime: it shows the years before 1000 without their zeros.
            return f"{value.replace(microsecond=0, tzinfo=None).isoformat(' ')}.{fraction}"
        case datetime.time():
            return f"{value:%H:%M:%S}"  # java.sql.Time shows no fraction
    return str(value)


def format_float(value: Any) -> str:
    """A number with just enough digits to distinguish it from other 32-bit floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return format_as_java(value)
    try:
        stored = struct.pack("f", value)
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"
    number = float(struct.unpack("f", stored)[0])
    digits = (f"{number:.{precision}g}" for precision in range(1, 10))
    shortest = next((text for text in digits if struct.pack("f", float(text)) == stored), repr(number))
    return _java_number(number, shortest)


def _java_number(value: float, digits_text: str) -> str:
    """Java's form of a number whose digits Python found: plain from 1e-3 to 1e7, with an exponent outside."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if digits_text.startswith("-") else ""
    if value == 0:
        return f"{sign}0.0"
    number = Decimal(digits_text).normalize()
    if 1e-3 <= abs(value) < 1e7:
        text = f"{abs(number):f}"
        return f"{sign}{text}" if "." in text else f"{sign}{text}.0"
    digits = "".join(map(str, number.as_tuple().digits))
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


def _row_text(row: Row, fields: Iterable[str]) -> str:
    return f"{row.get_row_kind()}[{', '.join(fields)}]"


def _instant_text(instant: Instant) -> str:
    """ISO form in UTC; the fraction has 0, 3, 6 or 9 digits, as java.time.Instant shows it."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=instant.seconds)
    fraction = f".{instant.nanos:09}" if instant.nanos else ""
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{moment.isoformat()}{fraction}Z"
