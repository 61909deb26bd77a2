"""Results of the Nexmark queries in a form that Penstock's and PyFlink's rows share."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

EVENTS, STEP_MS = 600, 100
_SHOWN = 12


def _text(value: Any) -> str:
    return value.isoformat(sep=" ") if isinstance(value, datetime.datetime) else str(value)


def rows_left(changes: Iterable[tuple[str, Iterable[Any]]], key: Sequence[int] | None = None) -> list[str]:
    """The rows that are there in the end, sorted, of rows with their kinds. With a key, the last row of each counts."""
    left: Counter[str] = Counter()
    last: dict[Any, str] = {}
    for kind, row in changes:
        texts = [_text(value) for value in row]
        text, is_there = " | ".join(texts), kind in ("+I", "+U")
        if key is None:
            left[text] += 1 if is_there else -1
        elif is_there:
            last[tuple(texts[column] for column in key)] = text
        else:
            last.pop(tuple(texts[column] for column in key), None)
    assert all(count >= 0 for count in left.values()), "a row was taken back that was not there"
    return sorted(left.elements() if key is None else last.values())


def summary(rows: list[str]) -> dict[str, Any]:
    """The first rows, and a digest of all, so that what is recorded stays small."""
    digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
    return {"count": len(rows), "digest": digest, "first": rows[:_SHOWN]}
