"""Entries of a state table on disk: a bounded number of live objects, those in memory, in front of a store.

Objects are held in two generations. An object that is used moves to the recent generation. When that is full, changed
objects of the older generation are written to the store, the older generation is dropped, and the recent one becomes
the older one. So an object that was used recently is still the same object: an operator may change it in place and note
the change afterwards. A new table is written to disk only when it no longer fits into memory.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from functools import partial
from typing import Any, Final
from zlib import crc32

from penstock.runtime.key_hashing import stable_hash
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.contents import load, unpack
from penstock.runtime.state.entry_store import EntryStore, Found, Write
from penstock.runtime.state.table import VOID_NAMESPACE

ABSENT: Final = object()
"""Takes the place of an object that does not exist. The store may have the entry until the removal is written."""
UNKNOWN: Final = object()
"""Takes the place of an object that is not in memory: only the store knows whether it exists."""

hash_bytes = struct.Struct(">I").pack


def _encoded(held: Any) -> bytes | None:
    return None if held is ABSENT else encode_state(held)


class LiveEntries:
    """The namespaces of one table."""

    def __init__(
        self,
        store: EntryStore,
        capacity: int,
        make_keys: Callable[[LiveEntries, Hashable], LiveKeys],
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self.capacity = capacity
        self.namespaces: dict[Hashable, LiveKeys] = {}
        self.is_direct = False
        """True if operators work on the entries directly, so that any live object may have been changed in place."""
        self.fair_share = capacity
        """How many entries of a single map may stay in memory when the generations change."""
        self._make_keys = make_keys
        self._on_full = on_full
        self._left = capacity // 2

    def keys_of(self, namespace: Hashable) -> LiveKeys:
        """The entries of a namespace, which may be new."""
        keys = self.namespaces.get(namespace)
        if keys is None:
            keys = self.namespaces[namespace] = self._make_keys(self, namespace)
        return keys

    def drop(self, namespace: Hashable) -> None:
        self.namespaces.pop(namespace).drop()

    def took_room(self) -> None:
        """Count one more live object. If the recent generation is full, drop the older one."""
        self._left -= 1
        if self._left <= 0:
            self._left = max(self.capacity // 2, 1)
            self.fair_share = 2 * self.capacity // max(sum(keys.recent_count() for keys in self.namespaces.values()), 1)
            self.store.write([write for keys in self.namespaces.values() for write in keys.grow_older()])
            self._on_full()

    def write_back(self) -> None:
        """Write all changes to the store."""
        self.store.write([write for keys in self.namespaces.values() for write in keys.unwritten()])

    def is_stored(self) -> bool:
        """True if the store may have entries of this table."""
        return any(keys.is_stored for keys in self.namespaces.values())


class FoundEntries(MutableMapping[Any, Any], ABC):
    """A dictionary of which only a part is in memory. `find` loads an entry."""

    @abstractmethod
    def find(self, key: Any) -> Any:
        """The object of `key`, or ABSENT."""

    def __getitem__(self, key: Any) -> Any:
        held = self.find(key)
        if held is ABSENT:
            raise KeyError(key)
        return held

    def __contains__(self, key: object) -> bool:
        return self.find(key) is not ABSENT


class LiveKeys(FoundEntries):
    """The entries of one namespace."""

    def __init__(self, entries: LiveEntries, namespace: Hashable) -> None:
        self.namespace = namespace
        self.is_stored = False
        """True if the store may hold entries of this namespace."""
        self._entries = entries
        self._store = entries.store
        self._prefix = entries.store.new_prefix()
        self._count = 0
        self._recent: dict[Any, Any] = {}
        self._older: dict[Any, Any] = {}
        self._changed: set[Any] = set()
        """Keys whose live objects differ from the store."""

    # --- one entry -------------------------------------------------------------------------------------------------

    def find(self, key: Any) -> Any:
        """The object of `key`, or ABSENT."""
        held = self._recent.get(key, UNKNOWN)
        return self._fetch(key) if held is UNKNOWN else held

    def _fetch(self, key: Any) -> Any:
        held = self._older.pop(key, UNKNOWN)
        if held is UNKNOWN:
            if not self.is_stored:
                return ABSENT
            held = self._from_store(key)
        self._entries.took_room()  # First: it may change the generations, and an object must be in only one of them.
        self._recent[key] = held
        return held

    def store(self, key: Any, value: Any) -> bool:
        """Set the object of `key`; True if the entry existed before."""
        was_there = self.find(key) is not ABSENT
        if not was_there:
            self._count += 1
            if key not in self._recent:
                self._entries.took_room()
        self._recent[key] = value
        self._changed.add(key)
        return was_there

    def remove(self, key: Any) -> bool:
        """Remove the entry of `key`; True if it existed."""
        if self.find(key) is ABSENT:
            return False
        self._count -= 1
        if self.is_stored:
            self._recent[key] = ABSENT
            self._changed.add(key)
        else:
            del self._recent[key]
            self._changed.discard(key)
        return True

    def discard(self, key: Any) -> bool:
        """Remove the entry of `key` without noting a change for the next snapshot; True if it existed."""
        return self.remove(key)

    def live(self, key: Any) -> Any:
        """The object of `key`, ABSENT, or UNKNOWN if it is not in memory."""
        held = self._recent.get(key, UNKNOWN)
        return self._older.get(key, UNKNOWN) if held is UNKNOWN else held

    def peek(self, key: Any) -> Any:
        """The object of `key`, or ABSENT. It does not become live."""
        held = self.live(key)
        return self._from_store(key) if held is UNKNOWN and self.is_stored else ABSENT if held is UNKNOWN else held

    def _from_store(self, key: Any) -> Any:
        value = self._store.get(self._address(key), key)
        return ABSENT if value is None else load(value)

    def _address(self, key: Any) -> bytes:
        # Most keys are strings. This is their stable hash, without the dispatch on types, which takes as long again.
        hashed = crc32(key.encode("utf-8", "surrogatepass")) if type(key) is str else stable_hash(key)
        return self._prefix + hash_bytes(hashed)

    def recent_count(self) -> int:
        return len(self._recent)

    # --- the store -------------------------------------------------------------------------------------------------

    def grow_older(self) -> list[Write]:
        """Drop the older objects; returns the changes of them that must be written."""
        older, self._older, self._recent = self._older, self._recent, {}
        return self._writes(older)

    def unwritten(self) -> list[Write]:
        """All changes that the store does not have. The caller must write them: they count as written from now on."""
        return self._writes(self._older) + self._writes(self._recent)

    def _writes(self, objects: dict[Any, Any]) -> list[Write]:
        """The changes of `objects` that the store does not have. They count as written from now on."""
        is_direct, changed = self._entries.is_direct, self._changed
        keys = [key for key, held in objects.items() if key in changed or (is_direct and held is not ABSENT)]
        self.is_stored = self.is_stored or bool(keys)
        self._changed.difference_update(keys)
        return [(self._address(key), key, encode_state(key), _encoded(objects[key])) for key in keys]

    def load_encoded(self, entries: bytes) -> None:
        """Write encoded entries of a snapshot to the store as they are."""
        self._forget_live()
        names = [(load(name), name, value) for name, value in unpack(entries)]
        self._count += self._store.write([(self._address(key), key, name, value) for key, name, value in names])
        self.is_stored = True

    def _forget_live(self) -> None:
        """Write all changes to the store and keep no object in memory."""
        self._store.write(self.unwritten())
        self._recent.clear()
        self._older.clear()

    def packed(self) -> Iterator[bytes]:
        """All entries of the store, in parts. Changes that are not written yet are missing."""
        return self._store.scan_packed(self._prefix)

    def drop(self) -> None:
        """Drop all entries of the namespace."""
        self._count = 0
        self._changed.clear()
        self._recent.clear()
        self._older.clear()
        if self.is_stored:
            self._store.delete(self._prefix)
            self.is_stored = False

    # --- a dictionary ----------------------------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        held = self._recent.get(key, UNKNOWN)
        if held is UNKNOWN:
            held = self._fetch(key)
        return default if held is ABSENT else held

    def __setitem__(self, key: Any, value: Any) -> None:
        self.store(key, value)

    def __delitem__(self, key: Any) -> None:
        if not self.remove(key):
            raise KeyError(key)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.entries())

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """(key, object) of all entries. If they change during the iteration, later ones are given as they are then."""
        seen = set()
        for key in [*self._recent, *self._older]:
            held = self.live(key)
            seen.add(key)
            if held is UNKNOWN:
                held = self.find(key)  # It has been dropped since the iteration began.
            if held is not ABSENT:
                yield key, held
        for found in self._store.scan(self._prefix) if self.is_stored else ():
            version = self._store.version
            for key, value in self._stored_objects(found):
                if key in seen:
                    continue
                is_current = self._store.version == version and self.live(key) is UNKNOWN
                held = value() if is_current else self.peek(key)
                if held is not ABSENT:
                    yield key, held

    def _stored_objects(self, found: list[Found]) -> Iterator[tuple[Any, Callable[[], Any]]]:
        """Keys, each with a function that decodes the object that was found."""
        for name, value in found:
            yield load(name), partial(load, value)


class DirectEntries(MutableMapping[Hashable, Any]):
    """The entries of a table as operators use them directly: namespace -> key -> value.

    Operators may change the objects they find here in place.
    """

    def __init__(
        self, entries: Callable[[], LiveEntries], plain: Callable[[], MutableMapping[Any, Any] | None]
    ) -> None:
        self._live = entries
        self._plain = plain
        """Gives plain keyed state, which is not in `LiveEntries`; None if there is none because the values are maps."""

    def _entries(self) -> LiveEntries:
        entries = self._live()
        entries.is_direct = True
        return entries

    def get(self, namespace: Hashable, default: Any = None) -> Any:
        if namespace is VOID_NAMESPACE and (plain := self._plain()) is not None:
            return plain or default
        return self._entries().namespaces.get(namespace, default)

    def __getitem__(self, namespace: Hashable) -> Any:
        found = self.get(namespace)
        if found is None:
            raise KeyError(namespace)
        return found

    def setdefault(self, namespace: Hashable, default: Any = None) -> Any:
        keys = self.get(namespace)
        if keys is None:
            self[namespace] = default
            keys = self[namespace]
        return keys

    def __setitem__(self, namespace: Hashable, contents: Any) -> None:
        if namespace in self:
            del self[namespace]
        self._entries().keys_of(namespace).update(contents)

    def __delitem__(self, namespace: Hashable) -> None:
        if namespace not in self:
            raise KeyError(namespace)
        if namespace is VOID_NAMESPACE and (plain := self._plain()) is not None:
            plain.clear()
        else:
            self._entries().drop(namespace)

    def __contains__(self, namespace: object) -> bool:
        if namespace is VOID_NAMESPACE and (plain := self._plain()) is not None:
            return bool(plain)
        return namespace in self._entries().namespaces

    def __iter__(self) -> Iterator[Hashable]:
        if self._plain():
            yield VOID_NAMESPACE
        yield from self._entries().namespaces

    def __len__(self) -> int:
        return len(self._entries().namespaces) + bool(self._plain())
