"""Makes every NaN the same key, although a NaN equals nothing, not even itself.

PyFlink compares keys as bytes, so all NaNs have one state there. Here state tables are dictionaries. So every NaN in a
key is replaced by one object that equals itself, and that is the same object after it was pickled.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import functools
import numbers
import uuid
from collections.abc import Iterable
from itertools import chain
from typing import Any

from penstock.common.types import Row
from penstock.runtime.array_scalars import is_array_scalar, plain


class _NaN(float):
    def __eq__(self, other: object) -> bool:
        return other is self

    def __ne__(self, other: object) -> bool:
        return other is not self

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> str:
        return "NAN"


NAN = _NaN("nan")
"""A float like any other NaN, except that it equals itself."""

_NEVER_NAN = (str, bytes, numbers.Integral, type(None), datetime.date, datetime.time, uuid.UUID, enum.Enum)


def with_one_nan(keys: list[Any]) -> list[Any]:
    """The keys with every NaN in them replaced by `NAN`; the same list if no key can contain one."""
    return [as_key(key) for key in keys] if may_hold_nan(keys) else keys


def may_hold_nan(keys: Iterable[Any]) -> bool:
    """False if the keys are of types without NaN, or tuples of such types."""
    kinds = set(map(type, keys))
    if kinds == {tuple}:
        kinds = set(map(type, chain.from_iterable(keys)))
    return any(_may_be_nan(kind) for kind in kinds)


@functools.lru_cache(maxsize=1024)
def _may_be_nan(kind: Any) -> bool:
    # NumPy registers timedelta64 as an integer, although it has NaT.
    return not issubclass(kind, _NEVER_NAN) or kind.__name__ == "timedelta64"


def as_key(key: Any) -> Any:
    """One key with its NaNs replaced; the same object if it contains none."""
    kind: Any = type(key)
    if kind is float:
        return key if key == key else NAN
    if not _may_be_nan(kind) or kind is _NaN:
        return key
    if isinstance(key, (tuple, frozenset, Row)):
        return _collection(key)
    if dataclasses.is_dataclass(key):
        return _with_fields(key)
    number = plain(key) if is_array_scalar(key) else key
    return NAN if isinstance(number, numbers.Number) and number != number else key


def is_same_key(one: Any, other: Any) -> bool:
    """True if both are the same key of a dictionary, like `pd.NaT` and itself, although it does not equal itself.

    As in a dictionary, only keys with the same hash are compared: a comparison with `pd.NA` is neither true nor false.
    """
    return one is other or (hash(one) == hash(other) and bool(one == other))


def _collection(key: Any) -> Any:
    items = [as_key(item) for item in key]
    if all(new is old for new, old in zip(items, key, strict=True)):
        return key
    if isinstance(key, Row):
        copied = copy.copy(key)
        for at, item in enumerate(items):
            copied[at] = item
        return copied
    make = getattr(key, "_make", type(key))  # The constructor of a named tuple takes the fields one by one.
    return make(items)


def _with_fields(key: Any) -> Any:
    replaced = {field.name: as_key(getattr(key, field.name)) for field in dataclasses.fields(key)}
    changed = {name: value for name, value in replaced.items() if value is not getattr(key, name)}
    if not changed:
        return key
    copied = copy.copy(key)
    for name, value in changed.items():
        object.__setattr__(copied, name, value)  # The dataclass may be frozen.
    return copied
