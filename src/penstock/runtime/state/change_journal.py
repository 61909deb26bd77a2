"""Which entries of a table on disk have changed: their names are in memory while they are few, else in the store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from penstock.runtime.key_hashing import stable_hash
from penstock.runtime.state.changes import Changes
from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.contents import load
from penstock.runtime.state.entry_store import EntryStore
from penstock.runtime.state.live_entries import hash_bytes

_PART_NAMES = 10_000
_IN_SNAPSHOT, _NEW = b"1", b"0"


class ChangedNames(Changes):
    """As a dictionary this holds only the changes that are in memory, the newest. `parts` gives all of them."""

    def __init__(self, store: EntryStore) -> None:
        super().__init__()
        self._store = store
        self._prefixes: dict[Hashable, bytes] = {}
        """The prefix of each namespace that has names in the store."""
        self._stored: dict[Hashable, int] = {}
        """How many names of each of these namespaces are in the store."""

    def __bool__(self) -> bool:
        return len(self) > 0 or bool(self._prefixes)

    # --- names in memory and in the store --------------------------------------------------------------------------

    def written(self, namespace: Hashable, name: Any, was_there: bool) -> None:
        names = self[namespace]
        if name not in names:
            known = self._in_store(namespace, name)
            names[name] = was_there if known is None else known

    def written_all(self, namespace: Hashable, names: Iterable[Any], new: Iterable[Any]) -> None:
        if namespace not in self._prefixes:
            super().written_all(namespace, names, new)
            return
        for are_there, some in ((False, new), (True, names)):
            for name in some:
                self.written(namespace, name, are_there)

    def removed(self, namespace: Hashable, name: Any) -> None:
        known = self._in_store(namespace, name)
        if known is not None:
            self[namespace].setdefault(name, known)
            if not known:
                self._delete(namespace, name)
        super().removed(namespace, name)

    def is_in_snapshot(self, namespace: Hashable, name: Any) -> bool | None:
        known = super().is_in_snapshot(namespace, name)
        return self._in_store(namespace, name) if known is None else known

    def _in_store(self, namespace: Hashable, name: Any) -> bool | None:
        prefix = self._prefixes.get(namespace)
        found = None if prefix is None else self._store.get(prefix + _hash(name), name)
        return None if found is None else found == _IN_SNAPSHOT

    def _delete(self, namespace: Hashable, name: Any) -> None:
        prefix = self._prefixes[namespace]
        self._stored[namespace] += self._store.write([(prefix + _hash(name), name, encode_state(name), None)])
        if not self._stored[namespace]:
            del self._stored[namespace], self._prefixes[namespace]

    # --- all names -------------------------------------------------------------------------------------------------

    def spill(self, at_most: int) -> None:
        """Move all names to the store if more than `at_most` are in memory."""
        if sum(map(len, self.values())) > at_most:
            self._write_all()

    def _write_all(self) -> None:
        for namespace, names in self.items():
            if namespace not in self._prefixes:
                self._prefixes[namespace] = self._store.new_prefix()
                self._stored[namespace] = 0
            prefix = self._prefixes[namespace]
            self._stored[namespace] += self._store.write(
                [
                    (prefix + _hash(name), name, encode_state(name), _IN_SNAPSHOT if is_saved else _NEW)
                    for name, is_saved in names.items()
                ]
            )
        super().clear()

    def parts(self) -> Iterator[tuple[Hashable, dict[Any, bool]]]:
        """All names, in parts of limited size."""
        if self._prefixes:
            self._write_all()
        for namespace, names in list(self.items()):
            listed = list(names.items())
            for start in range(0, len(listed), _PART_NAMES):
                yield namespace, dict(listed[start : start + _PART_NAMES])
        for namespace, prefix in list(self._prefixes.items()):
            for found in self._store.scan(prefix, _PART_NAMES):
                yield namespace, {load(name): value == _IN_SNAPSHOT for name, value in found}

    def take_over(self, others: ChangedNames, is_there: Callable[[Hashable, Any], bool], at_most: int) -> None:
        """Move the changes since a later snapshot from `others` to here. About `at_most` names stay in memory."""
        for namespace, names in others.parts():
            for name, is_saved in names.items():
                self.written(namespace, name, is_saved)
                if not self.is_in_snapshot(namespace, name) and not is_there(namespace, name):
                    self.removed(namespace, name)
            self.spill(at_most)
        others.clear()

    def clear(self) -> None:
        super().clear()
        for prefix in self._prefixes.values():
            self._store.delete(prefix)
        self._prefixes.clear()
        self._stored.clear()


def _hash(name: Any) -> bytes:
    return hash_bytes(stable_hash(name))
