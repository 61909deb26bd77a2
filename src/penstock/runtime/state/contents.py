"""The contents of a part of a snapshot of a state table: objects, parts of maps, or entries that are still encoded."""

from __future__ import annotations

import itertools
import pickle
import struct
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from penstock.runtime.key_hashing import are_fixed
from penstock.runtime.state.codec import decode_state

Contents = Mapping[Hashable, Mapping[Any, Any]]
"""Namespace -> key -> value. In a delta, `REMOVED` takes the place of the value of a removed entry."""

_SIZES = struct.Struct("<II")
_KEYS_AT_ONCE = 1 << 16
_NAMES_A_CLASS = pickle.STACK_GLOBAL


class PartialMaps(dict[Hashable, Mapping[Any, Any]]):
    """Contents of a map state whose values are parts of maps: their entries are added to the existing maps.

    `REMOVED` stands for a removed map or a removed entry of a map. A `WholeMap` replaces the existing map.
    """


class WholeMap(dict[Any, Any]):
    """Among parts of maps: the new contents of a map, which replace the existing ones."""


def load(content: bytes) -> Any:
    """A key or value of an encoded entry. Faster than `decode_state`, unless classes must be found in other places."""
    try:
        return pickle.loads(content)
    except (AttributeError, ModuleNotFoundError):
        # A class of the script that was pickled in the driver and is read in an executor, or a class that has moved.
        return decode_state(content)


def pack(name: bytes, value: bytes) -> bytes:
    """An encoded entry. Several of them can be concatenated."""
    return _SIZES.pack(len(name), len(value)) + name + value


def unpack(entries: bytes) -> list[tuple[bytes, bytes]]:
    """The (name, value) of each of the concatenated entries."""
    found = []
    at, end, sizes_at, skipped = 0, len(entries), _SIZES.unpack_from, _SIZES.size
    while at < end:
        name_size, value_size = sizes_at(entries, at)
        name_at = at + skipped
        value_at = name_at + name_size
        at = value_at + value_size
        found.append((entries[name_at:value_at], entries[value_at:at]))
    return found


def is_single_entry(entries: bytes, name: bytes) -> bool:
    """True if there is exactly one entry, and it has this name."""
    name_size, value_size = _SIZES.unpack_from(entries)
    end = _SIZES.size + name_size
    return len(entries) == end + value_size and entries[_SIZES.size : end] == name


class EncodedEntries(Mapping[Hashable, Mapping[Any, Any]]):
    """Contents as they are in a store: they can be written to a snapshot and loaded again without decoding the values.

    For all other purposes they are ordinary contents, decoded when read. The name of an entry is its key.
    """

    def __init__(self, entries: dict[Hashable, bytes]) -> None:
        self.entries = entries
        """Namespace -> packed entries."""

    def __getitem__(self, namespace: Hashable) -> dict[Any, Any]:
        return {load(name): load(value) for name, value in unpack(self.entries[namespace])}

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entries,)

    def key_of(self, name: Any) -> Any:
        return name

    def has_fixed_keys(self) -> bool:
        # No pickle of a plain value has this instruction, but some of its texts or numbers may have the byte.
        return all(
            _NAMES_A_CLASS not in entries
            or _are_fixed(self.key_of(load(name)) for name, _ in unpack(entries) if _NAMES_A_CLASS in name)
            for entries in self.entries.values()
        )

    def owned(self, owns_key: Callable[[Any], bool]) -> EncodedEntries:
        kept = {
            namespace: b"".join(
                pack(name, value) for name, value in unpack(entries) if owns_key(self.key_of(load(name)))
            )
            for namespace, entries in self.entries.items()
        }
        return type(self)({namespace: entries for namespace, entries in kept.items() if entries})


class EncodedMapEntries(EncodedEntries):
    """Entries of maps. The name of an entry is (key, key in the map). A map may be spread over several such parts."""

    def __getitem__(self, namespace: Hashable) -> dict[Any, Any]:
        maps: dict[Any, dict[Any, Any]] = {}
        for name, value in unpack(self.entries[namespace]):
            key, map_key = load(name)
            maps.setdefault(key, {})[map_key] = load(value)
        return maps

    def key_of(self, name: Any) -> Any:
        return name[0]


class _Slice(Mapping[Any, Any]):
    """Consecutive entries of a mapping. They are pickled as a dictionary, without building that dictionary."""

    def __init__(self, held: Mapping[Any, Any], start: int, stop: int, next_items: Iterator[tuple[Any, Any]]) -> None:
        self._held = held
        self._start = start
        self._stop = stop
        self._next_items: Iterator[tuple[Any, Any]] | None = next_items
        """Yields the items, but only once. Starting a new iterator means skipping all items before `start`."""

    def __getitem__(self, key: Any) -> Any:
        return self._held[key]

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self._held, self._start, self._stop)

    def __len__(self) -> int:
        return self._stop - self._start

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        items, self._next_items = self._next_items, None
        return dict, (), None, None, items or itertools.islice(self._held.items(), self._start, self._stop)

    def unread(self) -> Iterator[Any]:
        """The keys. Only the first slice gives any, but those of all slices: skipping to the others would take long."""
        return iter(self._held if self._start == 0 else ())

    def release_items(self) -> None:
        """Stop using the shared iterator: the next slice continues with it."""
        self._next_items = None


def slices_of(held: Mapping[Any, Any], size: int) -> Iterator[Mapping[Any, Any]]:
    """All entries, up to `size` at a time; valid until `held` changes."""
    items = iter(held.items())
    for start in range(0, len(held), size):
        some = itertools.islice(items, size)
        part = _Slice(held, start, min(start + size, len(held)), some)
        yield part
        part.release_items()
        deque(some, maxlen=0)  # Skip the items of this slice that were not pickled.


def owned(contents: Contents, owns_key: Callable[[Any], bool]) -> Contents:
    """The part of `contents` whose keys `owns_key` returns True for."""
    if isinstance(contents, EncodedEntries):
        return contents.owned(owns_key)
    kept = {
        namespace: {key: value for key, value in keys.items() if owns_key(key)} for namespace, keys in contents.items()
    }
    kind = PartialMaps if isinstance(contents, PartialMaps) else dict
    return kind({namespace: keys for namespace, keys in kept.items() if keys})


def has_fixed_keys(contents: Contents) -> bool:
    """True if no class of the program has a say in which key groups the keys of `contents` belong to."""
    if isinstance(contents, EncodedEntries):
        return contents.has_fixed_keys()
    return all(_are_fixed(keys) for keys in contents.values())


def _are_fixed(keys: Iterable[Any]) -> bool:
    each = keys.unread() if isinstance(keys, _Slice) else iter(keys)
    while some := list(itertools.islice(each, _KEYS_AT_ONCE)):
        if not are_fixed(some):
            return False
    return True


def has_partial_maps(contents: Contents) -> bool:
    return isinstance(contents, (PartialMaps, EncodedMapEntries))
