"""A hash of keys that never changes.

The hash must be the same in every process, on every machine and in every later version, because it decides which
subtask owns a key, and so whose state file holds the key's state. `tests/golden/key_hashes.json` pins it. It must also
agree with Python's equality (`1 == 1.0 == True == np.bool_(True)` is one key), because state tables are dictionaries.
"""

from __future__ import annotations

import copyreg
import dataclasses
import datetime
import enum
import io
import numbers
import pathlib
import pickle
import uuid
import zlib
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.types import Row
from penstock.runtime.array_scalars import is_array_scalar, plain


def stable_hash(key: Any) -> int:
    """A 32-bit hash of a key, the same in every process."""
    hasher = _HASHERS.get(type(key))
    return hasher(key) if hasher is not None else _hash_other(key)


def _hash_text(key: str) -> int:
    return zlib.crc32(key.encode("utf-8", "surrogatepass"))


def _hash_number(key: Any) -> int:
    # CPython's hash of a number is a function of its value alone, and equal for equal numbers of any type.
    # NaN is the exception: its hash depends on the object's address.
    value = hash(key) if key == key else 0
    return (value ^ (value >> 32)) & 0xFFFFFFFF


def _hash_sequence(key: Any) -> int:
    result = 1
    for item in key:
        result = (31 * result + stable_hash(item)) & 0xFFFFFFFF
    return result


def _hash_set(key: Iterable[Any]) -> int:
    result = 0
    for item in key:
        result ^= murmur_mix(stable_hash(item))
    return result


def _hash_row(key: Row) -> int:
    """Rows with the same named fields in another order are equal."""
    return sum(murmur_mix(stable_hash(value)) for value in key) & 0xFFFFFFFF


def _hash_datetime(key: datetime.datetime) -> int:
    """Hash the moment in UTC if the offset is known, else the local time; subclasses hash as plain datetimes."""
    # A local time that occurs twice, because clocks were set back, counts as the first one, as in Python's own hash.
    offset = key.replace(fold=0).utcoffset()
    time = datetime.datetime(key.year, key.month, key.day, key.hour, key.minute, key.second, key.microsecond)
    if offset is None:
        return _hash_pickled(time)
    try:
        return _hash_pickled((time - offset).replace(tzinfo=datetime.timezone.utc))
    except OverflowError:  # In UTC it is before the first or after the last datetime.
        return _hash_duration(time - datetime.datetime.min - offset)


def _hash_date(key: datetime.date) -> int:
    return _hash_pickled(datetime.date(key.year, key.month, key.day))


def _hash_time(key: datetime.time) -> int:
    offset = key.replace(fold=0).utcoffset()
    time = datetime.time(key.hour, key.minute, key.second, key.microsecond)
    if offset is None:
        return _hash_pickled(time)
    return _hash_duration(datetime.datetime.combine(datetime.date.min, time) - datetime.datetime.min - offset)


def _hash_duration(key: datetime.timedelta) -> int:
    return _hash_pickled(datetime.timedelta(key.days, key.seconds, key.microseconds))


def _hash_uuid(key: uuid.UUID) -> int:
    return _hash_pickled(uuid.UUID(int=key.int))  # Without `is_safe`, which does not count in comparisons.


def _hash_path(key: pathlib.PurePath) -> int:
    return _hash_text(str(key).lower() if isinstance(key, pathlib.PureWindowsPath) else str(key))


def _hash_range(key: range) -> int:
    """Ranges are equal if they contain the same numbers in the same order."""
    return _hash_sequence((len(key), *key[:1], *((key.step,) if len(key) > 1 else ())))


def _hash_enum(key: enum.Enum) -> int:
    # A Flag without any bit set has no name, and before Python 3.11 neither has one with several bits set.
    return stable_hash(key.value) if key.name is None else _hash_text(key.name)


_BY_BASE: tuple[tuple[type, Callable[[Any], int]], ...] = (
    (str, _hash_text),
    (bytes, lambda key: zlib.crc32(bytes(key))),
    (numbers.Number, _hash_number),  # Decimals and fractions too, which equal ints
    (tuple, _hash_sequence),
    (frozenset, _hash_set),
    # Python cannot hash the next five types. Keys of these types arrive as subclasses that it can: see `hashable_keys`.
    (list, _hash_sequence),
    (array, _hash_sequence),
    (set, _hash_set),
    (dict, lambda key: _hash_set(key.items())),
    (bytearray, lambda key: zlib.crc32(bytes(key))),
    (Row, _hash_row),
    (datetime.datetime, _hash_datetime),
    (datetime.date, _hash_date),
    (datetime.time, _hash_time),
    (datetime.timedelta, _hash_duration),
    (uuid.UUID, _hash_uuid),
    (pathlib.PurePath, _hash_path),
    (enum.Enum, _hash_enum),  # After the types that an enum may extend: a member of a str enum equals its str.
)


def _hash_other(key: Any) -> int:
    if is_array_scalar(key) and (value := plain(key)) is not key:
        return stable_hash(value)
    for base, hasher in _BY_BASE:
        if isinstance(key, base):
            return hasher(key)
    if dataclasses.is_dataclass(key) and not isinstance(key, type):
        return _hash_sequence(getattr(key, field.name) for field in dataclasses.fields(key) if field.compare)
    return _hash_object(key)


def _hash_object(key: Any) -> int:
    """Hash an object by its fields, in the order of their names; if its class defines `__reduce__`, by its pickle."""
    kind: Any = type(key)
    if kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__:
        fields = _fields_of(key)
        if fields is not None:
            return _hash_sequence((kind.__qualname__, *((name, fields[name]) for name in sorted(fields))))
    try:
        return _hash_pickled(key)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidProgramError(
            f"the key {key!r} of type {type(key).__name__} has no hash that is the same in every process ({error}); "
            f"use a str, a number, a tuple or a dataclass as key"
        ) from error


def _fields_of(key: Any) -> dict[str, Any] | None:
    """The attributes in an object's dictionary and slots; None if it has neither."""
    slots = copyreg._slotnames(type(key))  # type: ignore[attr-defined]
    if not slots and not hasattr(key, "__dict__"):
        return None
    in_slots = {name: getattr(key, name) for name in slots if hasattr(key, name)}
    return {**in_slots, **getattr(key, "__dict__", {})}


def _hash_pickled(key: Any) -> int:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=4)
    # Without the memo: the pickle must not depend on whether two equal parts are the same object.
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
    range: _hash_range,
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
    # Flink takes the absolute value of a signed int, and 0 for the smallest one, which has no absolute value.
    return code if code < 0x80000000 else (0x100000000 - code) & 0x7FFFFFFF
