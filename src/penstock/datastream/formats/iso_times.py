"""Dates and times as text, the way Java's SQL types and RFC 3339 write them."""

from __future__ import annotations

import re
from datetime import datetime, time

_FRACTION = re.compile(r"\.(\d+)")


def parse_time(text: str) -> time:
    """`03:04:05`, with or without a fraction and a `Z`."""
    return time.fromisoformat(_normal(text))


def parse_timestamp(text: str) -> datetime:
    """`2020-01-02 03:04:05.678`, with a space or a `T`, with or without a `Z`; always in UTC, without a time zone."""
    return datetime.fromisoformat(_normal(text))


def format_timestamp(moment: datetime, separator: str) -> str:
    """Shows at least one digit of the fraction, as Java does."""
    fraction = f"{moment.microsecond:06d}".rstrip("0") or "0"
    return f"{moment:%Y-%m-%d}{separator}{moment:%H:%M:%S}.{fraction}"


def _normal(text: str) -> str:
    # Python 3.10 reads neither a Z nor fractions of other than three or six digits.
    return _FRACTION.sub(lambda m: f".{m[1][:6]:0<6}", text.strip().removesuffix("Z"))
