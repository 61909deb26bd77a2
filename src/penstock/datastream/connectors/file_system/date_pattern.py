"""Java's date patterns, as Flink's users write them for bucket names."""

from __future__ import annotations

import re
from datetime import datetime

_DIRECTIVES = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "yy": "%y",
    "MM": "%m",
    "MMM": "%b",
    "dd": "%d",
    "DDD": "%j",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "a": "%p",
    "E": "%a",
}
_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")


def format_date(pattern: str, moment: datetime) -> str:
    """Format as Java's DateTimeFormatter would: `yyyy-MM-dd--HH` gives `2024-03-01--17`."""
    return "".join(_format_token(token.group(), moment) for token in _TOKEN.finditer(pattern))


def check_date_pattern(pattern: str) -> None:
    """Raise ValueError for a pattern that `format_date` does not know."""
    if "".join(token.group() for token in _TOKEN.finditer(pattern)) != pattern:
        raise ValueError(f"date pattern {pattern!r} has a quote without an end")
    for token in _TOKEN.finditer(pattern):
        if token.group(1) and token.group() not in _DIRECTIVES and token.group() != "SSS":
            known = ", ".join([*_DIRECTIVES, "SSS"])
            raise ValueError(f"date pattern {pattern!r}: {token.group()!r} is not known; use {known} or quoted text")


def _format_token(token: str, moment: datetime) -> str:
    if token == "''":
        return "'"
    if token.startswith("'"):
        return token[1:-1].replace("''", "'")
    if token == "SSS":
        return f"{moment.microsecond // 1000:03d}"
    directive = _DIRECTIVES.get(token)
    return moment.strftime(directive) if directive else token
