"""Dates, times and time zones as numbers: their parts, calendar arithmetic, and their texts in Flink's formats."""

from __future__ import annotations

import datetime
import functools
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAY_MS = 86_400_000
MILLI = 1_000_000
SECOND = 1_000_000_000
DAY = DAY_MS * MILLI
"""In nanoseconds, as MILLI and SECOND."""
UNIT_MS = {"DAY": DAY_MS, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000, "MILLISECOND": 1, "WEEK": 7 * DAY_MS}


def days_of(year: int, month: int, day: int) -> int:
    """The day since 1970, in the proleptic Gregorian calendar; a day beyond its month counts on."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month and day."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year + era * 400 + (month <= 2), month, day


def days_in_month(year: int, month: int) -> int:
    return days_of(year + month // 12, month % 12 + 1, 1) - days_of(year, month, 1)


def add_months(days: int, months: int) -> int:
    """The same day of another month, or the last one if that month is shorter."""
    year, month, day = date_of(days)
    years, month_index = divmod(year * 12 + month - 1 + months, 12)
    return days_of(years, month_index + 1, min(day, days_in_month(years, month_index + 1)))


def add_months_to_timestamp(nanos: int, months: int) -> int:
    days, rest = divmod(nanos, DAY)
    return add_months(days, months) * DAY + rest


def months_between(first: int, second: int) -> int:
    """Whole months from the second to the first date and time, both in nanoseconds, as Calcite counts them."""
    if first < second:
        return -months_between(second, first)
    first_day, first_rest = divmod(first, DAY)
    second_day, second_rest = divmod(second, DAY)
    year1, month1, _ = date_of(first_day)
    year2, month2, _ = date_of(second_day)
    months = (year1 - year2) * 12 + month1 - month2
    if add_months(second_day, months) > first_day:
        months -= 1
    # 29 February to 28 February is a year: the day that is added to may be the last of a shorter month.
    return months - (add_months(second_day, months) == first_day and first_rest < second_rest)


def split_toward_zero(nanos: int) -> tuple[int, int]:
    """Day and millisecond of the day of a TIMESTAMP, as Flink computes them: before 1970 both are rounded up."""
    days, rest = divmod(abs(nanos // MILLI), DAY_MS)
    return (days, rest) if nanos >= 0 else (-days, -rest)


# Time zones


_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@functools.lru_cache(maxsize=1024)
def zone_of(name: str) -> datetime.tzinfo:
    """A zone by its name or by its offset, such as GMT+08:00; Java's `TimeZone` takes an unknown name for GMT."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.group(2, 3, 4))
        delta = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return datetime.timezone(-delta if offset[1] == "-" else delta)
    try:
        return ZoneInfo("UTC" if name in ("Z", "GMT", "UTC", "") else name)
    except (ZoneInfoNotFoundError, ValueError):
        return datetime.timezone.utc


_EPOCH = datetime.datetime(1970, 1, 1)
_UTC_EPOCH = _EPOCH.replace(tzinfo=datetime.timezone.utc)
_MIN_DT, _MAX_DT = datetime.datetime(1, 1, 3), datetime.datetime(9999, 12, 29)


