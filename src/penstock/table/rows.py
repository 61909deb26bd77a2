"""Rows between operators: a tuple of values, and on edges with changes the row's kind as one more item at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from operator import itemgetter
from typing import Any

from penstock.table import types as t
from penstock.table.types import DataType, RowType

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
ROW_KINDS = ("+I", "-U", "+U", "-D")
NANOS_PER_MILLI = 1_000_000

RowTuple = tuple[Any, ...]


def is_accumulate(kind: int) -> bool:
    """True if a row of this kind is there from now on, False if it no longer is."""
    return kind in (INSERT, UPDATE_AFTER)


def is_hashable(data_type: DataType) -> bool:
    """True if every value of the type can be the key of a dict."""
    if isinstance(data_type, RowType):
        return all(is_hashable(field) for field in data_type.field_types())
    return not isinstance(data_type, (t.ArrayType, t.MapType, t.MultisetType, t.RawType))


def hashable(value: Any) -> Any:
    """A value that can be the key of a dict, and is equal where the given one is."""
    if isinstance(value, list):
        return ("[", *map(hashable, value))
    if isinstance(value, dict):
        return frozenset((hashable(key), hashable(item)) for key, item in value.items())
    return tuple(map(hashable, value)) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class KeyOf:
    """The key of a row: the values of some columns as a tuple. It is the same with and without the row's kind."""

    row_type: RowType
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_values", values_of(self.columns))

    @staticmethod
    def of(row_type: RowType, columns: Sequence[int]) -> Callable[[RowTuple], RowTuple]:
        """A key selector; a built-in function if all values can be keys as they are."""
        types = [row_type.field_types()[column] for column in columns]
        return values_of(columns) if all(map(is_hashable, types)) else KeyOf(row_type, tuple(columns))

    def __call__(self, row: RowTuple) -> RowTuple:
        key: RowTuple = hashable(self._values(row))  # type: ignore[attr-defined]
        return key


def values_of(columns: Sequence[int]) -> Callable[[RowTuple], RowTuple]:
    """A function from a row to the values of some columns."""
    if not columns:
        return itemgetter(slice(0, 0))
    if len(columns) == 1:
        (only,) = columns
        return itemgetter(slice(only, only + 1))  # A tuple with one item.
    return itemgetter(*columns)


@dataclass(frozen=True)
class SortField:
    """One item of ORDER BY."""

    column: int
    is_ascending: bool
    nulls_last: bool

    def compare(self, left: RowTuple, right: RowTuple) -> int:
        one, other = left[self.column], right[self.column]
        if one is None or other is None:
            if one is other:
                return 0
            return 1 if (one is None) == self.nulls_last else -1
        if one == other:
            return 0
        return -1 if (one < other) == self.is_ascending else 1


@dataclass(frozen=True)
class RowOrder:
    """The order of ORDER BY; `key` is for `sorted`."""

    fields: tuple[SortField, ...]

    @staticmethod
    def of(spec: Any) -> RowOrder:
        return RowOrder(tuple(SortField(f["index"], f["isAscending"], f["nullIsLast"]) for f in spec["fields"]))

    def compare(self, left: RowTuple, right: RowTuple) -> int:
        for field in self.fields:
            found = field.compare(left, right)
            if found:
                return found
        return 0

    @property
    def key(self) -> Callable[[RowTuple], Any]:
        return cmp_to_key(self.compare)

    def values(self, row: RowTuple) -> RowTuple:
        return tuple([row[field.column] for field in self.fields])
