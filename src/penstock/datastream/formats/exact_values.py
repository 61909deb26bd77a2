"""Values as a declared type holds them: unchanged, or refused. Nothing is rounded, cut off or guessed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral
from typing import Any

from penstock.common.typeinfo import TypeInformation, Types

_BITS = {Types.BYTE(): 8, Types.SHORT(): 16, Types.INT(): 32, Types.LONG(): 64}

_MOST_DIGITS = 4300
"""As many digits as Python reads in the text of a whole number."""

WHOLE_TYPES = (*_BITS, Types.BIG_INT())


def whole_number(type_info: TypeInformation) -> Callable[[Any], int]:
    """A function that takes whole numbers of a type, also as floats or decimals; ValueError for all else."""
    bits = _BITS.get(type_info)
    least, most = (None, None) if bits is None else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)

    def exact(value: Any) -> int:
        number = value if type(value) is int else _as_int(value)
        if number is None or number != value:
            raise ValueError(f"{value!r} is not a whole number, but {type_info} can hold nothing else")
        if least is not None and most is not None and not least <= number <= most:
            raise ValueError(f"{value!r} is out of the range of {type_info}, which is {least} to {most}")
        return number

    return exact


def _as_int(value: Any) -> int | None:
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() >= _MOST_DIGITS:
        return None  # `1e999999999` has few characters, but would take hours, and gigabytes, as an int.
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def read_whole_number(type_info: TypeInformation) -> Callable[[str], int]:
    """A function that reads the text of a whole number of a type."""
    in_range = whole_number(type_info)
    # Numbers that are in every range need no check.
    small = 0 if _BITS.get(type_info, 64) < 32 else 1 << 30

    def read(text: str) -> int:
        if "_" in text:  # Python would take it for a separator of thousands.
            raise ValueError(f"{text!r} is not a number")
        number = int(text)
        return number if -small < number < small else in_range(number)

    return read


def real_number(type_info: TypeInformation) -> Callable[[Any], float]:
    """A function that takes numbers that a DOUBLE holds exactly. For a FLOAT it rounds to 32 bits; they stay finite."""
    in_range = _range_of(type_info)

    def exact(value: Any) -> float:
        number = value if type(value) is float else _as_float(value)
        # NaN is the only value that differs from itself.
        if number is None or (number != value and value == value):
            raise ValueError(f"{value!r} is not a number that {type_info} can hold exactly; give a float")
        return in_range(number)

    return exact


def _as_float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _range_of(type_info: TypeInformation) -> Callable[[float], float]:
    """A function that gives a float the range of the type."""
    return _single if type_info == Types.FLOAT() else lambda number: number


def _single(number: float) -> float:
    try:
        [rounded] = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        raise ValueError(f"{number!r} is out of the range of {Types.FLOAT()}; declare a DOUBLE") from None
    return float(rounded)


def read_real_number(type_info: TypeInformation) -> Callable[[str | Decimal | int], float]:
    """A function that reads the nearest number that a type has; text may also be NaN, Infinity or -Infinity."""
    in_range = _range_of(type_info)
    return lambda number: in_range(float(_plain(number) if isinstance(number, str) else number))


def decimal_number(value: Any) -> Decimal:
    """A finite decimal, or a whole number as one; a float is refused, because it seldom is the decimal it shows."""
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return Decimal(int(value))
    raise ValueError(f"{value!r} is not a decimal number; give a finite Decimal or an int")


def read_decimal_number(text: str) -> Decimal:
    return decimal_number(Decimal(_plain(text).strip()))


def _plain(text: str) -> str:
    if "_" in text:  # Python would take it for a separator of thousands.
        raise ValueError(f"{text!r} is not a number")
    return text


def boolean(value: Any) -> bool:
    """True or False, or a value that equals one of them."""
    if value not in (True, False):
        raise ValueError(f"{value!r} is neither True nor False")
    return bool(value)


def read_boolean(text: str) -> bool:
    """`true` or `false`, in upper or lower case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return word == "true"


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string; make it one with str(...)")
    return value


def calendar_day(value: Any) -> date:
    """A date; a datetime is refused, as it would lose its time."""
    if isinstance(value, datetime) or not isinstance(value, date):
        raise ValueError(f"{value!r} is not a date; give a datetime.date, of a datetime its date()")
    return value


def clock_time(value: Any, least_micros: int = 1) -> time:
    """A time in UTC that is a multiple of `least_micros`."""
    if not isinstance(value, time):
        raise ValueError(f"{value!r} is not a datetime.time")
    if value.tzinfo is not None and value.utcoffset() != timedelta(0):
        raise ValueError(f"{value!r} has an offset; only a time in UTC can be written")
    if value.microsecond % least_micros:
        raise ValueError(f"{value!r} is not exact to {least_micros} microseconds, which is all that can be written")
    return value


def raw_bytes(value: Any) -> bytes:
    """Bytes, or a list of numbers that are bytes. A single number is refused: Python would take it for a length."""
    if isinstance(value, (str, Integral)):
        raise ValueError(f"{value!r} is not bytes")
    return bytes(value)
