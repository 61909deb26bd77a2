"""State as JSON, for people and SQL to read. It is shown only: state is always restored from its pickled form."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import uuid
from collections import deque
from typing import Any

from penstock.common.types import Row
from penstock.runtime.state.table import VOID_NAMESPACE

LONGEST = 1 << 20
"""Nobody reads longer texts."""

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
_TEXTS = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)
_LISTS = (list, tuple, set, frozenset, deque)


def json_of(value: Any, longest: float = LONGEST) -> str | None:
    """The value as JSON; None if it has no such form, or one with more than `longest` characters."""
    try:
        text = _json_of(value)
    except (TypeError, RecursionError):
        return None
    return text if len(text) <= longest else None


def _json_of(value: Any) -> str:
    try:
        return _as_utf8(_encode(value))
    except (TypeError, ValueError):  # It holds what JSON does not have: dates, rows, objects, not-a-number.
        return _as_utf8(_encode(_plain(value)))


def text_of(namespace: Any) -> str | None:
    """A window or another namespace in words; None for state that belongs to a key alone."""
    return None if namespace is VOID_NAMESPACE else _as_utf8(str(namespace))


def _as_utf8(text: str) -> str:
    """Half a surrogate pair is a valid string in Python, but not in UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any) -> Any:
    """The value in types that JSON has. TypeError if it has none for it; RecursionError if it contains itself."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value.hex()
    if isinstance(value, _LISTS) or (isinstance(value, Row) and value._fields is None):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return _plain_map(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, _TEXTS):
        return str(value)
    return _plain_fields(value)


def _plain_map(value: dict[Any, Any]) -> Any:
    if all(isinstance(key, (str, int)) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    return [[_plain(key), _plain(each)] for key, each in value.items()]


def _plain_fields(value: Any) -> Any:
    if isinstance(value, Row):
        fields = value.as_dict()
    elif isinstance(value, type) or callable(value):
        raise TypeError(f"a {type(value).__name__} has no form in JSON")
    elif dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        fields = vars(value)  # TypeError if it has none
    return {name: _plain(each) for name, each in fields.items()}
