"""A state table for state larger than memory: a bounded number of objects in memory, the others in local files."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from penstock.common.exceptions import StateAccessError
from penstock.runtime.state.cached_keys import CachedKeys
from penstock.runtime.state.change_journal import ChangedNames
from penstock.runtime.state.changes import Untracked
from penstock.runtime.state.contents import (
    Contents,
    EncodedEntries,
    EncodedMapEntries,
    PartialMaps,
    WholeMap,
    has_partial_maps,
)
from penstock.runtime.state.entry_store import EntryStore
from penstock.runtime.state.live_entries import ABSENT, DirectEntries, LiveEntries, LiveKeys
from penstock.runtime.state.live_maps import LiveMaps, MapPage
from penstock.runtime.state.slot_memory import MemoryShare
from penstock.runtime.state.table import REMOVED, VOID_NAMESPACE, Extent, StateTable

_BLOCK_BYTES = 1 << 20
_BLOCK_ENTRIES = 10_000
_NAMES_PER_OBJECT = 4
"""How many names of changed entries may be in memory for each object there. Names are smaller than objects."""


class DiskStateTable(StateTable):
    """About `capacity` entries are in memory, the most recently used ones.

    Plain keyed state (in `VOID_NAMESPACE`, and not maps) is in `CachedKeys`, which looks up many keys at a time and
    tracks its own changes. Maps and the state of windows are in `LiveEntries`, on top of an ordered store that holds
    the entries of each map or window next to each other.

    An object that this table returns may be changed in place. But it must then be put back, or noted in `changed`,
    before many other entries are used: otherwise it may be dropped from memory, and the change is lost.
    """

    def __init__(
        self,
        name: str,
        store: EntryStore,
        capacity: int,
        tracks_changes: bool = True,
        memory: MemoryShare | None = None,
    ) -> None:
        super().__init__(name, tracks_changes)
        self._store = store
        self._capacity = capacity
        self._max_names = _NAMES_PER_OBJECT * capacity
        self._live = LiveEntries(store, capacity, LiveKeys, self._on_full)
        self._cached: CachedKeys | None = CachedKeys(store.make_folder, capacity, tracks_changes, memory)
        """Plain keyed state; None if the values are maps."""
        self.notes_removals = True
        self.entries = DirectEntries(lambda: self._live, lambda: self._cached)
        self.entries_of = self.entries.get
        self._changed_since_base = ChangedNames(store)
        self.changed = ChangedNames(store) if tracks_changes else Untracked()
        self._bind_notes()

    # --- entries ---------------------------------------------------------------------------------------------------

    def _keys_of(self, namespace: Hashable) -> CachedKeys | LiveKeys | None:
        if namespace is VOID_NAMESPACE and self._cached is not None:
            return self._cached
        return self._live.namespaces.get(namespace)

    def get(self, namespace: Hashable, key: Any, default: Any = None) -> Any:
        keys = self._keys_of(namespace)
        return default if keys is None else keys.get(key, default)

    def contains(self, namespace: Hashable, key: Any) -> bool:
        keys = self._keys_of(namespace)
        return keys is not None and key in keys

    def put(self, namespace: Hashable, key: Any, value: Any) -> None:
        if namespace is VOID_NAMESPACE and self._cached is not None:
            self._cached.store(key, value)
            return
        was_there = self._live.keys_of(namespace).store(key, value)
        if not self.has_maps:
            self.changed.written(namespace, key, was_there)

    def remove(self, namespace: Hashable, key: Any) -> bool:
        if namespace is VOID_NAMESPACE and self._cached is not None:
            return self._cached.remove(key)
        keys = self._live.namespaces.get(namespace)
        if keys is None or not keys.remove(key):
            return False
        if not keys:
            self._live.drop(namespace)
        if not self.has_maps:
            self.changed.removed(namespace, key)
        return True

    def keys(self, namespace: Hashable) -> list[Any]:
        keys = self._keys_of(namespace)
        return [] if keys is None else list(keys)

    def clear(self) -> None:
        for namespace in list(self._live.namespaces):
            self._live.drop(namespace)
        if self._cached is not None:
            self._cached.drop()
        self.forget_changes()

    def __len__(self) -> int:
        return sum(map(len, self._live.namespaces.values())) + len(self._cached or ())

    def all_entries(self) -> Iterator[tuple[Hashable, Any, Any]]:
        if self._cached is not None:
            for key, value in self._cached.entries():
                yield VOID_NAMESPACE, key, value
        for namespace, keys in list(self._live.namespaces.items()):
            for key, value in keys.entries():
                yield namespace, key, value

    # --- entries in place ------------------------------------------------------------------------------------------

    def open_namespace(self, namespace: Hashable, keys: Iterable[Any] | None = None) -> Any:
        if namespace is not VOID_NAMESPACE or self._cached is None:
            return super().open_namespace(namespace)
        return self._cached.open_all() if keys is None else self._cached.open_keys(keys)

    def open_changes(self, namespace: Hashable) -> dict[Any, bool]:
        if namespace is not VOID_NAMESPACE or self._cached is None:
            return super().open_changes(namespace)
        return self._cached.changes

    def wants_notes(self, namespace: Hashable) -> bool:
        if namespace is not VOID_NAMESPACE or self._cached is None:
            return super().wants_notes(namespace)
        return self._cached.notes_writes

    def close_namespace(self, namespace: Hashable) -> None:
        if namespace is not VOID_NAMESPACE or self._cached is None:
            super().close_namespace(namespace)
        else:
            self._cached.close()

    def _bind_notes(self) -> None:
        """As in other tables, but changes of plain keyed state are noted in `CachedKeys`."""
        super()._bind_notes()
        if self._cached is not None:
            in_windows = self.changed
            plain = self._cached

            def written(namespace: Hashable, key: Any, was_there: bool) -> None:
                if namespace is VOID_NAMESPACE:
                    plain.note_written(key, was_there)
                else:
                    in_windows.written(namespace, key, was_there)

            def all_written(namespace: Hashable, keys: Iterable[Any], new: Iterable[Any]) -> None:
                if namespace is VOID_NAMESPACE:
                    plain.note_all_written(keys, new)
                else:
                    in_windows.written_all(namespace, keys, new)

            def removed(namespace: Hashable, key: Any) -> None:
                if namespace is VOID_NAMESPACE:
                    plain.note_removed(key)
                else:
                    in_windows.removed(namespace, key)

            def all_removed(namespace: Hashable, keys: Iterable[Any]) -> None:
                for key in keys:
                    removed(namespace, key)

            self.note_written, self.note_all_written = written, all_written
            self.note_removed, self.note_all_removed = removed, all_removed

    def is_direct(self, namespace: Hashable) -> bool:
        return namespace is VOID_NAMESPACE and self._cached is not None

    def direct_entries(self) -> Any:
        return {} if self._cached is None else {VOID_NAMESPACE: self._cached}

    def direct_changes(self) -> Any:
        return {} if self._cached is None else {VOID_NAMESPACE: self._cached.changes}

    def has_changes(self) -> bool:
        if not self.tracks_changes:
            return False
        return bool(self.changed) or (self._cached is not None and self._cached.has_changes())

    # --- maps ------------------------------------------------------------------------------------------------------

    def hold_maps(self) -> None:
        if self.has_maps:
            return
        before, plain, self.has_maps = self._live, self._cached, True
        assert plain is not None
        self._live = LiveEntries(self._store, self._capacity, self._new_maps, self._on_full)
        for namespace, keys in before.namespaces.items():
            for key, value in keys.entries():
                self._maps_of(namespace).install(key, self._checked_map(value))
            keys.drop()
        if self.tracks_changes:
            self.changed = self._renamed(self.changed)
            self._changed_since_base = self._renamed(self._changed_since_base)
        self._take_over(plain)
        self._cached = None
        self._bind_notes()

    def _take_over(self, plain: CachedKeys) -> None:
        """Move plain keyed state, whose values turn out to be maps, to `LiveMaps`."""
        for key, value in plain.entries():
            self._maps_of(VOID_NAMESPACE).install(key, self._checked_map(value))
        if self.tracks_changes:
            extents = ((self.changed, Extent.CHANGES), (self._changed_since_base, Extent.SINCE_BASE))
            for changed, extent in extents:
                for names in plain.blocks(extent):
                    changed.written_all(VOID_NAMESPACE, [(key,) for key in names], ())
                    changed.spill(self._max_names)
        plain.drop()

    def _checked_map(self, value: Any) -> Mapping[Any, Any]:
        if not isinstance(value, Mapping):
            raise StateAccessError(
                f"state '{self.name}' was restored with values of type {type(value).__name__} and cannot be map state; "
                f"give the map state another name"
            )
        return value

    def _renamed(self, changed: ChangedNames) -> ChangedNames:
        """Noted changes of keys as changes of whole maps."""
        renamed = ChangedNames(self._store)
        for namespace, keys in changed.parts():
            for key, is_saved in keys.items():
                renamed.written(namespace, (key,), is_saved)
            renamed.spill(self._max_names)
        changed.clear()
        return renamed

    def _new_maps(self, entries: LiveEntries, namespace: Hashable) -> LiveKeys:
        return LiveMaps(entries, namespace, lambda: self.changed)

    def _maps_of(self, namespace: Hashable) -> LiveMaps:
        maps = self._live.keys_of(namespace)
        assert isinstance(maps, LiveMaps)
        return maps

    def items_of(self, held: Any) -> Iterable[tuple[Any, Any]]:
        return held.entries() if isinstance(held, MapPage) else super().items_of(held)

    # --- snapshots -------------------------------------------------------------------------------------------------

    def blocks(self, extent: Extent) -> Iterator[Contents]:
        if extent is Extent.ALL:
            yield from self._stored_blocks() if self._live.is_stored() else self._live_blocks()
            yield from self._plain_blocks(extent)
            return
        yield from self._plain_blocks(extent)
        since_base = self._changed_since_base.parts() if extent is Extent.SINCE_BASE else iter(())
        for namespace, names in itertools.chain(since_base, self.changed.parts()):
            yield from self._map_blocks(namespace, names) if self.has_maps else self._key_blocks(namespace, names)

    def _plain_blocks(self, extent: Extent) -> Iterator[Contents]:
        if self._cached is None:
            return
        if extent is Extent.ALL and self._cached.is_stored():
            yield from self._cached.stored_blocks()
            return
        for part in self._cached.blocks(extent):
            yield {VOID_NAMESPACE: part}

    def _live_blocks(self) -> Iterator[Contents]:
        """All entries, if all are in memory."""
        contents = {
            namespace: {key: self._plain(value) for key, value in keys.entries()}
            for namespace, keys in self._live.namespaces.items()
        }
        if contents:
            yield contents

    def _plain(self, value: Any) -> Any:
        return dict(value.entries()) if isinstance(value, MapPage) else value

    def _stored_blocks(self) -> Iterator[Contents]:
        """All entries, encoded as in the store."""
        self._live.write_back()
        kind = EncodedMapEntries if self.has_maps else EncodedEntries
        waiting: dict[Hashable, bytes] = {}
        size = 0
        for namespace, keys in self._live.namespaces.items():
            for packed in keys.packed():
                waiting[namespace] = waiting.get(namespace, b"") + packed
                size += len(packed)
                if size >= _BLOCK_BYTES:
                    yield kind(waiting)
                    waiting, size = {}, 0
        if waiting:
            yield kind(waiting)

    # A snapshot must only peek at entries. If it loaded them, others would be written and dropped in the middle of it.

    def _key_blocks(self, namespace: Hashable, names: Iterable[Any]) -> Iterator[Contents]:
        keys = self._live.namespaces.get(namespace)
        found = [(key, ABSENT if keys is None else keys.peek(key)) for key in names]
        yield {namespace: {key: REMOVED if value is ABSENT else value for key, value in found}}

    def _map_blocks(self, namespace: Hashable, names: Iterable[Any]) -> Iterator[Contents]:
        maps = self._live.namespaces.get(namespace)
        parts: dict[Any, Any] = {}
        for key, *map_keys in names:
            for map_key in map_keys:
                value = maps.peek_value(key, map_key) if isinstance(maps, LiveMaps) else ABSENT
                parts.setdefault(key, {})[map_key] = REMOVED if value is ABSENT else value
        if parts:
            yield PartialMaps({namespace: parts})
        for name in names:
            if len(name) == 1:
                yield from self._whole_map(namespace, name[0], maps)

    def _whole_map(self, namespace: Hashable, key: Any, maps: LiveKeys | None) -> Iterator[Contents]:
        items = maps.entries_of(key) if isinstance(maps, LiveMaps) else iter(())
        first = WholeMap(itertools.islice(items, _BLOCK_ENTRIES))
        yield PartialMaps({namespace: {key: first if first else REMOVED}})
        while part := dict(itertools.islice(items, _BLOCK_ENTRIES)):
            yield PartialMaps({namespace: {key: part}})

    def snapshot_written(self, extent: Extent) -> None:
        if self._cached is not None and self.tracks_changes:
            self._cached.snapshot_written(extent)
        if extent is Extent.ALL:
            self._changed_since_base.clear()
            self.changed.clear()
        elif self.changed:
            self._changed_since_base.take_over(self.changed, self._is_there, self._max_names)

    def _is_there(self, namespace: Hashable, name: Any) -> bool:
        """True if the entry of a changed name exists. It does not become live."""
        keys = self._live.namespaces.get(namespace)
        if keys is None:
            return False
        if not isinstance(keys, LiveMaps):
            return keys.peek(name) is not ABSENT
        return keys.peek(name[0]) is not ABSENT if len(name) == 1 else keys.peek_value(*name) is not ABSENT

    def forget_changes(self) -> None:
        if self._cached is not None:
            self._cached.snapshot_written(Extent.ALL)
        self.changed.clear()
        self._changed_since_base.clear()

    def load(self, contents: Contents, extent: Extent = Extent.CHANGES) -> None:
        if has_partial_maps(contents):
            self.hold_maps()
        if isinstance(contents, EncodedEntries) and isinstance(contents, EncodedMapEntries) == self.has_maps:
            for namespace, entries in contents.entries.items():
                if namespace is VOID_NAMESPACE and self._cached is not None:
                    self._cached.load(entries, extent)
                else:
                    self._live.keys_of(namespace).load_encoded(entries)
        else:
            for namespace, saved in contents.items():
                if namespace is VOID_NAMESPACE and self._cached is not None:
                    self._cached.load(saved, extent)
                else:
                    self._load(namespace, saved, has_partial_maps(contents))
        if extent is not Extent.ALL and self.tracks_changes:
            for namespace, saved in contents.items():
                if namespace is VOID_NAMESPACE and self._cached is not None:
                    continue  # `CachedKeys` tracks its own changes.
                names = self._names_of(saved, has_partial_maps(contents))
                self._changed_since_base.written_all(namespace, names, ())
            self._changed_since_base.spill(self._max_names)

    def _load(self, namespace: Hashable, saved: Mapping[Any, Any], are_parts: bool) -> None:
        keys = self._live.keys_of(namespace)
        for key, value in saved.items():
            if value is REMOVED:
                keys.discard(key)
            elif not isinstance(keys, LiveMaps):
                keys.store(key, value)
            elif are_parts and type(value) is not WholeMap:
                keys.merge(key, {name: ABSENT if each is REMOVED else each for name, each in value.items()})
            else:
                keys.install(key, self._checked_map(value))
        if not keys:
            self._live.drop(namespace)

    def _names_of(self, saved: Mapping[Any, Any], are_parts: bool) -> Iterator[Any]:
        """The names under which loaded entries are noted as changed."""
        for key, value in saved.items():
            if not self.has_maps:
                yield key
            elif not are_parts or value is REMOVED or type(value) is WholeMap:
                yield (key,)
            else:
                yield from ((key, map_key) for map_key in value)

    # --- room ------------------------------------------------------------------------------------------------------

    def _on_full(self) -> None:
        if self.tracks_changes:
            self.changed.spill(self._max_names)

    def dispose(self) -> None:
        if self._cached is not None:
            self._cached.dispose()
        self._store.close()
