"""Map state on disk: every entry of a map is an entry of the store, so it can be read without the others.

The entries of a map are next to each other, because their addresses begin with the hash of the map's key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any

from penstock.runtime.key_hashing import check_kind, stable_hash
from penstock.runtime.nan_keys import is_same_key
from penstock.runtime.state.change_journal import ChangedNames
from penstock.runtime.state.changes import Untracked
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.contents import load, unpack
from penstock.runtime.state.entry_store import SCAN_ENTRIES, Found, Write
from penstock.runtime.state.live_entries import ABSENT, UNKNOWN, LiveEntries, LiveKeys, hash_bytes

_PROBED_ENTRIES = 16
_MANY_REMOVED = 100


class LiveMaps(LiveKeys):
    """The maps of one namespace, by key. The object of a key is its `MapPage`. A map without entries does not exist.

    Changes are noted under the name (key, key in the map) for an entry, and (key,) for a whole map.
    """

    def __init__(
        self, entries: LiveEntries, namespace: Hashable, changes: Callable[[], ChangedNames | Untracked]
    ) -> None:
        super().__init__(entries, namespace)
        self._changes = changes

    def store(self, key: Any, value: Any) -> bool:
        """Set the map of `key`: either a page of this key, which has noted its own changes, or a new mapping."""
        held = self.find(key)
        if isinstance(value, MapPage) and value.is_of(self, key):
            if held is not value:
                self._keep(key, value, held is ABSENT)
        else:
            if held is not ABSENT:
                self._forget_unsaved(key, held.known_keys())
            self._changes().written(self.namespace, (key,), held is not ABSENT)
            self.install(key, dict(value))
        return held is not ABSENT

    def install(self, key: Any, contents: Mapping[Any, Any]) -> None:
        """Set the map of `key` to `contents` without noting a change for the next snapshot."""
        held = self.find(key)
        if held is not ABSENT:
            held.drop()
        page = MapPage(self, key, is_complete=True)
        page.fill(contents)
        self._keep(key, page, held is ABSENT)

    def _keep(self, key: Any, page: MapPage, is_new: bool) -> None:
        if is_new:
            self._count += 1
        if key not in self._recent:
            self._entries.took_room()
        self._older.pop(key, None)
        self._recent[key] = page
        if page.live_count() > self._entries.capacity:
            self.write(page.give_up())

    def merge(self, key: Any, part: Mapping[Any, Any]) -> None:
        """Add entries to the map of `key`, or remove those that are ABSENT in `part`; no change is noted."""
        held = self.find(key)
        page = MapPage(self, key, is_complete=True) if held is ABSENT else held
        page.fill(part)
        self._keep(key, page, held is ABSENT)  # Filling in a large part may have dropped the page from memory.
        if not page:
            self.discard(key)

    def remove(self, key: Any) -> bool:
        page = self.find(key)
        if page is ABSENT:
            return False
        self._note_removal(key, page.known_keys())
        return self.discard(key)

    def _note_removal(self, key: Any, map_keys: set[Any]) -> None:
        """Note that a map was removed with all its entries. Entries that no snapshot has leave no note."""
        changes = self._changes()
        is_saved = changes.is_in_snapshot(self.namespace, (key,))
        has_saved_entry = self._forget_unsaved(key, map_keys)
        if is_saved is None and has_saved_entry:
            is_saved = True
        if is_saved is not None:
            changes.written(self.namespace, (key,), is_saved)
            changes.removed(self.namespace, (key,))

    def _forget_unsaved(self, key: Any, map_keys: set[Any]) -> bool:
        """Entries of a map are gone: those that no snapshot has leave no note. True if there are others."""
        changes = self._changes()
        unsaved = [each for each in map_keys if changes.is_in_snapshot(self.namespace, (key, each)) is False]
        for map_key in unsaved:
            changes.removed(self.namespace, (key, map_key))
        return len(unsaved) < len(map_keys)

    def discard(self, key: Any) -> bool:
        """Remove the map of `key` without noting a change for the next snapshot; True if it existed."""
        page = self.find(key)
        if page is ABSENT:
            return False
        page.drop()
        self._count -= 1
        if self.is_stored:
            self._recent[key] = ABSENT
        else:
            del self._recent[key]
        return True

    def note_written(self, key: Any, map_key: Any, was_there: bool) -> None:
        is_of_new_map = self._changes().is_in_snapshot(self.namespace, (key,)) is False
        self._changes().written(self.namespace, (key, map_key), was_there and not is_of_new_map)

    def note_removed(self, key: Any, map_key: Any) -> None:
        name, changes = (key, map_key), self._changes()
        if changes.is_in_snapshot(self.namespace, (key,)) is False:
            changes.written(self.namespace, name, False)
        changes.removed(self.namespace, name)

    def took_room(self) -> None:
        self._entries.took_room()

    # --- the store -------------------------------------------------------------------------------------------------

    def _from_store(self, key: Any) -> Any:
        is_there = any(True for _ in self.stored_map(key, 1))
        return MapPage(self, key, is_complete=False) if is_there else ABSENT

    def stored_map(self, key: Any, limit: int = SCAN_ENTRIES) -> Iterator[list[tuple[Any, bytes]]]:
        """(key in the map, encoded value) of the entries of a map in the store, in lists."""
        for found in self._store.scan(self._address(key), limit):
            names = [(load(name), value) for name, value in found]
            # Maps of other keys with the same hash are at the same addresses.
            mine = [(map_key, value) for (owner, map_key), value in names if is_same_key(owner, key)]
            if mine:
                yield mine

    def grow_older(self) -> list[Write]:
        share = self._entries.fair_share
        large = [page for page in self._recent.values() if page is not ABSENT and page.live_count() > share]
        writes = super().grow_older() + [write for page in large for write in page.give_up()]
        self.is_stored = self.is_stored or bool(writes)
        return writes

    def _writes(self, objects: dict[Any, Any]) -> list[Write]:
        writes = [write for page in objects.values() if page is not ABSENT for write in page.unwritten()]
        self.is_stored = self.is_stored or bool(writes)
        return writes

    def write(self, writes: list[Write]) -> None:
        self._store.write(writes)
        self.is_stored = True

    def map_address(self, key: Any, map_key: Any) -> bytes:
        if type(map_key) is not str:
            check_kind(type(map_key))
        return self._address(key) + hash_bytes(stable_hash(map_key))

    def stored_value(self, key: Any, map_key: Any) -> Any:
        value = self._store.get(self.map_address(key, map_key), (key, map_key))
        return ABSENT if value is None else load(value)

    def entries_of(self, key: Any) -> Iterator[tuple[Any, Any]]:
        """The items of a map, which do not become live. The map may change during the iteration."""
        page = self.live(key)
        if isinstance(page, MapPage):
            if page.is_complete:
                yield from page.live_items()
                return
            self.write(page.unwritten())
        for entries in self.stored_map(key):
            version = self._store.version
            for map_key, value in entries:
                is_current = self._store.version == version and self._live_value(key, map_key) is UNKNOWN
                held = load(value) if is_current else self.peek_value(key, map_key)
                if held is not ABSENT:
                    yield map_key, held

    def peek_value(self, key: Any, map_key: Any) -> Any:
        """The value of an entry of a map, or ABSENT. It does not become live."""
        held = self._live_value(key, map_key)
        return self.stored_value(key, map_key) if held is UNKNOWN else held

    def _live_value(self, key: Any, map_key: Any) -> Any:
        page = self.live(key)
        return page.live_value(map_key) if isinstance(page, MapPage) else page

    def load_encoded(self, entries: bytes) -> None:
        self._forget_live()
        names = [(load(name), name, value) for name, value in unpack(entries)]
        keys = {name[0] for name, _, _ in names}
        self._count += sum(1 for key in keys if self._from_store(key) is ABSENT)
        self.write([(self.map_address(*name), name, encoded, value) for name, encoded, value in names])

    def _stored_objects(self, found: list[Found]) -> Iterator[tuple[Any, Callable[[], Any]]]:
        for key in dict.fromkeys(load(name)[0] for name, _ in found):
            yield key, partial(self.find, key)

    def entries(self) -> Iterator[tuple[Any, Any]]:
        # Each map must be given once, but its entries may come in several lists, mixed with those of other keys with
        # the same hash.
        hashed = -1
        given: set[Any] = set()
        for key, page in super().entries():
            if stable_hash(key) != hashed:
                hashed, given = stable_hash(key), set()
            if key not in given:
                given.add(key)
                yield key, page


class MapPage(MutableMapping[Any, Any]):
    """The map of one key, of which a part may be in memory."""

    def __init__(self, maps: LiveMaps, key: Any, is_complete: bool) -> None:
        self._maps = maps
        self._key = key
        self.is_complete = is_complete
        """True if the whole map is in memory."""
        self._is_stored = not is_complete
        self._live: dict[Any, Any] = {}
        self._present = 0
        """How many live entries are not ABSENT."""
        self._changed: set[Any] = set()
        """Keys of the map whose entries differ from the store."""

    def is_of(self, maps: LiveMaps, key: Any) -> bool:
        return self._maps is maps and is_same_key(self._key, key)

    # --- a dictionary ----------------------------------------------------------------------------------------------

    def _find(self, map_key: Any) -> Any:
        held = self._live.get(map_key, UNKNOWN)
        if held is UNKNOWN:
            if self.is_complete:
                return ABSENT
            held = self._maps.stored_value(self._key, map_key)
            self._maps.took_room()
            self._place(map_key, held)
        return held

    def _place(self, map_key: Any, held: Any) -> None:
        before = self._live.get(map_key, ABSENT)
        self._present += (held is not ABSENT) - (before is not ABSENT)
        self._live[map_key] = held

    def get(self, map_key: Any, default: Any = None) -> Any:
        held = self._find(map_key)
        return default if held is ABSENT else held

    def __getitem__(self, map_key: Any) -> Any:
        held = self._find(map_key)
        if held is ABSENT:
            raise KeyError(map_key)
        return held

    def __contains__(self, map_key: object) -> bool:
        return self._find(map_key) is not ABSENT

    def __setitem__(self, map_key: Any, value: Any) -> None:
        was_there = self._find(map_key) is not ABSENT
        self._set(map_key, value)
        self._maps.note_written(self._key, map_key, was_there)

    def __delitem__(self, map_key: Any) -> None:
        if self._find(map_key) is ABSENT:
            raise KeyError(map_key)
        self._set(map_key, ABSENT)
        self._maps.note_removed(self._key, map_key)

    def fill(self, contents: Mapping[Any, Any]) -> None:
        """Set entries without noting a change for the next snapshot; the value ABSENT removes an entry."""
        for map_key, value in contents.items():
            self._set(map_key, value)

    def _set(self, map_key: Any, value: Any) -> None:
        if map_key not in self._live:
            self._maps.took_room()
        self._place(map_key, value)
        if value is ABSENT and not self._is_stored:
            del self._live[map_key]
            self._changed.discard(map_key)
        else:
            self._changed.add(map_key)

    def __bool__(self) -> bool:
        return self._present > 0 or (not self.is_complete and self._has_stored_entry())

    def _has_stored_entry(self) -> bool:
        """True if the store has an entry that has not been removed since it was written."""
        passed = 0
        is_found = False
        for entries in self._maps.stored_map(self._key, _PROBED_ENTRIES):
            is_found = any(self._live.get(map_key) is not ABSENT for map_key, _ in entries)
            if is_found:
                break
            passed += len(entries)
        if passed > _MANY_REMOVED:
            self._maps.write(self.unwritten())  # So that the next call need not skip the removed entries again.
        return is_found

    def __len__(self) -> int:
        return sum(1 for _ in self.entries())

    def __iter__(self) -> Iterator[Any]:
        return (map_key for map_key, _ in self.entries())

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """All items. If the map changes during the iteration, later items are given as they are then."""
        if not self.is_complete:
            self._maps.write(self.unwritten())
            self._load_small()
        return self._maps.entries_of(self._key) if not self.is_complete else iter(self.live_items())

    def known_keys(self) -> set[Any]:
        """All keys of the map, in memory or not."""
        live = {map_key for map_key, held in self._live.items() if held is not ABSENT}
        if self.is_complete:
            return live
        stored = {map_key for entries in self._maps.stored_map(self._key) for map_key, _ in entries}
        return live | {map_key for map_key in stored if self._live.get(map_key) is not ABSENT}

    def live_items(self) -> list[tuple[Any, Any]]:
        return [(map_key, held) for map_key, held in self._live.items() if held is not ABSENT]

    def _load_small(self) -> None:
        """Load the whole map if it is small."""
        lists = self._maps.stored_map(self._key)
        entries = next(lists, [])
        if next(lists, None) is None:
            for _ in entries:
                self._maps.took_room()  # First, because it may drop live entries of this map.
            for map_key, value in entries:
                if map_key not in self._live:
                    self._place(map_key, load(value))
            self.is_complete = True

    def live_value(self, map_key: Any) -> Any:
        """The value of an entry, ABSENT, or UNKNOWN if it is not in memory."""
        return self._live.get(map_key, ABSENT if self.is_complete else UNKNOWN)

    def live_count(self) -> int:
        return len(self._live)

    # --- the store -------------------------------------------------------------------------------------------------

    def unwritten(self) -> list[Write]:
        """The changes that the store does not have. The caller must write them: they count as written from now on."""
        changed, self._changed = self._changed, set()
        self._is_stored = self._is_stored or bool(changed)
        return [self._write_of(map_key, self._live[map_key]) for map_key in changed]

    def _write_of(self, map_key: Any, held: Any) -> Write:
        name = (self._key, map_key)
        value = None if held is ABSENT else encode_state(held)
        return self._maps.map_address(self._key, map_key), name, encode_state(name), value

    def give_up(self) -> list[Write]:
        """Keep nothing in memory; returns the changes that must be written."""
        writes = self.unwritten()
        self._live.clear()
        self._present = 0
        self.is_complete = False
        return writes

    def drop(self) -> None:
        """Remove all entries, in memory and in the store."""
        if self._is_stored:
            for entries in self._maps.stored_map(self._key):
                self._maps.write([self._write_of(map_key, ABSENT) for map_key, _ in entries])
        self._live.clear()
        self._present = 0
        self._changed.clear()
        self._is_stored, self.is_complete = False, True
