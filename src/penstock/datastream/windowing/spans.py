"""Reads and checks the lengths of time that users give to `of(...)` and `with_gap(...)`."""

from __future__ import annotations

from datetime import timedelta

from penstock.common.exceptions import InvalidProgramError
from penstock.common.time import Duration, Time, to_milliseconds

Span = Time | Duration | timedelta


def span_ms(owner: str, parameter: str, span: Span) -> int:
    """Milliseconds of `span`; an error that names the parameter if it is not a length of time."""
    if not isinstance(span, Time | Duration | timedelta):
        raise InvalidProgramError(
            f"{owner}: {parameter} must be a Time or Duration, e.g. Time.seconds(5), got {span!r}"
        )
    return to_milliseconds(span)


def offset_ms(owner: str, offset: Span | None) -> int:
    return 0 if offset is None else span_ms(owner, "offset", offset)


def check_positive(owner: str, parameter: str, value: int) -> None:
    if value <= 0:
        raise InvalidProgramError(f"{owner}: {parameter} must be positive, got {value}")


def check_offset(owner: str, offset: int, period: str, period_ms: int) -> None:
    if abs(offset) >= period_ms:
        raise InvalidProgramError(
            f"{owner}: offset must be shorter than the {period} ({period_ms} ms) in both directions, got {offset} ms"
        )
