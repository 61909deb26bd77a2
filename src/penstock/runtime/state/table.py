"""The working state of one descriptor in one subtask: namespace -> key -> value, and what of it has changed."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any, Final


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

Contents = dict[Hashable, dict[Any, Any]]
"""Namespace -> key -> value. In a delta, `REMOVED` in the place of a value says that the entry is gone."""


class Extent(enum.Enum):
    """How much of a table a snapshot holds."""

    ALL = "all"
    """Everything: a base, which needs no snapshot before it."""
    SINCE_BASE = "since-base"
    """What changed since the last base: takes the place of all deltas since then."""
    CHANGES = "changes"
    """What changed since the last snapshot."""


class Untracked:
    """Stands in for the record of changes where nobody will ask for a delta."""

    def __getitem__(self, namespace: Hashable) -> Untracked:
        return self

    def add(self, key: Any) -> None:
        """Not recorded."""

    def update(self, keys: Any) -> None:
        """Not recorded."""

    def clear(self) -> None:
        """Nothing to forget."""

    def __bool__(self) -> bool:
        return False


class StateTable:
    """Entries by namespace, then key.

    Namespace first, because few namespaces (windows, or none) hold many keys: a plain keyed state is one dictionary,
    and a window's contents are one dictionary. Invariant: no namespace maps to an empty dictionary.
    """

    def __init__(self, name: str, tracks_changes: bool = True) -> None:
        self.name = name
        self.entries: Any = {}
        """A `Contents`, or what behaves like one; operators may work on it directly if they keep `changed` right."""
        self.changed: Any = defaultdict(set) if tracks_changes else Untracked()
        """Namespace -> keys written or removed since the last snapshot."""
        self._since_base: defaultdict[Hashable, set[Any]] = defaultdict(set)

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
        keys[key] = value
        self.changed[namespace].add(key)

    def remove(self, namespace: Hashable, key: Any) -> None:
        keys = self.entries.get(namespace)
        if keys is None or key not in keys:
            return
        del keys[key]
        if not keys:
            del self.entries[namespace]
        self.changed[namespace].add(key)

    def keys(self, namespace: Hashable) -> list[Any]:
        return list(self.entries.get(namespace, ()))

    def clear(self) -> None:
        """Drop everything, and that it ever changed."""
        self.entries.clear()
        self.forget_changes()

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))

    def all_entries(self) -> Iterator[tuple[Hashable, Any, Any]]:
        """(namespace, key, value) of every entry."""
        for namespace, keys in self.entries.items():
            for key, value in keys.items():
                yield namespace, key, value

    # --- snapshots -------------------------------------------------------------------------------------------------

    def blocks(self, extent: Extent) -> Iterator[Contents]:
        """The entries of a snapshot in one part or several; valid until the table changes."""
        contents = self.entries if extent is Extent.ALL else self._changes(extent)
        if contents:
            yield contents

    def _changes(self, extent: Extent) -> Contents:
        changed: dict[Hashable, set[Any]] = self.changed
        if extent is Extent.SINCE_BASE:
            changed = {namespace: set(keys) for namespace, keys in self._since_base.items()}
            for namespace, keys in self.changed.items():
                changed.setdefault(namespace, set()).update(keys)
        return {namespace: self._now(namespace, keys) for namespace, keys in changed.items() if keys}

    def _now(self, namespace: Hashable, keys: set[Any]) -> dict[Any, Any]:
        held = self.entries.get(namespace, {})
        return {key: held.get(key, REMOVED) for key in keys}

    def snapshot_written(self, extent: Extent) -> None:
        """A snapshot of `extent` is safe: what it holds is no change any more."""
        if extent is Extent.ALL:
            self._since_base.clear()
        elif self.changed:
            for namespace, keys in self.changed.items():
                self._since_base[namespace] |= keys
        self.changed.clear()

    def forget_changes(self) -> None:
        self.changed.clear()
        self._since_base.clear()

    def load(self, contents: Contents) -> None:
        """Apply a block of a snapshot on top of what is there, without counting it as a change."""
        for namespace, saved in contents.items():
            held = self.entries.setdefault(namespace, {})
            held.update(saved)
            for key in [key for key, value in saved.items() if value is REMOVED]:
                del held[key]
            if not held:
                del self.entries[namespace]
