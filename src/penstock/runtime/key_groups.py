"""Which key group a key belongs to, and which subtask owns a key group.

The hash must be the same in every process, on every machine and in every later version, because state files are
laid out by it. It must also agree with Python's equality (`1 == 1.0 == True` is one key), because state tables are
dictionaries.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import numbers
import pickle
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.types import Row


def stable_hash(key: Any) -> int:
    """A 32-bit hash of a key that never depends on the process."""
    hasher = _HASHERS.get(type(key))
    return hasher(key) if hasher is not None else _hash_other(key)


def _hash_text(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def _hash_number(key: Any) -> int:
    # CPython's hash of a number is a function of its value alone, and equal for equal numbers of any type.
    # Not that of NaN, which equals nothing: it is the object's address.
    value = hash(key) if key == key else 0
    return (value ^ (value >> 32)) & 0xFFFFFFFF


def _hash_sequence(key: Any) -> int:
    result = 1
    for item in key:
        result = (31 * result + stable_hash(item)) & 0xFFFFFFFF
    return result


def _hash_set(key: frozenset[Any]) -> int:
    result = 0
    for item in key:
        result ^= murmur_mix(stable_hash(item))
    return result


def _hash_other(key: Any) -> int:
    if isinstance(key, str):
        return _hash_text(key)
    if isinstance(key, numbers.Number):  # Decimals and fractions too, which equal ints
        return _hash_number(key)
    if isinstance(key, tuple):
        return _hash_sequence(key)
    if isinstance(key, frozenset):
        return _hash_set(key)
    if isinstance(key, Row):  # Rows with the same named fields in another order are equal.
        return sum(murmur_mix(stable_hash(value)) for value in key) & 0xFFFFFFFF
    if isinstance(key, enum.Enum):  # After str and int: a member that is one of them equals it
        return _hash_text(key.name)
    if isinstance(key, datetime.datetime) and key.utcoffset() is not None:
        return _hash_pickled(key.astimezone(datetime.timezone.utc))
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        return _hash_sequence(getattr(key, field.name) for field in dataclasses.fields(key) if field.compare)
    return _hash_object(key)


def _hash_object(key: Any) -> int:
    """An object by its fields, whatever their order; one without fields by its pickle."""
    kind: Any = type(key)
    if hasattr(key, "__dict__") and kind.__reduce__ is object.__reduce__:
        fields = vars(key)
        return _hash_sequence((kind.__qualname__, *((name, fields[name]) for name in sorted(fields))))
    try:
        return _hash_pickled(key)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidProgramError(
            f"the key {key!r} of type {type(key).__name__} has no hash that is the same in every process ({error}); "
            f"use a str, a number, a tuple or a dataclass as key"
        ) from error


def _hash_pickled(key: Any) -> int:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=4)
    # No references to what was written before: whether two equal parts are one object must not matter.
    pickler.fast = True
    pickler.dump(key)
    return zlib.crc32(buffer.getvalue())


_HASHERS: dict[type, Callable[[Any], int]] = {
    str: _hash_text,
    bytes: zlib.crc32,
    int: _hash_number,
    bool: _hash_number,
    float: _hash_number,
    complex: _hash_number,
    type(None): lambda _: 0,
    tuple: _hash_sequence,
    frozenset: _hash_set,
}


def murmur_mix(code: int) -> int:
    """Flink's MathUtils.murmurHash of one 32-bit value: spreads neighbouring hashes over all key groups."""
    code = (code * 0xCC9E2D51) & 0xFFFFFFFF
    code = ((code << 15) | (code >> 17)) & 0xFFFFFFFF
    code = (code * 0x1B873593) & 0xFFFFFFFF
    code = ((code << 13) | (code >> 19)) & 0xFFFFFFFF
    code = (code * 5 + 0xE6546B64) & 0xFFFFFFFF
    code ^= 4
    code ^= code >> 16
    code = (code * 0x85EBCA6B) & 0xFFFFFFFF
    code ^= code >> 13
    code = (code * 0xC2B2AE35) & 0xFFFFFFFF
    code ^= code >> 16
    # Java's int is signed here: the absolute value, except for the smallest one, which has none.
    return code if code < 0x80000000 else (0x100000000 - code) & 0x7FFFFFFF


def key_group_of(key: Any, max_parallelism: int) -> int:
    """The key group of `key`, between 0 and `max_parallelism` - 1."""
    try:
        hash(key)
    except TypeError:
        raise InvalidProgramError(
            f"the key {key!r} is of type {type(key).__name__}, which is not hashable; key_by needs a hashable key: "
            f"return a str, a number, a tuple or another immutable value"
        ) from None
    check_kind(type(key))
    return murmur_mix(stable_hash(key)) % max_parallelism


def check_kind(kind: Any) -> None:
    """Raise for a class whose objects are equal to themselves only: another process has other objects."""
    if kind.__hash__ is object.__hash__ and kind is not type(None):
        raise InvalidProgramError(
            f"a {kind.__name__} cannot be a key: it compares by identity, so no two records would have the same key; "
            f"define __eq__ and __hash__ (a frozen dataclass has both), or use a str, a number or a tuple"
        )


def subtask_of_key_group(group: int, max_parallelism: int, parallelism: int) -> int:
    """Flink's formula: group * parallelism / max parallelism."""
    return group * parallelism // max_parallelism


def key_group_range(subtask: int, max_parallelism: int, parallelism: int) -> range:
    """The key groups that `subtask` owns: the inverse of `subtask_of_key_group`."""
    start = (subtask * max_parallelism + parallelism - 1) // parallelism
    end = ((subtask + 1) * max_parallelism - 1) // parallelism
    return range(start, end + 1)


class KeyOwners(dict[Any, int]):
    """Which subtask owns a key, by key: `owners[key]`.

    Hot keys are hashed once; memory stays bounded. Once there have been many keys, they are hashed many at a time.
    """

    def __init__(self, max_parallelism: int, parallelism: int, limit: int = 1 << 17, many: int = 1 << 13) -> None:
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism
        self._limit = limit
        self._many = many
        """From as many keys on it pays to load NumPy."""
        self._are_many = False

    def __missing__(self, key: Any) -> int:
        group = key_group_of(key, self._max_parallelism)
        owner = subtask_of_key_group(group, self._max_parallelism, self._parallelism)
        self._make_room(1)
        self[key] = owner
        return owner

    def of(self, keys: list[Any]) -> list[int]:
        """The owners of many keys."""
        try:
            if self._are_many:
                if set(map(type, keys)) == {int}:
                    return self._hashed(keys)  # As quick as looking them up.
                self._add_missing(keys)
            return list(map(self.__getitem__, keys))
        except TypeError:
            check_keys(keys)
            raise

    def _add_missing(self, keys: list[Any]) -> None:
        missing = [key for key in dict.fromkeys(keys) if key not in self]
        if missing:
            for kind in set(map(type, missing)):
                check_kind(kind)
            self._make_room(len(missing))
            self.update(zip(missing, self._hashed(missing), strict=True))

    def _hashed(self, keys: list[Any]) -> list[int]:
        from penstock.runtime.bulk_hashing import owners_of

        return owners_of(keys, self._max_parallelism, self._parallelism)

    def _make_room(self, keys: int) -> None:
        self._are_many = self._are_many or len(self) >= self._many
        if len(self) + keys > self._limit:
            self.clear()


def check_keys(keys: Iterable[Any]) -> None:
    """Raise for the first key that cannot be one."""
    for key in keys:
        key_group_of(key, 1)
