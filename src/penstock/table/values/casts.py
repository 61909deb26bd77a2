"""CAST between types, by Flink's rules (not the legacy ones). A failed cast raises; TRY_CAST makes it NULL."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.types import DataType, RowType
from penstock.table.values import numbers as n
from penstock.table.values import times

Cast = Callable[[Any], Any]

_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_TEXT = (t.CharType, t.VarCharType)
_BYTES = (t.BinaryType, t.VarBinaryType)
_INTERVAL = (t.DayTimeIntervalType, t.YearMonthIntervalType)


def cast_function(source: DataType, target: DataType, zone: str = "UTC") -> Cast | None:
    """The function that casts values that are not NULL; None if they stay as they are."""
    if source.nullable() == target.nullable():
        return None
    match target:
        case t.CharType() | t.VarCharType():
            return _to_text(source, target, zone)
        case t.BinaryType() | t.VarBinaryType():
            return _to_bytes(source, target)
        case t.BooleanType():
            return _to_boolean(source, target)
        case t.IntegralType(bits=bits):
            return _to_integral(source, target, bits)
        case t.FloatType() | t.DoubleType():
            return _to_float(source, target)
        case t.DecimalType():
            return _to_decimal(source, target)
        case t.DateType() | t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return _to_time(source, target, zone)
        case t.YearMonthIntervalType() | t.DayTimeIntervalType():
            if isinstance(source, (*_INTERVAL, t.IntegralType)):
                return None
        case t.ArrayType(element_type=element) if isinstance(source, t.ArrayType):
            each = _null_safe(cast_function(source.element_type, element, zone))
            return lambda values: [each(value) for value in values]
        case t.MultisetType(element_type=element) if isinstance(source, t.MultisetType):
            each = _null_safe(cast_function(source.element_type, element, zone))
            return lambda values: {each(value): count for value, count in values.items()}
        case t.MapType(key_type=key, value_type=value) if isinstance(source, t.MapType):
            of_key = _null_safe(cast_function(source.key_type, key, zone))
            of_value = _null_safe(cast_function(source.value_type, value, zone))
            return lambda entries: {of_key(k): of_value(v) for k, v in entries.items()}
        case RowType() if isinstance(source, RowType) and len(source) == len(target):
            pairs = zip(source.field_types(), target.field_types(), strict=True)
            fields = [_null_safe(cast_function(a, b, zone)) for a, b in pairs]
            return lambda row: tuple([f(value) for f, value in zip(fields, row, strict=True)])
    return _unsupported(source, target)


def _null_safe(cast: Cast | None) -> Cast:
    if cast is None:
        return lambda value: value
    return lambda value: None if value is None else cast(value)


def _unsupported(source: DataType, target: DataType) -> Cast:
    raise UnsupportedFeatureError(f"CAST from {source.as_sql()} to {target.as_sql()} is not supported")


def _sized(text: Cast, target: t.CharType | t.VarCharType) -> Cast:
    """Cut to the length of the target; CHAR is also filled with blanks."""
    length = target.length
    if length == t.MAX_LENGTH:
        return text
    if isinstance(target, t.CharType):
        return lambda value: text(value)[:length].ljust(length)
    return lambda value: text(value)[:length]


def _to_text(source: DataType, target: t.CharType | t.VarCharType, zone: str) -> Cast | None:
    if isinstance(source, _TEXT) and isinstance(target, t.VarCharType) and target.length >= source.length:
        return None
    return _sized(text_function(source, zone), target)


def text_function(source: DataType, zone: str = "UTC") -> Cast:
    """The function that gives the text of values that are not NULL."""
    match source:
        case t.CharType() | t.VarCharType() | t.IntegralType():
            return str
        case t.BooleanType():
            return lambda value: "TRUE" if value else "FALSE"
        case t.FloatType():
            return n.text_of_float
        case t.DoubleType():
            return n.text_of_double
        case t.DecimalType():
            return n.text_of_decimal
        case t.BinaryType() | t.VarBinaryType():
            return lambda value: value.decode("utf-8", "replace")
        case t.DateType():
            return times.text_of_date
        case t.TimeType(precision=digits):
            return lambda value: times.text_of_time(value, min(digits, 3))
        case t.TimestampType(precision=digits):
            return lambda value: times.text_of_timestamp(value, digits)
        case t.LocalZonedTimestampType(precision=digits):
            return lambda value: times.text_of_timestamp(times.to_local(value, zone), digits)
        case t.YearMonthIntervalType():
            return times.text_of_months
        case t.DayTimeIntervalType():
            return times.text_of_interval
        case t.ArrayType(element_type=element):
            each = _text_or_null(element, zone)
            return lambda values: "[" + ", ".join([each(value) for value in values]) + "]"
        case t.MapType(key_type=key, value_type=value):
            of_key, of_value = _text_or_null(key, zone), _text_or_null(value, zone)
            return lambda entries: "{" + ", ".join([f"{of_key(k)}={of_value(v)}" for k, v in entries.items()]) + "}"
        case t.MultisetType(element_type=element):
            each = _text_or_null(element, zone)
            return lambda counts: "{" + ", ".join([f"{each(k)}={v}" for k, v in counts.items()]) + "}"
        case RowType():
            fields = [_text_or_null(field, zone) for field in source.field_types()]
            return lambda row: "(" + ", ".join([f(value) for f, value in zip(fields, row, strict=True)]) + ")"
        case _:
            return _unsupported(source, t.DataTypes.STRING())


def _text_or_null(source: DataType, zone: str) -> Callable[[Any], str]:
    text = text_function(source, zone)
    return lambda value: "NULL" if value is None else text(value)


def _to_bytes(source: DataType, target: t.BinaryType | t.VarBinaryType) -> Cast | None:
    length, is_fixed = target.length, isinstance(target, t.BinaryType)
    if isinstance(source, _TEXT):
        return lambda value: _fit_bytes(value.encode("utf-8"), length, is_fixed)
    if isinstance(source, _BYTES):
        return lambda value: _fit_bytes(value, length, is_fixed)
    return _unsupported(source, target)


def _fit_bytes(value: bytes, length: int, is_fixed: bool) -> bytes:
    return value[:length].ljust(length, b"\0") if is_fixed else value[:length]


def _to_boolean(source: DataType, target: DataType) -> Cast | None:
    if isinstance(source, _TEXT):
        return _boolean_of_text
    if isinstance(source, t.NumericType):
        return lambda value: value != 0
    return _unsupported(source, target)


def _boolean_of_text(text: str) -> bool:
    lowered = text.strip(" ").lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    raise ValueError(f"Cannot parse '{text}' as BOOLEAN.")


def _to_integral(source: DataType, target: DataType, bits: int) -> Cast | None:
    match source:
        case t.IntegralType():
            return None if source.bits <= bits else lambda value: n.wrap(value, bits)
        case t.CharType() | t.VarCharType():
            return lambda value: n.integer_of_text(value, bits)
        case t.BooleanType():
            return int
        case t.FloatType() | t.DoubleType():
            if bits == 64:
                return n.long_of_float
            return n.int_of_float if bits == 32 else lambda value: n.wrap(n.int_of_float(value), bits)
        case t.DecimalType():
            return lambda value: n.wrap(n.integral_of_decimal(value), bits)
        case t.DayTimeIntervalType() | t.YearMonthIntervalType():
            return lambda value: n.wrap(value, bits)
    return _unsupported(source, target)


def _to_float(source: DataType, target: DataType) -> Cast | None:
    narrow = isinstance(target, t.FloatType)
    if isinstance(source, _TEXT):
        return (lambda value: n.to_float32(n.float_of_text(value))) if narrow else n.float_of_text
    if isinstance(source, t.FloatType) and not narrow:
        return None
    if isinstance(source, (t.NumericType, t.BooleanType)):
        return (lambda value: n.to_float32(float(value))) if narrow else float
    return _unsupported(source, target)


def _to_decimal(source: DataType, target: t.DecimalType) -> Cast:
    precision, scale = target.precision, target.scale
    match source:
        case t.CharType() | t.VarCharType():
            return lambda value: n.decimal_of_type(n.decimal_of_text(value), precision, scale)
        case t.IntegralType():
            return lambda value: n.decimal_of_type(Decimal(value), precision, scale)
        case t.BooleanType():
            return lambda value: n.decimal_of_type(Decimal(int(value)), precision, scale)
        case t.FloatType() | t.DoubleType():
            return lambda value: n.decimal_of_type(n.decimal_of_float(value), precision, scale)
        case t.DecimalType():
            return lambda value: n.decimal_of_type(value, precision, scale)
    return _unsupported(source, target)


def _to_time(source: Any, target: Any, zone: str) -> Cast | None:
    if isinstance(source, _TEXT):
        return _time_of_text(target, zone)
    cut = 10 ** (9 - getattr(target, "precision", 9))
    match source, target:
        case t.TimestampType() | t.LocalZonedTimestampType(), t.DateType() | t.TimeType():
            is_instant = isinstance(source, t.LocalZonedTimestampType)
            local: Cast = (lambda value: times.to_local(value, zone)) if is_instant else (lambda value: value)
            if isinstance(target, t.DateType) and is_instant:
                return lambda value: local(value) // times.DAY
            if isinstance(target, t.DateType):
                return lambda value: times.split_toward_zero(value)[0]
            unit = 10 ** max(0, 3 - target.precision)
            return lambda value: n.divide_int(times.split_toward_zero(local(value))[1], unit) * unit
        case t.DateType(), t.TimestampType():
            return lambda days: days * times.DAY
        case t.DateType(), t.LocalZonedTimestampType():
            return lambda days: times.to_instant(days * times.DAY, zone)
        case t.TimeType(), t.TimestampType():
            return lambda millis: millis * times.MILLI
        case t.TimeType(), t.LocalZonedTimestampType():
            return lambda millis: times.to_instant(millis * times.MILLI, zone)
        case t.TimestampType(), t.LocalZonedTimestampType():
            return lambda nanos: times.to_instant(nanos - nanos % cut, zone)
        case t.LocalZonedTimestampType(), t.TimestampType():
            return lambda nanos: times.to_local(nanos - nanos % cut, zone)
        case (t.TimestampType(), t.TimestampType()) | (t.LocalZonedTimestampType(), t.LocalZonedTimestampType()):
            return None if target.precision >= source.precision else lambda nanos: nanos - nanos % cut
        case t.TimeType(), t.TimeType():
            return None
    return _unsupported(source, target)


def _time_of_text(target: Any, zone: str) -> Cast:
    def parsed(value: Any, text: str) -> Any:
        if value is None:
            raise ValueError(f"Cannot parse '{text}' as {target.as_sql()}.")
        return value

    match target:
        case t.DateType():
            return lambda text: parsed(times.date_of_text(text), text)
        case t.TimeType():
            return lambda text: parsed(times.time_of_text(text), text)
        case t.TimestampType(precision=digits):
            return lambda text: parsed(times.timestamp_of_text(text, digits), text)
    return lambda text: times.to_instant(parsed(times.timestamp_of_text(text, target.precision), text), zone)
