"""Times as users give them: whole numbers of milliseconds, or values that PyFlink makes such a number of."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from types import GeneratorType
from typing import Any, SupportsInt

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.exceptions import InvalidProgramError

_PLENTY = 2**61
"""More than all the timestamps of a batch are together, unless one of them has more than 64 bits."""


def are_whole(timestamps: Sequence[Any]) -> bool:
    """True if all are integers of 64 bits; a quick check of many values at once.

    Times that are too large and too small in the same batch may pass. They are refused when they are sent.
    """
    try:
        total = sum(timestamps)
    except TypeError:
        return False
    return type(total) is int and (0 <= total < _PLENTY or all(map(is_time, timestamps)))


def is_time(timestamp: int) -> bool:
    """True if it has 64 bits, as Flink's times."""
    return MIN_LONG_VALUE <= timestamp <= MAX_LONG_VALUE


def whole_milliseconds(timestamp: Any, giver: str) -> int:
    """A time as an integer of 64 bits: a float loses its fraction, a NumPy scalar becomes a plain number.

    :param giver: What gave the time, for the message.
    """
    time = _whole(timestamp)
    if time is not None and is_time(time):
        return time
    if time is not None:
        raise InvalidProgramError(out_of_range(giver, time))
    raise InvalidProgramError(
        f"{giver} gave {timestamp!r} of type {type(timestamp).__name__}, but a time is a whole number of milliseconds "
        f"since 1970{_advice(timestamp)}"
    )


def _whole(timestamp: Any) -> int | None:
    """None if it is no number."""
    if not isinstance(timestamp, (int, float, SupportsInt)):
        return None
    try:
        return int(timestamp)
    except (OverflowError, ValueError, TypeError):  # Infinity, not a number, or an array
        return None


def out_of_range(giver: str, time: int) -> str:
    """What to say about a time that has more than 64 bits."""
    return (
        f"{giver} gave the time {time}, but a time is a number of milliseconds since 1970, from {MIN_LONG_VALUE} to "
        f"{MAX_LONG_VALUE}; check its unit"
    )


def _advice(timestamp: Any) -> str:
    if isinstance(timestamp, GeneratorType):
        return "; return it, do not yield it"
    if isinstance(timestamp, datetime.datetime):
        return "; int(moment.timestamp() * 1000) is one"
    return ""
