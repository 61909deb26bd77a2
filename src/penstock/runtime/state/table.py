"""The working state of one descriptor in one subtask: namespace -> key -> value, and what of it has changed."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

from penstock.runtime.state.changes import Changes, Untracked
from penstock.runtime.state.contents import Contents, WholeMap, has_partial_maps


class _Void:
    """The namespace of state that belongs to a key alone; one instance in every process."""

    def __repr__(self) -> str:
        return "VOID"

    def __reduce__(self) -> str:
        return "VOID_NAMESPACE"


class _Removed:
    """In a delta: the entry is gone."""

    def __repr__(self) -> str:
        return "REMOVED"

    def __reduce__(self) -> str:
        return "REMOVED"


VOID_NAMESPACE: Final = _Void()
REMOVED: Final = _Removed()


class Extent(enum.Enum):
    """How much of a table a snapshot holds."""

    ALL = "all"
    """Everything: a base, which needs no snapshot before it."""
    SINCE_BASE = "since-base"
    """What changed since the last base: takes the place of all deltas since then."""
    CHANGES = "changes"
    """What changed since the last snapshot."""


_BLOCK_ENTRIES = 50_000
"""How many entries of a large table are written at a time: their bytes are in memory as well."""


class StateTable:
    """Entries by namespace, then key.

    Namespace first, because few namespaces (windows, or none) hold many keys: a plain keyed state is one dictionary,
    and a window's contents are one dictionary. Invariant: no namespace maps to an empty dictionary.
    """

    has_times: bool | None = None
    """True if values are kept with the times at which they were touched; None if it is not known: see `ttl`."""

    def __init__(self, name: str, tracks_changes: bool = True) -> None:
        self.name = name
        self.entries: Any = {}
        """A `Contents`, or what behaves like one; operators may work on it directly if they keep `changed` right."""
        self.changed: Any = Changes() if tracks_changes else Untracked()
        """`Changes` since the last snapshot."""
        self.has_maps = False
        """True if the values are maps, for sure."""
        self.tracks_changes = tracks_changes
        self.settle: Callable[[], None] = _nothing_to_settle
        """Puts entries into the table that somebody keeps apart from it; called before the table is read as a whole."""
        self._since_base = Changes()
        self._round: Iterator[tuple[Hashable, Any, Any]] = iter(())
        self._map_round: Iterator[tuple[Hashable, Any, Any, Any]] = iter(())

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

    def remove(self, namespace: Hashable, key: Any) -> None:
        keys = self.entries.get(namespace)
        if keys is None or key not in keys:
            return
        del keys[key]
        if not keys:
            del self.entries[namespace]
        self.changed.removed(namespace, key)

    def keys(self, namespace: Hashable) -> list[Any]:
        return list(self.entries.get(namespace, ()))

    def open_namespace(self, namespace: Hashable) -> tuple[dict[Any, Any], dict[Any, bool]]:
        """The entries of a namespace and its changes (see `Changes`), to work on directly.

        `close_namespace` must follow before anybody else uses the table.
        """
        return self.entries.setdefault(namespace, {}), self.changed[namespace]

    def close_namespace(self, namespace: Hashable) -> None:
        if not self.entries[namespace]:
            del self.entries[namespace]
        if self.tracks_changes and not self.changed[namespace]:
            del self.changed[namespace]

    def clear(self) -> None:
        """Drop everything, and that it ever changed."""
        self.settle()
        self.entries.clear()
        self.forget_changes()

    def __len__(self) -> int:
        self.settle()
        return sum(map(len, self.entries.values()))

    def all_entries(self) -> Iterator[tuple[Hashable, Any, Any]]:
        """(namespace, key, value) of every entry. The table may change meanwhile."""
        self.settle()
        for namespace in list(self.entries):
            for key in self.keys(namespace):
                value = self.get(namespace, key, REMOVED)
                if value is not REMOVED:
                    yield namespace, key, value

    def some_entries(self, number: int) -> list[tuple[Hashable, Any, Any]]:
        """The next few entries, from where the last call left off; in the end round by round all of them."""
        found = list(itertools.islice(self._round, number))
        if len(found) < number:
            self._round = self.all_entries()
        return found

    def some_map_entries(self, number: int) -> list[tuple[Hashable, Any, Any, Any]]:
        """The same for the entries of maps: (namespace, key, key in the map, value)."""
        found = list(itertools.islice(self._map_round, number))
        if len(found) < number:
            self._map_round = self._all_map_entries()
        return found

    def _all_map_entries(self) -> Iterator[tuple[Hashable, Any, Any, Any]]:
        for namespace, key, held in self.all_entries():
            for map_key, value in self.items_of(held):
                yield namespace, key, map_key, value

    # --- maps ------------------------------------------------------------------------------------------------------

    def hold_maps(self) -> None:
        """From now on the values are maps, and change entry by entry."""
        self.has_maps = True

    def items_of(self, held: Any) -> Iterable[tuple[Any, Any]]:
        """The items of a map that this table holds; the map may change meanwhile."""
        return list(held.items())

    # --- snapshots -------------------------------------------------------------------------------------------------

    def blocks(self, extent: Extent) -> Iterator[Contents]:
        """The entries of a snapshot in one part or several; valid until the table changes."""
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
        """A snapshot of `extent` is safe: what it holds is no change any more."""
        if extent is Extent.ALL:
            self._since_base.clear()
        elif self.changed:
            self._since_base.follow(self.changed, self.contains)
        self.changed.clear()

    def forget_changes(self) -> None:
        self.changed.clear()
        self._since_base.clear()

    def load(self, contents: Contents, extent: Extent = Extent.CHANGES) -> None:
        """Apply a part of a snapshot on top of what is there; it is no change since the last snapshot.

        Unless it is part of a base (`extent` ALL), it is a change since the base.
        """
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

    def dispose(self) -> None:
        """The table is not needed any more, nor what it keeps outside of memory."""


def _nothing_to_settle() -> None:
    """The table is complete."""


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
