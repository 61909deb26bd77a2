"""Functions on arrays and maps. The collection is never None; its elements may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def array_distinct(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def array_position(values: list[Any], wanted: Any) -> int:
    return values.index(wanted) + 1 if wanted in values else 0


def array_slice(values: list[Any], start: int, end: int | None = None) -> list[Any]:
    """Positions begin with 1; negative ones count from the end; the end belongs to it."""
    length = len(values)
    end = length if end is None else end
    first = start - 1 if start > 0 else (length + start if start < 0 else 0)
    last = end if end > 0 else (length + end + 1 if end < 0 else 1)
    first, last = max(first, 0), min(last, length)
    return values[first:last] if first < last else []


def array_sort(values: list[Any], ascending: bool = True, nulls_first: bool | None = None) -> list[Any]:
    nulls = [value for value in values if value is None]
    others = sorted([value for value in values if value is not None], reverse=not ascending)
    first = ascending if nulls_first is None else nulls_first
    return nulls + others if first else others + nulls


def array_join(values: list[Any], delimiter: str, null: str | None = None) -> str:
    parts = [null if value is None else value for value in values]
    return delimiter.join([part for part in parts if part is not None])


def _largest(values: list[Any]) -> Any:
    return max([value for value in values if value is not None], default=None)


def _smallest(values: list[Any]) -> Any:
    return min([value for value in values if value is not None], default=None)


def element(values: list[Any]) -> Any:
    if len(values) > 1:
        raise ValueError(f"ELEMENT needs an array of one element, got {len(values)}")
    return values[0] if values else None


def map_union(*maps: dict[Any, Any]) -> dict[Any, Any]:
    merged: dict[Any, Any] = {}
    for each in maps:
        merged.update(each)
    return merged


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ARRAY_DISTINCT": array_distinct,
    "ARRAY_REVERSE": lambda values: values[::-1],
    "ARRAY_CONCAT": lambda *arrays: [value for values in arrays for value in values],
    "ARRAY_SLICE": array_slice,
    "ARRAY_SORT": array_sort,
    "ARRAY_JOIN": array_join,
    "ARRAY_MAX": _largest,
    "ARRAY_MIN": _smallest,
    "ELEMENT": element,
    "MAP_KEYS": lambda entries: list(entries),
    "MAP_VALUES": lambda entries: list(entries.values()),
    "MAP_UNION": map_union,
}
"""NULL if an argument is NULL."""
WITH_NULL_ELEMENTS: dict[str, Callable[..., Any]] = {
    "ARRAY_CONTAINS": lambda values, wanted: None if values is None else wanted in values,
    "ARRAY_POSITION": lambda values, wanted: (
        None if values is None or wanted is None else array_position(values, wanted)
    ),
    "ARRAY_APPEND": lambda values, value: None if values is None else [*values, value],
    "ARRAY_PREPEND": lambda values, value: None if values is None else [value, *values],
    "ARRAY_REMOVE": lambda values, value: None if values is None else [each for each in values if each != value],
}
"""They get NULLs as None."""
