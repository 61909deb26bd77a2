"""Dates and times by patterns of Java's DateTimeFormatter: the letters that programs use."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.values import times

DAY_NANOS = 86_400 * 10**9
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)


@dataclass(frozen=True)
class Moment:
    """A local date and time in parts."""

    year: int
    month: int
    day: int
    days: int
    """Since 1970."""
    nanos: int
    """Of the day."""

    @staticmethod
    def of(nanos: int) -> Moment:
        days, rest = divmod(nanos, DAY_NANOS)
        return Moment(*times.date_of(days), days, rest)

    @property
    def hour(self) -> int:
        return self.nanos // (3600 * 10**9)

    @property
    def minute(self) -> int:
        return self.nanos // (60 * 10**9) % 60

    @property
    def second(self) -> int:
        return self.nanos // 10**9 % 60

    @property
    def fraction(self) -> int:
        return self.nanos % 10**9


def _number(width: int, get: Callable[[Moment], int]) -> Callable[[Moment], str]:
    return lambda moment: f"{get(moment):0{width}d}"


def _writer(letter: str, width: int) -> Callable[[Moment], str]:
    match letter:
        case "y" | "u":
            return _number(2, lambda m: m.year % 100) if width == 2 else _number(width, lambda m: m.year)
        case "M" | "L":
            if width <= 2:
                return _number(width, lambda m: m.month)
            return lambda m: _MONTHS[m.month - 1][: 3 if width == 3 else None]
        case "d":
            return _number(width, lambda m: m.day)
        case "D":
            return _number(width, lambda m: m.days - times.days_of(m.year, 1, 1) + 1)
        case "H":
            return _number(width, lambda m: m.hour)
        case "k":
            return _number(width, lambda m: m.hour or 24)
        case "h":
            return _number(width, lambda m: m.hour % 12 or 12)
        case "K":
            return _number(width, lambda m: m.hour % 12)
        case "m":
            return _number(width, lambda m: m.minute)
        case "s":
            return _number(width, lambda m: m.second)
        case "S":
            return lambda m: f"{m.fraction:09d}"[:width].ljust(width, "0")
        case "n":
            return _number(width, lambda m: m.fraction)
        case "a":
            return lambda m: "AM" if m.hour < 12 else "PM"
        case "E":
            return lambda m: _DAYS[(m.days + 3) % 7][: 3 if width <= 3 else None]
        case "e" | "c":
            return _number(width, lambda m: (m.days + 4) % 7 + 1)
        case "Q" | "q":
            return _number(width, lambda m: (m.month - 1) // 3 + 1)
    raise UnsupportedFeatureError(f"the letter {letter!r} of a date pattern is not supported")


def _parts(pattern: str) -> list[tuple[str, str]]:
    """(letter, run) for letters, ("", text) for text as it is."""
    found = []
    for token in _TOKEN.finditer(pattern):
        if token[2]:
            found.append((token[2], token[0]))
        elif token[1] is not None:
            found.append(("", token[1].replace("''", "'") or "'"))
        else:
            found.append(("", token[3]))
    return found


_UNITS = {
    **dict.fromkeys("HkhKa", 3_600 * 10**9),
    "m": 60 * 10**9,
    "s": 10**9,
    **dict.fromkeys("Sn", 1),
}
"""Of letters that tell something smaller than a day, in nanoseconds."""


@functools.lru_cache(maxsize=256)
def formatter(pattern: str) -> Callable[[int], str]:
    """A function from nanoseconds of local time to text. Times of the same day, hour, ... have the same text."""
    unit = min((_UNITS.get(letter, DAY_NANOS) for letter, _ in _parts(pattern)), default=DAY_NANOS)
    write = _formatter(pattern)
    if unit == 1:
        return write
    text_of = functools.lru_cache(maxsize=4_096)(lambda number: write(number * unit))
    return lambda nanos: text_of(nanos // unit)


def _formatter(pattern: str) -> Callable[[int], str]:
    writers: list[Callable[[Moment], str]] = []
    for letter, text in _parts(pattern):
        writers.append(_writer(letter, len(text)) if letter else (lambda _, text=text: text))  # type: ignore[misc]
    return lambda nanos: "".join([write(moment) for moment in [Moment.of(nanos)] for write in writers])


def _group(letter: str, width: int) -> str:
    match letter:
        case "y" | "u":
            return r"(?P<y>\d{2})" if width == 2 else r"(?P<Y>\d{4})"
        case "M" | "L" if width >= 3:
            names = [name[:3] if width == 3 else name for name in _MONTHS]
            return f"(?P<N>{'|'.join(names)})"
        case "M" | "L":
            return r"(?P<M>\d{2})" if width == 2 else r"(?P<M>\d{1,2})"
        case "S":
            return rf"(?P<S>\d{{{width}}})"
        case "a":
            return r"(?P<a>AM|PM|am|pm)"
        case "E":
            return r"[A-Za-z]+"
        case "d" | "H" | "h" | "m" | "s" | "k" | "K" | "D":
            return rf"(?P<{letter}>\d{{{width}}})" if width > 1 else rf"(?P<{letter}>\d{{1,3}})"
    raise UnsupportedFeatureError(f"the letter {letter!r} of a date pattern is not supported for reading")


@functools.lru_cache(maxsize=256)
def _reader(pattern: str) -> re.Pattern[str]:
    return re.compile(
        "".join(_group(letter, len(text)) if letter else re.escape(text) for letter, text in _parts(pattern))
    )


def parse(text: str, pattern: str) -> int | None:
    """Nanoseconds of local time; None if the text does not fit. What the pattern lacks is the begin of 1970."""
    found = _reader(pattern).fullmatch(text)
    if found is None:
        return None
    parts = {name: value for name, value in found.groupdict().items() if value is not None}
    year = int(parts["Y"]) if "Y" in parts else 2000 + int(parts["y"]) if "y" in parts else 1970
    month = int(parts.get("M", 1))
    if "N" in parts:
        month = 1 + [name[:3] for name in _MONTHS].index(parts["N"][:3])
    day = int(parts.get("d", 1))
    hour = int(parts.get("H", parts.get("k", 0))) % 24
    if "h" in parts or "K" in parts:
        hour = int(parts.get("h", parts.get("K", 0))) % 12
    if parts.get("a", "").upper() == "PM":
        hour = hour % 12 + 12
    minute, second = int(parts.get("m", 0)), int(parts.get("s", 0))
    fraction = int(parts["S"].ljust(9, "0")[:9]) if "S" in parts else 0
    if not 1 <= month <= 12 or not 1 <= day <= 31 or minute > 59 or second > 59:
        return None
    day = min(day, times.days_in_month(year, month))
    days = times.days_of(year, month, day) + (int(parts["D"]) - 1 if "D" in parts else 0)
    return days * DAY_NANOS + ((hour * 60 + minute) * 60 + second) * 10**9 + fraction
