"""Times as users give them: whole numbers of milliseconds, or values that PyFlink makes such a number of."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from types import GeneratorType
from typing import Any, SupportsInt

from penstock.common.exceptions import InvalidProgramError


def are_whole(timestamps: Sequence[Any]) -> bool:
    """True if all are integers; a quick check of many values at once."""
    try:
        return type(sum(timestamps)) is int
    except TypeError:
        return False


def whole_milliseconds(timestamp: Any, giver: str) -> int:
    """A time as an integer: a float loses its fraction, a NumPy scalar becomes a plain number.

    :param giver: What gave the time, for the message.
    """
    if type(timestamp) is int:
        return timestamp
    try:
        if isinstance(timestamp, (int, float, SupportsInt)):
            return int(timestamp)
    except (OverflowError, ValueError, TypeError):  # Infinity, not a number, or an array
        pass
    raise InvalidProgramError(
        f"{giver} gave {timestamp!r} of type {type(timestamp).__name__}, but a time is a whole number of milliseconds "
        f"since 1970{_advice(timestamp)}"
    )


def _advice(timestamp: Any) -> str:
    if isinstance(timestamp, GeneratorType):
        return "; return it, do not yield it"
    if isinstance(timestamp, datetime.datetime):
        return "; int(moment.timestamp() * 1000) is one"
    return ""
