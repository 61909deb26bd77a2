"""Which entries of a table on disk have changed: in memory as long as they are few, in the store beyond that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any

from penstock.runtime.key_hashing import stable_hash
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.contents import load
from penstock.runtime.state.entry_store import EntryStore
from penstock.runtime.state.live_entries import hash_bytes

_PART = 10_000


class ChangedNames(defaultdict[Hashable, set[Any]]):
    """Namespace -> names of changed entries: the newest of them. `parts` gives all."""

    def __init__(self, store: EntryStore) -> None:
        super().__init__(set)
        self._store = store
        self._prefixes: dict[Hashable, bytes] = {}
        """Namespaces of which names are in the store."""

    def __bool__(self) -> bool:
        return len(self) > 0 or bool(self._prefixes)

    def spill(self, at_most: int) -> None:
        """Keep no more than `at_most` names in memory."""
        if sum(map(len, self.values())) > at_most:
            self._write_all()

    def _write_all(self) -> None:
        for namespace, names in self.items():
            if namespace not in self._prefixes:
                self._prefixes[namespace] = self._store.new_prefix()
            prefix = self._prefixes[namespace]
            self._store.write([(prefix + _hash(name), name, encode_state(name), b"") for name in names])
            names.clear()  # The set itself stays: an operator may be about to add to it.

    def parts(self) -> Iterator[tuple[Hashable, list[Any]]]:
        """All names, some at a time."""
        if self._prefixes:
            self._write_all()
        for namespace, names in self.items():
            listed = list(names)
            for start in range(0, len(listed), _PART):
                yield namespace, listed[start : start + _PART]
        for namespace, prefix in self._prefixes.items():
            for found in self._store.scan(prefix, _PART):
                yield namespace, [load(name) for name, _ in found]

    def take_over(self, others: ChangedNames, at_most: int) -> None:
        """Add all names of `others`, and leave it empty; `at_most` stay in memory."""
        for namespace, names in others.parts():
            self[namespace].update(names)
            self.spill(at_most)
        others.clear()

    def clear(self) -> None:
        super().clear()
        for prefix in self._prefixes.values():
            self._store.delete(prefix)
        self._prefixes.clear()


def _hash(name: Any) -> bytes:
    return hash_bytes(stable_hash(name))
