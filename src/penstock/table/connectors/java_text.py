"""Values as Java prints them, for the connector `print`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.table import types as t
from penstock.table.types import DataType, RowType
from penstock.table.values import times
from penstock.table.values.numbers import text_of_double, text_of_float


def java_text(data_type: DataType) -> Callable[[Any], str]:
    """What `String.valueOf` gives for the value's Java object; NULL is `null`."""
    write = _writer(data_type)
    return lambda value: "null" if value is None else write(value)


def row_text(row_type: RowType) -> Callable[[Any, str], str]:
    """What Flink's `Row.toString` gives: `+I[1, abc]`."""
    fields = [java_text(each) for each in row_type.field_types()]
    return lambda row, kind: f"{kind}[{', '.join([write(value) for write, value in zip(fields, row, strict=False)])}]"


def _writer(data_type: DataType) -> Callable[[Any], str]:
    match data_type:
        case t.BooleanType():
            return lambda value: "true" if value else "false"
        case t.FloatType():
            return text_of_float
        case t.DoubleType():
            return text_of_double
        case t.DecimalType():
            return str  # Python and Java write decimals alike.
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: "[" + ", ".join([str(each - 256 if each > 127 else each) for each in value]) + "]"
        case t.DateType():
            return times.text_of_date
        case t.TimeType():
            return lambda value: _time(value // 1_000, value % 1_000 * 1_000_000)
        case t.TimestampType():
            return _local_date_time
        case t.LocalZonedTimestampType():
            return _instant
        case t.YearMonthIntervalType():
            return _period
        case t.DayTimeIntervalType():
            return _duration
        case t.ArrayType(element_type=element):
            each = java_text(element)
            return lambda values: "[" + ", ".join([each(value) for value in values]) + "]"
        case t.MapType(key_type=key, value_type=value):
            return _entries(java_text(key), java_text(value))
        case t.MultisetType(element_type=element):
            return _entries(java_text(element), str)
        case RowType():
            write = row_text(data_type)
            return lambda row: write(row, "+I")
    return str


def _entries(key: Callable[[Any], str], value: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda entries: "{" + ", ".join([f"{key(k)}={value(v)}" for k, v in entries.items()]) + "}"


def _fraction(nanos: int) -> str:
    """The digits of a second in threes, as many as are needed."""
    if nanos == 0:
        return ""
    for size, unit in ((3, 1_000_000), (6, 1_000)):
        if nanos % unit == 0:
            return f".{nanos // unit:0{size}d}"
    return f".{nanos:09d}"


def _time(seconds: int, nanos: int) -> str:
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return text if seconds % 60 == 0 and nanos == 0 else f"{text}:{seconds % 60:02d}{_fraction(nanos)}"


def _local_date_time(nanos: int) -> str:
    days, rest = divmod(nanos, 86_400 * 10**9)
    return f"{times.text_of_date(days)}T{_time(rest // 10**9, rest % 10**9)}"


def _instant(nanos: int) -> str:
    seconds, rest = divmod(nanos, 10**9)
    days, of_day = divmod(seconds, 86_400)
    clock = f"{of_day // 3600:02d}:{of_day // 60 % 60:02d}:{of_day % 60:02d}"
    return f"{times.text_of_date(days)}T{clock}{_fraction(rest)}Z"


def _period(months: int) -> str:
    sign = -1 if months < 0 else 1
    years, rest = divmod(abs(months), 12)
    parts = [f"{sign * years}Y" if years else "", f"{sign * rest}M" if rest else ""]
    return "P" + ("".join(parts) or "0D")


def _duration(millis: int) -> str:
    sign = "-" if millis < 0 else ""
    seconds, rest = divmod(abs(millis), 1_000)
    hours, minutes, seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
    parts = [f"{sign}{hours}H" if hours else "", f"{sign}{minutes}M" if minutes else ""]
    if seconds or rest:
        parts.append(f"{sign}{seconds}{f'.{rest:03d}'.rstrip('0') if rest else ''}S")
    return "PT" + ("".join(parts) or "0S")
