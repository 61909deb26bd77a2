"""Amounts of time and points in time, as PyFlink's users write them, and their text forms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Duration", "Instant", "Time", "parse_duration_ms", "to_milliseconds"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000
_MILLIS_PER_DAY = 86_400_000


@dataclass(frozen=True, order=True)
class Duration:
    """An amount of time, exact to the nanosecond.

    >>> Duration.of_seconds(2).to_millis()
    2000
    """

    _nanos: int

    @staticmethod
    def of_days(days: int) -> Duration:
        """A duration of whole days, of 24 hours each."""
        return Duration._of(days, _MILLIS_PER_DAY * _NANOS_PER_MILLI, "days")

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """A duration of whole hours."""
        return Duration._of(hours, 3600 * _NANOS_PER_SECOND, "hours")

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """A duration of whole minutes."""
        return Duration._of(minutes, 60 * _NANOS_PER_SECOND, "minutes")

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """A duration of whole seconds."""
        return Duration._of(seconds, _NANOS_PER_SECOND, "seconds")

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """A duration of whole milliseconds."""
        return Duration._of(millis, _NANOS_PER_MILLI, "millis")

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """A duration of whole nanoseconds."""
        return Duration._of(nanos, 1, "nanos")

    @staticmethod
    def _of(amount: int, nanos_per_unit: int, unit: str) -> Duration:
        return Duration(_whole_number(amount, f"Duration.of_{unit}") * nanos_per_unit)

    def to_millis(self) -> int:
        """Whole milliseconds; a fraction of a millisecond is dropped."""
        return self._nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """The duration in nanoseconds."""
        return self._nanos

    def __repr__(self) -> str:
        if self._nanos % _NANOS_PER_MILLI:
            return f"Duration({self._nanos} ns)"
        return f"Duration({self.to_millis()} ms)"


@dataclass(frozen=True, order=True, repr=False)
class Instant:
    """A point on the time line: seconds since 1970-01-01T00:00Z plus 0 to 999,999,999 nanoseconds.

    >>> Instant.of_epoch_milli(1500)
    Instant<1, 500000000>
    """

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Milliseconds since the epoch, rounded down (also before 1970)."""
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """The point that is `epoch_milli` milliseconds after 1970-01-01T00:00Z."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


class Time:
    """A length of time in milliseconds, as window assigners take it.

    >>> Time.minutes(5).to_milliseconds()
    300000
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = _whole_number(milliseconds, "Time")

    def to_milliseconds(self) -> int:
        """The length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """A length of whole milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """A length of whole seconds."""
        return Time(_whole_number(seconds, "Time.seconds") * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """A length of whole minutes."""
        return Time(_whole_number(minutes, "Time.minutes") * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """A length of whole hours."""
        return Time(_whole_number(hours, "Time.hours") * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """A length of whole days, of 24 hours each."""
        return Time(_whole_number(days, "Time.days") * _MILLIS_PER_DAY)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash((Time, self._milliseconds))

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time({self._milliseconds} ms)"


def to_milliseconds(amount: Time | Duration | timedelta | int) -> int:
    """Milliseconds of any form in which users write an amount of time; a plain integer is milliseconds already."""
    match amount:
        case Time():
            return amount.to_milliseconds()
        case Duration():
            return amount.to_millis()
        case timedelta():
            return amount // timedelta(milliseconds=1)
    return _whole_number(amount, "an amount of time in milliseconds")


_UNIT_NANOS = {
    name: nanos
    for nanos, names in {
        86_400 * _NANOS_PER_SECOND: "d day days",
        3_600 * _NANOS_PER_SECOND: "h hour hours",
        60 * _NANOS_PER_SECOND: "m min minute minutes",
        _NANOS_PER_SECOND: "s sec second seconds",
        _NANOS_PER_MILLI: "ms milli millis millisecond milliseconds",
        1_000: "µs us micro micros microsecond microseconds",
        1: "ns nano nanos nanosecond nanoseconds",
    }.items()
    for name in names.split()
}
_AMOUNT_AND_UNIT = re.compile(r"(\d+)\s*([a-zµ]*)")
_ISO_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)(?:\.(?P<frac>\d{1,9}))?S)?)?", re.I
)


def parse_duration_ms(text: str | int | Time | Duration | timedelta) -> int:
    """Milliseconds of a configured duration: `5 s`, `200 ms`, `1 min`, `PT5S`, or a bare number of milliseconds."""
    if not isinstance(text, str):
        return to_milliseconds(text)
    words = text.strip()
    if simple := _AMOUNT_AND_UNIT.fullmatch(words.lower()):
        nanos = _UNIT_NANOS.get(simple[2] or "ms")
        if nanos is not None:
            return int(simple[1]) * nanos // _NANOS_PER_MILLI
    elif len(words) > 1 and (iso := _ISO_DURATION.fullmatch(words)):
        nanos = sum(int(iso[unit] or 0) * _UNIT_NANOS[unit] for unit in "dhms")
        return (nanos + int((iso["frac"] or "").ljust(9, "0"))) // _NANOS_PER_MILLI
    raise ValueError(
        f"{text!r} is not a duration; write a number and one of d, h, min, s, ms, us, ns (such as '5 s' or '200 ms'), "
        "an ISO form such as 'PT5S', or a bare number of milliseconds"
    )


def _whole_number(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} takes a whole number, got {value!r} of type {type(value).__name__}")
    return value
