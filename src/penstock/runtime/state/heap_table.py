"""A state table in memory: dictionaries."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from penstock.runtime.state.changes import Changes, Untracked
from penstock.runtime.state.contents import Contents, WholeMap, has_partial_maps
from penstock.runtime.state.table import REMOVED, Extent, StateTable

_BLOCK_ENTRIES = 50_000
"""How many entries of a large table are written at a time: their bytes are in memory as well."""


class HeapStateTable(StateTable):
    """What state is kept in unless a backend on disk is chosen."""

    def __init__(self, name: str, tracks_changes: bool = True) -> None:
        super().__init__(name, tracks_changes)
        self.entries = {}
        self.entries_of = self.entries.get
        self.changed = Changes() if tracks_changes else Untracked()
        self._bind_notes()
        self._since_base = Changes()

    def get(self, namespace: Hashable, key: Any, default: Any = None) -> Any:
        keys = self.entries.get(namespace)
        return default if keys is None else keys.get(key, default)

    def contains(self, namespace: Hashable, key: Any) -> bool:
        keys = self.entries.get(namespace)
        return keys is not None and key in keys

    def put(self, namespace: Hashable, key: Any, value: Any) -> None:
        keys = self.entries.get(namespace)
        if keys is None:
            keys = self.entries[namespace] = {}
        self.changed.written(namespace, key, key in keys)
        keys[key] = value

    def remove(self, namespace: Hashable, key: Any) -> bool:
        keys = self.entries.get(namespace)
        if keys is None or key not in keys:
            return False
        del keys[key]
        if not keys:
            del self.entries[namespace]
        self.changed.removed(namespace, key)
        return True

    def keys(self, namespace: Hashable) -> list[Any]:
        return list(self.entries.get(namespace, ()))

    def clear(self) -> None:
        self.settle()
        self.entries.clear()
        self.forget_changes()

    def __len__(self) -> int:
        self.settle()
        return sum(map(len, self.entries.values()))

    def all_entries(self) -> Iterator[tuple[Hashable, Any, Any]]:
        self.settle()
        for namespace in list(self.entries):
            for key in self.keys(namespace):
                value = self.get(namespace, key, REMOVED)
                if value is not REMOVED:
                    yield namespace, key, value

    # --- snapshots -------------------------------------------------------------------------------------------------

    def blocks(self, extent: Extent) -> Iterator[Contents]:
        self.settle()
        contents = self.entries if extent is Extent.ALL else self._changes(extent)
        if sum(map(len, contents.values())) <= _BLOCK_ENTRIES:
            if contents:
                yield contents
            return
        for namespace, keys in contents.items():
            items = iter(keys.items())
            while part := dict(itertools.islice(items, _BLOCK_ENTRIES)):
                yield {namespace: part}

    def _changes(self, extent: Extent) -> Contents:
        changed: Mapping[Hashable, Iterable[Any]] = self.changed
        if extent is Extent.SINCE_BASE:
            namespaces = dict.fromkeys([*self._since_base, *self.changed])
            changed = {each: self._since_base.get(each, {}) | self.changed.get(each, {}) for each in namespaces}
        return {namespace: self._now(namespace, keys) for namespace, keys in changed.items()}

    def _now(self, namespace: Hashable, keys: Iterable[Any]) -> dict[Any, Any]:
        held = self.entries.get(namespace, {})
        return {key: held.get(key, REMOVED) for key in keys}

    def snapshot_written(self, extent: Extent) -> None:
        if extent is Extent.ALL:
            self._since_base.clear()
        elif self.changed:
            self._since_base.follow(self.changed, self.contains)
        self.changed.clear()

    def forget_changes(self) -> None:
        self.changed.clear()
        self._since_base.clear()

    def load(self, contents: Contents, extent: Extent = Extent.CHANGES) -> None:
        self.has_maps = self.has_maps or has_partial_maps(contents)
        for namespace, saved in contents.items():
            held = self.entries.setdefault(namespace, {})
            if has_partial_maps(contents):
                _add_parts(held, saved)
            else:
                held.update(saved)
            for key in [key for key, value in saved.items() if value is REMOVED]:
                held.pop(key, None)
            if not held:
                del self.entries[namespace]
            if extent is not Extent.ALL and self.tracks_changes:
                self._since_base.written_all(namespace, saved, ())


def _add_parts(held: dict[Any, Any], parts: Mapping[Any, Any]) -> None:
    for key, part in parts.items():
        if part is REMOVED:
            continue
        whole = {} if type(part) is WholeMap else held.get(key, {})
        whole.update(part)
        for map_key in [map_key for map_key, value in part.items() if value is REMOVED]:
            del whole[map_key]
        if whole:
            held[key] = whole
        else:
            held.pop(key, None)
