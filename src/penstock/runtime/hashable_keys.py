"""Hashable forms of keys that Python cannot hash, such as lists and dicts.

A `HashableList` is a list and equals the list that it was made from. It is the key that functions see. Keys that Python
can hash stay as they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.types import Row
from penstock.runtime.nan_keys import as_key


class HashableList(list[Any]):
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


class HashableDict(dict[Any, Any]):
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class HashableBytes(bytearray):
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(bytes(self))


class HashableSet(set[Any]):
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))


class HashableArray(array):  # type: ignore[type-arg]
    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def hashable_keys(keys: list[Any]) -> list[Any]:
    """The keys, each in a hashable form; raises InvalidProgramError for a key that has none."""
    try:
        set(keys)
    except TypeError:
        return [_hashable(key) for key in keys]
    return keys


def _hashable(key: Any) -> Any:
    try:
        hash(key)
    except TypeError:
        make = _MAKERS.get(type(key))
        if make is None:
            raise InvalidProgramError(
                f"the key {key!r} is of type {type(key).__name__}, which is not hashable; key_by needs a key that "
                f"can be compared: a str, a number, a tuple, a list, a dict, or an object with __eq__ and __hash__ "
                f"(a frozen dataclass has both)"
            ) from None
        return make(key)
    return as_key(key)


def _hashable_row(row: Row) -> Row:
    made = Row(*map(_hashable, row))
    made.set_row_kind(row.get_row_kind())
    made._fields = row._fields
    return made


_MAKERS: dict[type, Callable[[Any], Any]] = {
    list: lambda key: HashableList(map(_hashable, key)),
    tuple: lambda key: tuple(map(_hashable, key)),
    dict: lambda key: HashableDict({name: _hashable(value) for name, value in key.items()}),
    set: HashableSet,
    bytearray: HashableBytes,
    array: lambda key: HashableArray(key.typecode, key),
    Row: _hashable_row,
}
