"""The working state of one descriptor in one subtask: namespace -> key -> value, and which entries have changed."""

from __future__ import annotations

import enum
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final

from penstock.runtime.state.changes import Changes
from penstock.runtime.state.contents import Contents


class _Void:
    """The namespace of state that belongs to a key and not to a window. Each process has one instance."""

    def __repr__(self) -> str:
        return "VOID"

    def __reduce__(self) -> str:
        return "VOID_NAMESPACE"


class _Removed:
    """In a delta: takes the place of the value of a removed entry. Each process has one instance."""

    def __repr__(self) -> str:
        return "REMOVED"

    def __reduce__(self) -> str:
        return "REMOVED"


VOID_NAMESPACE: Final = _Void()
REMOVED: Final = _Removed()


class Extent(enum.Enum):
    """How much of a table a snapshot holds."""

    ALL = "all"
    """Everything. Such a snapshot is a base: restoring needs no earlier one."""
    SINCE_BASE = "since-base"
    """The changes since the last base. Such a snapshot replaces all deltas since then."""
    CHANGES = "changes"
    """The changes since the last snapshot."""


class StateTable(ABC):
    """Entries by namespace, then key: in memory (`HeapStateTable`), or on a local disk (`DiskStateTable`).

    The namespace comes first because there are few namespaces (windows, or only `VOID_NAMESPACE`) with many keys each:
    a plain keyed state is one dictionary, and so are the contents of a window. Invariant: no namespace has an empty
    dictionary, except between `open_namespace` and `close_namespace`.
    """

    has_times: bool | None = None
    """True if values are stored with times, because they expire; None if this is not known. See `ttl`."""
    entries: Any
    """A dictionary of namespaces, or an object that behaves like one. Only `runtime.state` may use it and `changed`; a
    test checks this."""
    changed: Any
    """What has changed since the last snapshot: a `Changes`, or an object that behaves like one."""

    entries_of: Callable[[Hashable], Any]
    """Gives the entries of a namespace, which may be read or changed in place; None if there are none."""
    note_written: Callable[[Hashable, Any, bool], None]
    """Notes that an entry was written in place: namespace, key, and whether the entry existed before."""
    note_all_written: Callable[[Hashable, Iterable[Any], Iterable[Any]], None]
    """The same for many entries: namespace, keys, and the new keys. New keys need not be among the keys."""
    note_removed: Callable[[Hashable, Any], None]
    """Notes that an existing entry was removed in place: namespace and key."""
    note_all_removed: Callable[[Hashable, Iterable[Any]], None]
    """The same for many entries: namespace and keys."""

    notes_removals: bool
    """True if removals in place must be noted. This may be so even if no delta will be needed."""

    def __init__(self, name: str, tracks_changes: bool) -> None:
        self.name = name
        self.has_maps = False
        """True if the values are certainly maps."""
        self.tracks_changes = self.notes_removals = tracks_changes
        self.settle: Callable[[], None] = _nothing_to_settle
        """Moves entries that an operator keeps elsewhere into the table. Called before the whole table is read."""
        self._is_open = False
        """True while a generated loop works on the dictionaries of `VOID_NAMESPACE`, so that these must stay."""
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
        """Remove an entry; True if it existed."""

    @abstractmethod
    def keys(self, namespace: Hashable) -> list[Any]: ...

    @abstractmethod
    def clear(self) -> None:
        """Drop all entries and forget all changes."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def all_entries(self) -> Iterator[tuple[Hashable, Any, Any]]:
        """(namespace, key, value) of every entry. The table may change during the iteration."""

    def namespaces(self) -> list[Any]:
        return list(self.entries)

    def namespace_count(self) -> int:
        return len(self.entries)

    def has_namespace(self, namespace: Hashable) -> bool:
        return namespace in self.entries

    def remove_namespace(self, namespace: Hashable) -> list[Any]:
        """Remove all entries of a namespace; returns their keys."""
        keys = self.keys(namespace)
        if keys:
            del self.entries[namespace]
            self.note_all_removed(namespace, keys)
        return keys

    # --- entries in place ------------------------------------------------------------------------------------------
    # Operators that process whole batches, and generated loops, look up entries in local dictionaries, because a call
    # for each record costs more than the lookup. They report their changes through `note_written` and its siblings.

    def open_namespace(self, namespace: Hashable, keys: Iterable[Any] | None = None) -> dict[Any, Any]:
        """The entries of a namespace, which may be new, to be changed in place.

        With `keys`, the dictionary is complete for these keys only. Call `close_namespace` before the table is used in
        another way. That call may be left out for a window to which entries were added.
        """
        entries: dict[Any, Any] = self.entries.setdefault(namespace, {})
        return entries

    def open_changes(self, namespace: Hashable) -> dict[Any, bool]:
        """The noted changes of a namespace. Generated loops note writes here without a call, as `Changes` describes.

        Call `close_namespace` before the table is used in another way.
        """
        changes: dict[Any, bool] = self.changed[namespace]
        return changes

    def wants_notes(self, namespace: Hashable) -> bool:
        """Asked for each batch. False if its writes need not be noted; its removals must be noted all the same."""
        return self.tracks_changes

    def keep_open(self) -> None:
        """Until `close_namespace`, keep the dictionaries of `VOID_NAMESPACE`, even if they become empty.

        So a generated loop that works on them, and state objects that its function uses at the same time, see the same.
        """
        self._is_open = True
        if isinstance(self.changed, Changes):
            self.changed.kept = VOID_NAMESPACE

    def close_namespace(self, namespace: Hashable) -> None:
        """Forget the namespace if it has no entries, and its dictionary of changes if that is empty."""
        self._is_open = False
        if isinstance(self.changed, Changes):
            self.changed.kept = None
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
        """Namespace -> key -> whether the snapshot has the entry. State objects note their changes here."""
        return self.changed

    def has_changes(self) -> bool:
        """True if a delta would not be empty."""
        return bool(self.changed)

    def _bind_notes(self) -> None:
        """Bind `note_written` and its siblings directly to the methods of `changed`, to save a call."""
        self.note_written, self.note_all_written = self.changed.written, self.changed.written_all
        self.note_removed, self.note_all_removed = self.changed.removed, self.changed.removed_all

    # --- a few entries at a time -----------------------------------------------------------------------------------

    def some_entries(self, number: int) -> list[tuple[Hashable, Any, Any]]:
        """The next few entries, from where the last call stopped. At the end of the table there are fewer, or none.

        The next call then begins again with the first entry.
        """
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
        """From now on the values are maps, whose entries change one by one."""
        self.has_maps = True

    def items_of(self, held: Any) -> Iterable[tuple[Any, Any]]:
        """The items of a map of this table. The map may change during the iteration."""
        return list(held.items())

    # --- snapshots -------------------------------------------------------------------------------------------------

    @abstractmethod
    def blocks(self, extent: Extent) -> Iterator[Contents]:
        """The entries of a snapshot, in one or several parts, which are valid until the table changes."""

    def is_all_changed(self) -> bool:
        """True if a snapshot of the changes would hold all entries."""
        return False

    @abstractmethod
    def snapshot_written(self, extent: Extent) -> None:
        """A snapshot of `extent` is stored: its entries no longer count as changed."""

    @abstractmethod
    def forget_changes(self) -> None: ...

    @abstractmethod
    def load(self, contents: Contents, extent: Extent = Extent.CHANGES) -> None:
        """Apply a part of a snapshot to the current entries.

        Its entries do not count as changed since the last snapshot. They count as changed since the base unless the
        part belongs to a base (`extent` is ALL).
        """

    def dispose(self) -> None:
        """Release what the table keeps outside of memory. It must not be used any more."""


def _nothing_to_settle() -> None:
    """All entries are in the table already."""