def to_local(nanos: int, zone: str) -> int:
    """What clocks in the zone show at this point in time."""
    return nanos + _offset_at_instant(nanos // SECOND, zone) * SECOND


def to_instant(local: int, zone: str) -> int:
    """The point in time at which clocks in the zone show this. In a gap of the clock, as Java: later by the gap."""
    return local - _offset_of_local(local // SECOND, zone) * SECOND


@functools.lru_cache(maxsize=8192)
def _offset_at_instant(seconds: int, zone: str) -> int:
    if zone == "UTC":
        return 0
    moment = _clamped(seconds).replace(tzinfo=datetime.timezone.utc)
    offset = moment.astimezone(zone_of(zone)).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


@functools.lru_cache(maxsize=8192)
def _offset_of_local(seconds: int, zone: str) -> int:
    if zone == "UTC":
        return 0
    # fold=0 takes the offset before a transition: the earlier time in an overlap, and in a gap a later clock time.
    offset = _clamped(seconds).replace(tzinfo=zone_of(zone)).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _clamped(seconds: int) -> datetime.datetime:
    try:
        moment = _EPOCH + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return _MAX_DT if seconds > 0 else _MIN_DT
    return min(max(moment, _MIN_DT), _MAX_DT)


# Texts


def text_of_date(days: int) -> str:
    year, month, day = date_of(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def text_of_time(millis: int, precision: int = 0) -> str:
    seconds, fraction = divmod(millis, 1_000)
    text = f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{f'{fraction:03d}'.ljust(9, '0')[:precision]}" if precision else text


def text_of_timestamp(nanos: int, precision: int) -> str:
    days, rest = divmod(nanos, DAY)
    seconds, fraction = divmod(rest, SECOND)
    text = f"{text_of_date(days)} {seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{f'{fraction:09d}'[:precision]}" if precision else text


def text_of_shown_timestamp(nanos: int, precision: int) -> str:
    """As `DATE_FORMAT`'s relatives print: trailing zeros of the fraction are kept."""
    return text_of_timestamp(nanos, precision)


def text_of_months(months: int) -> str:
    years, rest = divmod(abs(months), 12)
    return f"{'-' if months < 0 else '+'}{years}-{rest:02d}"


def text_of_interval(millis: int) -> str:
    days, rest = divmod(abs(millis), DAY_MS)
    seconds, fraction = divmod(rest, 1_000)
    clock = f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:03d}"
    return f"{'-' if millis < 0 else '+'}{days} {clock}"


def _integer(text: str) -> int:
    text = text.strip(" ")
    if re.fullmatch(r"\d+", text, re.ASCII) is None:
        raise ValueError(text)
    return int(text)


def date_of_text(text: str) -> int | None:
    """As Flink reads a date: month and day may be missing, and what follows a blank is ignored. None if it is none."""
    trimmed = text.strip(" ")
    head = trimmed.split(" ", 1)[0]
    parts = head.split("-", 2)
    try:
        numbers = [_integer(part) for part in parts]
    except ValueError:
        return None
    year, month, day = (*numbers, 1, 1)[:3] if len(numbers) < 3 else numbers
    if not (0 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    return days_of(year, month, day)


_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?", re.ASCII)


def time_of_text(text: str) -> int | None:
    """Milliseconds of the day. None if the text is no time."""
    found = _TIME.fullmatch(text.strip(" "))
    if found is None:
        return None
    hour, minute, second = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000 + int((found[4] or "").ljust(3, "0")[:3])


_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ ](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{0,9}))?)?",
    re.ASCII,
)


@functools.lru_cache(maxsize=1_000)
def _start_of_day(text: str) -> int | None:
    return timestamp_of_text(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else None


@functools.lru_cache(maxsize=100_000)
def _time_in_day(text: str) -> int | None:
    found = time_of_text(text) if re.fullmatch(r"\d\d:\d\d:\d\d", text, re.ASCII) else None
    return None if found is None else found * MILLI


@functools.lru_cache(maxsize=2_000)
def _milliseconds(text: str) -> int | None:
    return int(text[1:]) * MILLI if re.fullmatch(r"\.\d\d\d", text, re.ASCII) else None


def plain_timestamp(text: str, separator: str = " ") -> int | None:
    """Nanoseconds of `yyyy-MM-dd HH:mm:ss` with or without `.SSS`; None for any other text."""
    if text[10:11] != separator:
        return None
    day, time = _start_of_day(text[:10]), _time_in_day(text[11:19])
    if day is None or time is None:
        return None
    if len(text) == 19:
        return day + time
    fraction = _milliseconds(text[19:])
    return None if fraction is None else day + time + fraction


def timestamp_of_text(text: str, precision: int = 9) -> int | None:
    """Nanoseconds of `yyyy-MM-dd[ HH:mm:ss[.fraction]]`, cut to the precision. None if the text is no timestamp."""
    found = _TIMESTAMP.fullmatch(text.strip(" "))
    if found is None:
        return None
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    hour, minute, second = int(found[4] or 0), int(found[5] or 0), int(found[6] or 0)
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    day = min(day, days_in_month(year, month))  # Java's SMART resolver: 30 February is the last of the month.
    fraction = int((found[7] or "").ljust(9, "0"))
    nanos = ((days_of(year, month, day) * 24 + hour) * 3_600 + minute * 60 + second) * SECOND + fraction
    unit: int = 10 ** (9 - precision)
    return nanos - nanos % unit
