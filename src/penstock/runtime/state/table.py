"""The working state of one descriptor in one subtask: namespace -> key -> value, with the changes of this epoch."""

from __future__ import annotations

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

Entry = tuple[Hashable, Any, Any]
"""Namespace, key, value."""


class StateTable:
    """Entries by namespace, then key.

    Namespace first, because few namespaces (windows, or none) hold many keys: a plain keyed state is one dictionary,
    and a window's contents are one dictionary. Invariant: no namespace maps to an empty dictionary.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.entries: dict[Hashable, dict[Any, Any]] = {}
        self.changed: defaultdict[Hashable, set[Any]] = defaultdict(set)

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

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))

    def all_entries(self) -> Iterator[Entry]:
        for namespace, keys in self.entries.items():
            for key, value in keys.items():
                yield namespace, key, value

    def changed_entries(self) -> Iterator[Entry]:
        """The entries written since `forget_changes`; a removed one has the value `REMOVED`."""
        for namespace, changed in self.changed.items():
            keys = self.entries.get(namespace, {})
            for key in changed:
                yield namespace, key, keys.get(key, REMOVED)

    def forget_changes(self) -> None:
        self.changed.clear()

    def load(self, entry: Entry) -> None:
        """Put a saved entry back without counting it as a change."""
        namespace, key, value = entry
        if value is not REMOVED:
            self.entries.setdefault(namespace, {})[key] = value
        elif namespace in self.entries:
            self.entries[namespace].pop(key, None)
            if not self.entries[namespace]:
                del self.entries[namespace]
