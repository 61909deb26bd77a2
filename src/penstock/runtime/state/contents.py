"""What a part of a snapshot of a state table holds: objects, parts of maps, or entries that are bytes still."""

from __future__ import annotations

import itertools
import pickle
import struct
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from penstock.runtime.state.codec import decode_state

Contents = Mapping[Hashable, Mapping[Any, Any]]
"""Namespace -> key -> value. In a delta, `REMOVED` in the place of a value says that the entry is gone."""

_SIZES = struct.Struct("<II")


class PartialMaps(dict[Hashable, Mapping[Any, Any]]):
    """Contents of a map state whose values are parts of maps: they are added to the maps that are there.

    `REMOVED` stands for a map, or for an entry of one, that is gone; a `WholeMap` takes the place of what is there.
    """


class WholeMap(dict[Any, Any]):
    """Among parts of maps, one that is to be all of the map."""


def load(content: bytes) -> Any:
    try:
        return pickle.loads(content)
    except (AttributeError, ModuleNotFoundError):
        # A class of the script, written where the script ran and read where it did not; or one that has moved since.
        return decode_state(content)


def pack(name: bytes, value: bytes) -> bytes:
    """An entry; several of them are put one after the other."""
    return _SIZES.pack(len(name), len(value)) + name + value


def unpack(entries: bytes) -> list[tuple[bytes, bytes]]:
    """The (name, value) of each entry."""
    found = []
    at, end, sizes_at, skipped = 0, len(entries), _SIZES.unpack_from, _SIZES.size
    while at < end:
        name_size, value_size = sizes_at(entries, at)
        name_at = at + skipped
        value_at = name_at + name_size
        at = value_at + value_size
        found.append((entries[name_at:value_at], entries[value_at:at]))
    return found


def has_one(entries: bytes, name: bytes) -> bool:
    """True if there is one entry, and it is called `name`."""
    name_size, value_size = _SIZES.unpack_from(entries)
    end = _SIZES.size + name_size
    return len(entries) == end + value_size and entries[_SIZES.size : end] == name


class EncodedEntries(Mapping[Hashable, Mapping[Any, Any]]):
    """Contents as they lie in a store: neither the writer nor what moves them on needs to know what the values are.

    To everybody else they are contents like others, decoded when read. The name of an entry is its key.
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

    def owned(self, owns_key: Callable[[Any], bool]) -> EncodedEntries:
        kept = {
            namespace: b"".join(
                pack(name, value) for name, value in unpack(entries) if owns_key(self.key_of(load(name)))
            )
            for namespace, entries in self.entries.items()
        }
        return type(self)({namespace: entries for namespace, entries in kept.items() if entries})


class EncodedMapEntries(EncodedEntries):
    """Entries of maps: the name of one is (key, key in the map). A map may lie in several such parts."""

    def __getitem__(self, namespace: Hashable) -> dict[Any, Any]:
        maps: dict[Any, dict[Any, Any]] = {}
        for name, value in unpack(self.entries[namespace]):
            key, map_key = load(name)
            maps.setdefault(key, {})[map_key] = load(value)
        return maps

    def key_of(self, name: Any) -> Any:
        return name[0]


class _Slice(Mapping[Any, Any]):
    """Entries of a mapping that follow each other. They are pickled as a dictionary that nobody needs to make."""

    def __init__(self, held: Mapping[Any, Any], start: int, stop: int, next_items: Iterator[tuple[Any, Any]]) -> None:
        self._held = held
        self._start = start
        self._stop = stop
        self._next_items: Iterator[tuple[Any, Any]] | None = next_items
        """The items, once: to find the first of them takes time."""

    def __getitem__(self, key: Any) -> Any:
        return self._held[key]

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self._held, self._start, self._stop)

    def __len__(self) -> int:
        return self._stop - self._start

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        items, self._next_items = self._next_items, None
        return dict, (), None, None, items or itertools.islice(self._held.items(), self._start, self._stop)

    def has_passed(self) -> None:
        """The next slice takes its items."""
        self._next_items = None


def slices_of(held: Mapping[Any, Any], size: int) -> Iterator[Mapping[Any, Any]]:
    """All entries, up to `size` at a time; valid until `held` changes."""
    items = iter(held.items())
    for start in range(0, len(held), size):
        some = itertools.islice(items, size)
        part = _Slice(held, start, min(start + size, len(held)), some)
        yield part
        part.has_passed()
        deque(some, maxlen=0)


def owned(contents: Contents, owns_key: Callable[[Any], bool]) -> Contents:
    """The part of `contents` that belongs to the keys that `owns_key` is True for."""
    if isinstance(contents, EncodedEntries):
        return contents.owned(owns_key)
    kept = {
        namespace: {key: value for key, value in keys.items() if owns_key(key)} for namespace, keys in contents.items()
    }
    kind = PartialMaps if isinstance(contents, PartialMaps) else dict
    return kind({namespace: keys for namespace, keys in kept.items() if keys})


def has_partial_maps(contents: Contents) -> bool:
    return isinstance(contents, (PartialMaps, EncodedMapEntries))
