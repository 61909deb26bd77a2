"""Dates and times as text, in the form of Java's SQL types and RFC 3339."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone

from penstock.common.formatting import format_as_java
from penstock.common.time import Instant
from penstock.datastream.formats.exact_values import clock_time

_EPOCH = datetime(1970, 1, 1)
_FRACTION = re.compile(r"[.,](\d+)$")
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d|[+-]\d\d)$", re.IGNORECASE)
_CLOCK = re.compile(r"[T :]", re.IGNORECASE)


@dataclass(frozen=True)
class _Clock:
    """What a text says: date and time to the second, the fraction, and how far the clock is ahead of UTC."""

    body: str
    nanos: int
    offset: timedelta

    @property
    def micros(self) -> int:
        micros, rest = divmod(self.nanos, 1000)
        if rest:
            raise ValueError(
                f"{self.body} and {self.nanos} nanoseconds: Python's times know microseconds only; declare the field "
                f"as Types.INSTANT()"
            )
        return micros

    def check_no_zone(self, parsed: datetime | time) -> None:
        """Refuse an offset that Python knows, but that was not taken off the text."""
        if parsed.tzinfo is not None:
            raise ValueError(f"{self.body!r} has an offset that cannot be read; write Z, or hours and minutes")

    def in_utc(self) -> datetime:
        """To the second."""
        moment = datetime.fromisoformat(self.body)
        self.check_no_zone(moment)
        try:
            return moment - self.offset
        except OverflowError:
            raise ValueError(f"{self.body} is not between the years 1 and 9999 in UTC") from None


def _parse(text: str) -> _Clock:
    body, offset = text.strip(), timedelta(0)
    zone = _ZONE.search(body)
    # The end of a date alone looks like an offset.
    if zone is not None and (zone[1] in "Zz" or _CLOCK.search(body[: zone.start()])):
        body, offset = body[: zone.start()], _offset(zone[1])
    fraction = _FRACTION.search(body)
    digits = "" if fraction is None else fraction[1]
    if digits[9:].strip("0"):
        raise ValueError(f"{text!r} has digits beyond the nanoseconds")
    body = body if fraction is None else body[: fraction.start()]
    return _Clock(body, int(f"{digits[:9]:0<9}"), offset)


def _offset(zone: str) -> timedelta:
    if zone in "Zz":
        return timedelta(0)
    digits = zone[1:].replace(":", "")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0))
    return -ahead if zone.startswith("-") else ahead


def parse_time(text: str) -> time:
    """`03:04:05`, with or without a fraction and a `Z`. A time of another zone has no meaning without its date."""
    clock = _parse(text)
    if clock.offset:
        raise ValueError(f"{text!r} has an offset; only a time in UTC can be read")
    moment = time.fromisoformat(clock.body)
    clock.check_no_zone(moment)
    return moment.replace(microsecond=clock.micros)


def parse_timestamp(text: str) -> datetime:
    """`2020-01-02 03:04:05.678`, with a space or a `T`, with or without a `Z` or an offset; in UTC, without a zone."""
    clock = _parse(text)
    return clock.in_utc().replace(microsecond=clock.micros)


def parse_instant(text: str) -> Instant:
    """The same to the nanosecond."""
    clock = _parse(text)
    return Instant((clock.in_utc() - _EPOCH) // timedelta(seconds=1), clock.nanos)


def format_time(moment: time) -> str:
    """Shows a fraction only if there is one."""
    clock_time(moment)
    return f"{moment:%H:%M:%S}" + (f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else "")


def format_timestamp(moment: datetime, separator: str) -> str:
    """In UTC; a time without a zone is in UTC already. Shows at least one digit of the fraction, as Java does."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    fraction = f"{moment.microsecond:06d}".rstrip("0") or "0"
    return f"{moment.replace(microsecond=0).isoformat(separator)}.{fraction}"


def format_instant(instant: Instant) -> str:
    """As Java shows it: `2020-01-02T03:04:05.678Z`."""
    if not isinstance(instant, Instant):
        raise ValueError(f"{instant!r} is not an Instant")
    try:
        return format_as_java(instant)
    except OverflowError:
        raise ValueError(f"{instant!r} is not between the years 1 and 9999") from None
