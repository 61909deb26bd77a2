"""A state table in memory, made of dictionaries."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from penstock.runtime.state.changes import Changes, Untracked
from penstock.runtime.state.contents import Contents, WholeMap, has_partial_maps, slices_of
from penstock.runtime.state.table import REMOVED, VOID_NAMESPACE, Extent, StateTable

_BLOCK_ENTRIES = 50_000
"""How many entries of a large table one block holds. The bytes of a block are in memory, too."""
_WHOLE_FROM = {False: (2, 4), True: (4, 16)}
"""Whether the values are numbers -> (N at first, largest N). All entries count as changed once more than one in N has.
N doubles with each snapshot in a row for which this was so. It is larger for numbers, which are so cheap to write."""
_WHOLE_SNAPSHOTS = 16
"""After so many snapshots in a row that held all entries, N is what it was at first."""


class HeapStateTable(StateTable):
    """Holds state unless a backend on disk is configured."""

    def __init__(self, name: str, tracks_changes: bool = True) -> None:
        super().__init__(name, tracks_changes)
        self.entries = {}
        self.entries_of = self.entries.get
        self.changed = Changes() if tracks_changes else Untracked()
        self._bind_notes()
        self._since_base = Changes()
        self._whole_snapshots = 0
        """For how many snapshots in a row all entries have counted as changed."""
        self._check_from = 0
        """How many names must be noted before the next check whether all these entries exist, which takes time."""
        self._holds_numbers = False
        """True if the values seem to be numbers: at the last snapshot, the first one was a number."""

    def is_direct(self, namespace: Hashable) -> bool:
        return True

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
        if not keys and not (self._is_open and namespace is VOID_NAMESPACE):
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

    # --- what has changed ------------------------------------------------------------------------------------------
    # Noting a change costs as much as writing a small dictionary to a snapshot, and far more than writing a number. So
    # once most entries of a namespace have changed, writes are no longer noted, and the snapshot holds all its entries.
    # If this was so for the last snapshot, a smaller share of changes is enough to expect it again.

    def wants_notes(self, namespace: Hashable) -> bool:
        if not self.tracks_changes:
            return False
        changed = self.changed
        if namespace not in changed.whole:
            if not self._have_most_changed(namespace, changed.get(namespace, {})):
                return True
            changed.mark_whole(namespace)
        # After a removal writes are noted again: otherwise each entry that comes and goes would leave its name behind.
        return bool(changed.get(namespace))

    def _have_most_changed(self, namespace: Hashable, names: dict[Any, bool]) -> bool:
        held = self.entries.get(namespace, {})
        at_first, at_most = _WHOLE_FROM[self._holds_numbers]
        one_in = min(at_first << self._whole_snapshots, at_most)
        if len(names) < self._check_from or len(names) * one_in <= len(held):
            return False
        self._check_from = 2 * len(names)
        return all(name in held for name in names)

    def is_all_changed(self) -> bool:
        return self.tracks_changes and self.changed.whole.issuperset(self.entries)

    # --- snapshots -------------------------------------------------------------------------------------------------

    def blocks(self, extent: Extent) -> Iterator[Contents]:
        self.settle()
        contents = self.entries if extent is Extent.ALL else self._changes(extent)
        if sum(map(len, contents.values())) <= _BLOCK_ENTRIES:
            if contents:
                yield contents
            return
        for namespace, keys in contents.items():
            for part in slices_of(keys, _BLOCK_ENTRIES):
                yield {namespace: part}

    def _changes(self, extent: Extent) -> Contents:
        since = [self.changed, self._since_base] if extent is Extent.SINCE_BASE else [self.changed]
        whole = set[Hashable]().union(*(each.whole for each in since))
        contents: dict[Hashable, Mapping[Any, Any]] = {}
        for namespace in dict.fromkeys(itertools.chain(*since, whole)):
            names: dict[Any, bool] = {}
            for each in reversed(since):
                names = names | each[namespace] if namespace in each else names
            held = self.entries.get(namespace, {})
            if namespace in whole:
                gone = dict.fromkeys([name for name in names if name not in held], REMOVED)
                contents[namespace] = held | gone if gone else held
            else:
                value_of = held.get
                contents[namespace] = {name: value_of(name, REMOVED) for name in names}
        return contents

    def snapshot_written(self, extent: Extent) -> None:
        if self.tracks_changes:
            self._whole_snapshots = (self._whole_snapshots + 1) % _WHOLE_SNAPSHOTS if self.changed.whole else 0
            self._check_from, self._holds_numbers = 0, self._first_value_is_number()
        if extent is Extent.ALL:
            self._since_base.clear()
        elif self.changed:
            self._since_base.follow(self.changed, self.entries)
        self.changed.clear()

    def _first_value_is_number(self) -> bool:
        some = next((value for held in self.entries.values() for value in held.values()), None)
        return type(some) in (int, float, bool)

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
