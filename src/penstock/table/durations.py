"""Durations as plans and options write them."""

from __future__ import annotations

import re

_UNITS_MS = {"ms": 1, "s": 1_000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONG_UNITS = {"ms": "milli", "s": "sec", "min": "min", "h": "hour", "d": "day"}


def duration_ms(text: str) -> int:
    """Milliseconds of `PT5S`, `P1DT2H`, `5 s`, `100 ms`.

    >>> duration_ms("PT1M0.5S"), duration_ms("2 h")
    (60500, 7200000)
    """
    iso = re.fullmatch(r"(-?)P(?:(\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?", text.strip())
    if iso:
        sign, days, hours, minutes, seconds = iso.groups()
        total = int(days or 0) * 86_400_000 + int(hours or 0) * 3_600_000 + int(minutes or 0) * 60_000
        total += round(float(seconds or 0) * 1_000)
        return -total if sign else total
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if not found:
        raise ValueError(f"{text!r} is not a duration")
    unit = found[2] or "ms"
    for name, size in _UNITS_MS.items():
        if unit == name or (len(unit) > 2 and unit.startswith(_LONG_UNITS.get(name, "?"))):
            return int(found[1]) * size
    raise ValueError(f"{text!r} is not a duration: {unit!r} is no unit of time")
