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
import sys
import uuid
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from penstock.common.exceptions import InvalidProgramError
from penstock.common.types import Row
from penstock.runtime.array_scalars import ARRAY_LIBRARIES, is_array_scalar, plain
from penstock.runtime.own_hashes import own_hash
from penstock.runtime.state.codec import is_known_to_job


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
    kind = type(key)
    hasher = _hashers_of_classes.get(kind)
    if hasher is None:
        hasher = _hashers_of_classes[kind] = _hasher_of(kind)
    return hasher(key)


def check_kind(kind: Any) -> None:
    """Raise for a class whose objects cannot be keys, because other processes would take them for other keys."""
    if issubclass(kind, type):
        raise InvalidProgramError(_by_identity(kind))
    if kind not in _HASHERS and kind not in _hashers_of_classes and not _is_of_library(kind, ARRAY_LIBRARIES):
        _hashers_of_classes[kind] = _hasher_of(kind)


def are_fixed(keys: Collection[Any]) -> bool:
    """True if no class of the program has a say in what the keys hash to: they stay where they are when it changes."""
    return all(kind in _HASHERS or kind is Row or _is_of_library(kind, _FIXED_LIBRARIES) for kind in _kinds_in(keys))


def check_keys(keys: Collection[Any]) -> None:
    """Raise if there is a key that cannot be one, or that has a part that cannot."""
    if not _kinds_in(keys) <= _HASHERS.keys():
        for key in keys:
            check_kind(type(key))
            stable_hash(key)


def _kinds_in(keys: Collection[Any]) -> set[type]:
    """The types of keys and of their parts, if they are of types that have parts."""
    kinds = set(map(type, keys))
    if not kinds.isdisjoint(_WITH_PARTS):
        kinds |= _kinds_in([part for key in keys if type(key) in _WITH_PARTS for part in key])
    return kinds


_hashers_of_classes: WeakKeyDictionary[Any, Callable[[Any], int]] = WeakKeyDictionary()
_FIXED_LIBRARIES = (frozenset(sys.stdlib_module_names) - {"__main__"}) | {"numpy", "pandas", "pyarrow"}
_EQUALS_BY_VALUE = _FIXED_LIBRARIES | {"penstock"}
"""Libraries whose `__eq__` is known to compare what is hashed here."""


def _hasher_of(kind: Any) -> Callable[[Any], int]:
    """The hash of objects of one class, by what its `__eq__` compares."""
    if issubclass(kind, type):
        return lambda key: _hash_text(key.__qualname__)
    author = next(base for base in kind.__mro__ if "__eq__" in vars(base))
    is_enum = issubclass(kind, enum.Enum)
    if author is object and not is_enum and not _is_of_library(kind, ("penstock",)):
        raise InvalidProgramError(_by_identity(kind))
    is_of_library = _is_of_library(author, _EQUALS_BY_VALUE)
    if "<locals>" in kind.__qualname__ and is_known_to_job(kind) is False and (author is object or not is_of_library):
        raise InvalidProgramError(
            f"a {kind.__qualname__} cannot be a key: the class is made inside a function, and it cannot be told which "
            f"class that is when the job is restored; define it at the top level of its module"
        )
    if is_of_library and "__dataclass_fields__" not in vars(author):
        return next((hasher for base, hasher in _BY_BASE if issubclass(kind, base)), _hash_object)
    compared = _names_that_a_dataclass_compares(author)
    if compared is not None:
        return lambda key: _hash_sequence(getattr(key, name) for name in compared)
    by_attrs = _names_that_attrs_compares(author)
    if by_attrs is not None:
        return lambda key: _hash_named(author, ((name, getattr(key, name)) for name in by_attrs))
    found = own_hash(kind, stable_hash)
    if isinstance(found, str):
        raise InvalidProgramError(
            f"a {kind.__name__} cannot be a key: it has its own __eq__, and {found}, so its hash may not be the same "
            f"in every process; let __hash__ return hash((...)) of attributes, or use a frozen dataclass, which "
            f"compares by its fields, or a str, a number or a tuple"
        )
    return lambda key: _hash_number(found(key))


def _by_identity(kind: Any) -> str:
    return (
        f"a {kind.__name__} cannot be a key: it compares by identity, so no two records would have the same key; use a "
        f"frozen dataclass, which compares by its fields, or a str, a number or a tuple"
    )


def _is_of_library(kind: Any, names: Collection[str]) -> bool:
    return kind.__module__.partition(".")[0] in names


def _names_that_a_dataclass_compares(author: Any) -> list[str] | None:
    """The fields that count in a dataclass's own `__eq__`; None for another `__eq__`."""
    fields = vars(author).get("__dataclass_fields__")
    if fields is None:
        return None
    compared = [field.name for field in dataclasses.fields(author) if field.compare]
    # Whether Python or the user has written it is to be seen only in its code.
    model = dataclasses.make_dataclass("Model", compared)
    return compared if _has_same_code(author.__eq__, model.__eq__) else None


def _has_same_code(one: Any, other: Any) -> bool:
    codes = [getattr(each, "__code__", None) for each in (one, other)]
    parts = [code and (code.co_code, code.co_names, code.co_consts) for code in codes]
    return parts[0] is not None and parts[0] == parts[1]


def _names_that_attrs_compares(author: Any) -> list[str] | None:
    """The same for a class of attrs."""
    code = getattr(author.__eq__, "__code__", None)
    if code is None or not code.co_filename.startswith("<attrs generated"):
        return None
    attributes = vars(author).get("__attrs_attrs__", ())
    # What compares by a function of its value is left out: equal objects have equal hashes without it, too.
    return [each.name for each in attributes if each.eq and each.eq_key is None]


def _hash_object(key: Any) -> int:
    """Hash an object by its fields, in the order of their names; if its class defines `__reduce__`, by its pickle."""
    kind: Any = type(key)
    if kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__:
        fields = _fields_of(key)
        if fields is not None:
            return _hash_named(kind, fields.items())
    try:
        return _hash_pickled(key)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidProgramError(
            f"the key {key!r} of type {type(key).__name__} has no hash that is the same in every process ({error}); "
            f"use a str, a number, a tuple or a dataclass as key"
        ) from error


def _hash_named(kind: Any, fields: Iterable[tuple[str, Any]]) -> int:
    return _hash_sequence((kind.__qualname__, *sorted(fields, key=itemgetter(0))))


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
_WITH_PARTS = frozenset((tuple, frozenset, Row))


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
