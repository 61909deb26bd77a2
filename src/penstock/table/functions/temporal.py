"""Functions on dates and times. Arguments are never None."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.functions.date_patterns import formatter, parse
from penstock.table.types import CharType, DataType, LocalZonedTimestampType, VarCharType
from penstock.table.values import times
from penstock.table.values.numbers import divide_int, remainder_int

_FRACTIONS = {"MILLISECOND": 1_000_000, "MICROSECOND": 1_000, "NANOSECOND": 1}
_CLOCK = {"HOUR": (3_600, 24), "MINUTE": (60, 60), "SECOND": (1, 60)}


def extraction(unit: str, data_type: DataType, zone: str) -> Callable[[int], int]:
    """The function of EXTRACT(unit FROM ...)."""
    match data_type:
        case t.DateType():
            to_nanos: Callable[[int], int] = lambda days: days * times.DAY  # noqa: E731
        case t.TimeType():
            to_nanos = lambda millis: millis * times.MILLI  # noqa: E731
        case t.TimestampType():
            to_nanos = lambda nanos: nanos  # noqa: E731
        case t.LocalZonedTimestampType():
            to_nanos = lambda nanos: times.to_local(nanos, zone)  # noqa: E731
        case _:
            raise UnsupportedFeatureError(f"EXTRACT({unit} FROM {data_type.as_sql()}) is not supported")
    if unit in _CLOCK:
        seconds, modulus = _CLOCK[unit]
        if isinstance(data_type, t.TimestampType):
            return lambda value: divide_int(times.split_toward_zero(value)[1], seconds * 1_000) % modulus
        return lambda value: to_nanos(value) // (seconds * times.SECOND) % modulus
    if unit == "EPOCH":
        if isinstance(data_type, t.LocalZonedTimestampType):
            return lambda value: value // times.SECOND
        return lambda value: divide_int(to_nanos(value), times.SECOND)
    if unit in _FRACTIONS:
        size = _FRACTIONS[unit]
        return lambda value: remainder_int(divide_int(to_nanos(value), size), times.SECOND // size)
    parts: dict[str, Callable[[int], int]] = {
        "WEEK": lambda days: datetime.date.fromordinal(days + 719_163).isocalendar()[1],
        "ISODOW": lambda days: (days + 3) % 7 + 1,
        "ISOYEAR": lambda days: datetime.date.fromordinal(days + 719_163).isocalendar()[0],
        "DECADE": lambda days: times.date_of(days)[0] // 10,
        "CENTURY": lambda days: (times.date_of(days)[0] + 99) // 100,
        "MILLENNIUM": lambda days: (times.date_of(days)[0] + 999) // 1000,
        "YEAR": lambda days: times.date_of(days)[0],
        "QUARTER": lambda days: (times.date_of(days)[1] + 2) // 3,
        "MONTH": lambda days: times.date_of(days)[1],
        "DAY": lambda days: times.date_of(days)[2],
        "DOW": lambda days: (days + 4) % 7 + 1,
        "DOY": lambda days: days - times.days_of(times.date_of(days)[0], 1, 1) + 1,
    }
    if unit not in parts:
        raise UnsupportedFeatureError(f"EXTRACT({unit} FROM {data_type.as_sql()}) is not supported")
    part = parts[unit]
    if isinstance(data_type, t.TimestampType):
        return lambda value: part(times.split_toward_zero(value)[0])
    return lambda value: part(to_nanos(value) // times.DAY)


def rounding_to(unit: str, up: bool, zone: str) -> Callable[[int], int]:
    """FLOOR or CEIL of a timestamp to a unit, by the clocks of a zone."""
    months = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}.get(unit)
    if (up and months is not None) or (months is None and unit not in ("DAY", "HOUR", "MINUTE", "SECOND")):
        raise UnsupportedFeatureError(f"{'CEIL' if up else 'FLOOR'} to {unit} is not supported")

    def floor(local: int) -> int:
        if months is None:
            return local - local % (times.UNIT_MS[unit] * times.MILLI)
        year, month, _ = times.date_of(local // times.DAY)
        return times.days_of(year, (month - 1) // months * months + 1, 1) * times.DAY

    def following(local: int) -> int:
        if months is None:
            return local + times.UNIT_MS[unit] * times.MILLI
        return times.add_months_to_timestamp(local, months)

    def rounded(nanos: int) -> int:
        local = times.to_local(nanos, zone)
        if months is not None and not up and zone == "UTC":
            return floor(times.split_toward_zero(local)[0] * times.DAY)
        below = floor(local)
        # As in Flink, with the offset of the original time, even if clocks were changed in between.
        return (following(below) if up and below != local else below) - (local - nanos)

    return rounded


# Texts and times. Each maker gets the types of the arguments and the session's time zone.

_STANDARD = "yyyy-MM-dd HH:mm:ss"


def _local(data_type: DataType, zone: str) -> Callable[[int], int]:
    is_instant = isinstance(data_type, LocalZonedTimestampType)
    return (lambda nanos: times.to_local(nanos, zone)) if is_instant else (lambda nanos: nanos)


def date_format(types: list[DataType], zone: str) -> Callable[..., str | None]:
    """DATE_FORMAT of a timestamp, or of a text that is one."""
    if isinstance(types[0], (CharType, VarCharType)):

        def of_text(text: str, pattern: str) -> str | None:
            nanos = times.timestamp_of_text(text)
            return None if nanos is None else formatter(pattern)(nanos)

        return of_text
    local = _local(types[0], zone)
    return lambda nanos, pattern: formatter(pattern)(local(nanos))


def to_timestamp(types: list[DataType], zone: str) -> Callable[..., int | None]:
    """To milliseconds, as TO_TIMESTAMP gives a TIMESTAMP(3)."""

    def read(text: str, pattern: str = _STANDARD) -> int | None:
        nanos = times.timestamp_of_text(text) if pattern == _STANDARD else parse(text, pattern)
        return None if nanos is None else nanos - nanos % 1_000_000

    return read


def to_timestamp_ltz(types: list[DataType], zone: str) -> Callable[..., int | None]:
    if isinstance(types[0], (CharType, VarCharType)):
        read = to_timestamp(types, zone)

        def of_text(text: str, pattern: str = _STANDARD, named_zone: str = "UTC") -> int | None:
            local = read(text, pattern)
            return None if local is None else times.to_instant(local, named_zone)

        return of_text

    def of_number(number: float, precision: int = 3) -> int | None:
        if precision not in (0, 3):
            raise ValueError(f"TO_TIMESTAMP_LTZ takes the precision 0 or 3, got {precision}")
        nanos = int(number * (10**9 if precision == 0 else 10**6))
        return nanos if _FIRST_NANOS <= nanos <= _LAST_NANOS else None

    return of_number


_FIRST_NANOS = times.days_of(1, 1, 1) * 86_400 * 10**9
_LAST_NANOS = times.days_of(9999, 12, 31) * 86_400 * 10**9 + 86_400 * 10**9 - 1


def to_date(types: list[DataType], zone: str) -> Callable[..., int | None]:
    def read(text: str, pattern: str = "yyyy-MM-dd") -> int | None:
        if pattern == "yyyy-MM-dd":
            return times.date_of_text(text)
        nanos = parse(text, pattern)
        return None if nanos is None else nanos // (86_400 * 10**9)

    return read


def from_unixtime(types: list[DataType], zone: str) -> Callable[..., str | None]:
    return lambda seconds, pattern=_STANDARD: formatter(pattern)(times.to_local(seconds * 10**9, zone))


def unix_timestamp(types: list[DataType], zone: str) -> Callable[..., int]:
    """Seconds; the smallest number for a text that is no timestamp, as Flink has it."""

    def read(text: str, pattern: str = _STANDARD) -> int:
        nanos = times.timestamp_of_text(text) if pattern == _STANDARD else parse(text, pattern)
        return -(2**63) if nanos is None else times.to_instant(nanos, zone) // 10**9

    return read


def convert_tz(types: list[DataType], zone: str) -> Callable[..., str | None]:
    def convert(text: str, source: str, target: str) -> str | None:
        nanos = times.timestamp_of_text(text)
        if nanos is None:
            return None
        return formatter(_STANDARD)(times.to_local(times.to_instant(nanos, source), target))

    return convert


ZONED: dict[str, Callable[..., Callable[..., Any]]] = {
    "DATE_FORMAT": date_format,
    "TO_TIMESTAMP": to_timestamp,
    "TO_TIMESTAMP_LTZ": to_timestamp_ltz,
    "TO_DATE": to_date,
    "FROM_UNIXTIME": from_unixtime,
    "CONVERT_TZ": convert_tz,
}
