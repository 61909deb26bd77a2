"""The working state of one descriptor in one subtask: namespace -> key -> value, and what of it has changed."""

from __future__ import annotations

import enum
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final

from penstock.runtime.state.contents import Contents


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


class StateTable(ABC):
    """Entries by namespace, then key: in memory (`HeapStateTable`), or on a local disk (`DiskStateTable`).

    Namespace first, because few namespaces (windows, or none) hold many keys: a plain keyed state is one dictionary,
    and a window's contents are one dictionary. Invariant: no namespace maps to an empty dictionary.
    """

    has_times: bool | None = None
    """True if values are kept with the times at which they were touched; None if it is not known: see `ttl`."""
    entries: Any
    """A `Contents`, or what behaves like one. For `runtime.state` alone, as `changed` is: a test sees to that."""
    changed: Any
    """What has changed since the last snapshot: a `Changes`, or what behaves like one."""

    entries_of: Callable[[Hashable], Any]
    """The entries of a namespace, to be read or changed in place; None if there are none."""
    note_written: Callable[[Hashable, Any, bool], None]
    """Of an entry that was changed in place: namespace, key, and whether it was there before."""
    note_all_written: Callable[[Hashable, Iterable[Any], Iterable[Any]], None]
    """The same for many: namespace, keys, and those of the keys (or others) that were not there before."""
    note_removed: Callable[[Hashable, Any], None]
    """Of an entry that was there and was removed in place: namespace and key."""
    note_all_removed: Callable[[Hashable, Iterable[Any]], None]

    notes_removals: bool
    """True if whoever removes entries in place must note that, also where no delta will be asked for."""

    def __init__(self, name: str, tracks_changes: bool) -> None:
        self.name = name
        self.has_maps = False
        """True if the values are certainly maps."""
        self.tracks_changes = self.notes_removals = tracks_changes
        self.settle: Callable[[], None] = _nothing_to_settle
        """Puts entries into the table that are kept apart from it; called before the table is read as a whole."""
        self._round: Iterator[tuple[Hashable, Any, Any]] = iter(())
        self._map_round: Iterator[tuple[Hashable, Any, Any, Any]] = iter(())

    # --- entries ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def get(self, namespace: Hashable, key: Any, default: Any = None) -> Any: ...

    @abstractmethod
    def contains(self, namespace: Hashable, key: Any) -> bool: ...

    @abstractmethod
    def put(self, namespace: Hashable, key: Any, value: Any) -> None: ...

    @abstractmethod
    def remove(self, namespace: Hashable, key: Any) -> bool:
        """True if it was there."""

    @abstractmethod
    def keys(self, namespace: Hashable) -> list[Any]: ...

    @abstractmethod
    def clear(self) -> None:
        """Drop everything, and that it ever changed."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def all_entries(self) -> Iterator[tuple[Hashable, Any, Any]]:
        """(namespace, key, value) of every entry. The table may change meanwhile."""

    def namespaces(self) -> list[Any]:
        return list(self.entries)

    def namespace_count(self) -> int:
        return len(self.entries)

    def has_namespace(self, namespace: Hashable) -> bool:
        return namespace in self.entries

    def remove_namespace(self, namespace: Hashable) -> list[Any]:
        """Remove all entries of a namespace; their keys."""
        keys = self.keys(namespace)
        if keys:
            del self.entries[namespace]
            self.note_all_removed(namespace, keys)
        return keys

    # --- entries in place ------------------------------------------------------------------------------------------
    # Operators that take whole batches, and generated loops, look entries up in local dictionaries: a call for each
    # record costs more than the lookup. They report what they did by `note_written` and its like.

    def open_namespace(self, namespace: Hashable, keys: Iterable[Any] | None = None) -> dict[Any, Any]:
        """The entries of a namespace, which may be new, to be changed in place; all that is asked for `keys`, if given.

        `close_namespace` must follow before anybody else uses the table.
        """
        entries: dict[Any, Any] = self.entries.setdefault(namespace, {})
        return entries

    def open_changes(self, namespace: Hashable) -> dict[Any, bool]:
        """For generated loops: what to note there, instead of calls, is said in `Changes`.

        `close_namespace` must follow before anybody else uses the table.
        """
        changes: dict[Any, bool] = self.changed[namespace]
        return changes

    def wants_notes(self, namespace: Hashable) -> bool:
        """Asked before a batch is noted. False if what it writes need not be; what it removes must be all the same."""
        return self.tracks_changes

    def close_namespace(self, namespace: Hashable) -> None:
        """Forget the namespace if it is empty, and its changes if there are none."""
        if self.has_namespace(namespace) and not self.entries[namespace]:
            del self.entries[namespace]
        if self.tracks_changes and not self.changed[namespace]:
            del self.changed[namespace]

    def is_direct(self, namespace: Hashable) -> bool:
        """True if state objects may work on `direct_entries` and `direct_changes` for this namespace."""
        return False

    def direct_entries(self) -> Any:
        """Namespace -> key -> value, for state objects."""
        return self.entries

    def direct_changes(self) -> Any:
        """Where they note what they change."""
        return self.changed

    def has_changes(self) -> bool:
        """True if a delta would not be empty."""
        return bool(self.changed)

    def _bind_notes(self) -> None:
        """Have `note_written` and its like lead to `changed` directly, without a call of ours in between."""
        self.note_written, self.note_all_written = self.changed.written, self.changed.written_all
        self.note_removed, self.note_all_removed = self.changed.removed, self.changed.removed_all

    # --- a few entries at a time -----------------------------------------------------------------------------------

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

    @abstractmethod
    def blocks(self, extent: Extent) -> Iterator[Contents]:
        """The entries of a snapshot in one part or several; valid until the table changes."""

    def is_all_changed(self) -> bool:
        """True if a snapshot of the changes holds all entries anyway."""
        return False

    @abstractmethod
    def snapshot_written(self, extent: Extent) -> None:
        """A snapshot of `extent` is safe: what it holds no longer counts as changed."""

    @abstractmethod
    def forget_changes(self) -> None: ...

    @abstractmethod
    def load(self, contents: Contents, extent: Extent = Extent.CHANGES) -> None:
        """Apply a part of a snapshot on top of what is there; it is no change since the last snapshot.

        Unless it is part of a base (`extent` ALL), it is a change since the base.
        """

    def dispose(self) -> None:
        """The table is no longer needed, nor what it keeps outside of memory."""


def _nothing_to_settle() -> None:
    """The table is complete."""
