"""Functions on dates and times. Arguments are never None."""

from __future__ import annotations

from collections.abc import Callable

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.types import DataType
from penstock.table.values import times
from penstock.table.values.numbers import divide_int

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
    parts: dict[str, Callable[[int], int]] = {
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
