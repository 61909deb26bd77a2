"""Plain keyed state on disk: the most recently used entries are in a dictionary, the others in a `KeyStore`.

An operator with a batch of elements asks for all their keys at once. It then works on the dictionary, as if all state
were in memory. Changes are written to the store in bulk: when the dictionary is full, and when a snapshot is taken.

Entries are held in two generations. An entry that is used moves to the recent generation. When that is full, all
changes are written, the older generation is dropped, and the recent one becomes the older one. Nothing is dropped while
an operator works on the dictionary.

If many keys do not come again before their entries are dropped, holding entries costs more than it saves. Then large
batches pass: after the batch, its entries are written back to the slots of the store that they came from. From time to
time entries are held again, to see whether their keys come again sooner by now.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.common.exceptions import LocalStateError
from penstock.runtime.state.contents import Contents, EncodedEntries
from penstock.runtime.state.key_store import KeyStore, Taken
from penstock.runtime.state.live_entries import ABSENT, UNKNOWN, FoundEntries
from penstock.runtime.state.slot_memory import MemoryShare, bytes_of_entries
from penstock.runtime.state.table import VOID_NAMESPACE, Extent

_BLOCK_ENTRIES = 10_000
_BLOCK_BYTES = 1 << 20
_SAMPLED_ENTRIES = 50
_MOSTLY_CHANGED = 0.9
_UNNOTED_GENERATIONS = 16
_LOW_HIT_RATE = 0.6
"""If at most this share of keys is found in memory, holding entries costs more than reading and writing each time."""
_PASSING_GENERATIONS = 64
_LARGE_BATCH = 500
"""Batches of fewer keys do not pass: for each key, writing such a batch would cost more than holding its entries."""


class CachedKeys(FoundEntries):
    """The entries of one state. Callers that change entries in place note this in `changes`."""

    def __init__(
        self,
        make_folder: Callable[[], Path],
        capacity: int,
        tracks_changes: bool,
        memory: MemoryShare | None = None,
    ) -> None:
        self._make_folder = make_folder
        self._capacity = capacity
        self._memory = memory
        self._measure_at = 1
        """The sizes of entries are measured when there are this many recent ones."""
        self._tracks_changes = tracks_changes
        self.notes_writes = tracks_changes
        """False if only removals must be noted. Then every entry that is used counts as written."""
        self._unnoted_generations = 0
        """For how many generations writes have not been noted."""
        self._generation_size = max(capacity // 2, 1)
        """How many entries the recent generation may hold."""
        self._recent: dict[Any, Any] = {}
        self._older: dict[Any, Any] = {}
        self.changes: dict[Any, bool] = {}
        """Keys that differ from the store -> whether the store has them. If one is not in memory, it was removed."""
        self._known_stored: set[Any] = set()
        """Keys that the store certainly has, while writes are not noted. They need not be compared when written."""
        self._store: KeyStore | None = None
        self._is_in_use = False
        self._wanted = self._missing = 0
        """How many keys batches have asked for in this generation, and how many of them were not in memory."""
        self._was_full = False
        """True if the previous generation was held until it was full."""
        self._left_to_pass = 0
        """How many more entries may pass before entries are held again."""
        self._passed = 0
        """How many entries have passed since the last generation was counted."""
        self._taken: Taken | None = None
        """The entries of the current batch, if it passes. Then `_recent` is their dictionary."""

    # --- many entries ----------------------------------------------------------------------------------------------

    def open_keys(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """A dictionary with the entries of `keys`, and perhaps others, to be read and changed until `close`.

        One of `keys` that is not in it has no entry. For other keys this cannot be concluded.
        """
        if self._left_to_pass > 0 and not self._is_in_use:
            keys = keys if isinstance(keys, list) else list(keys)
            if self._take(keys):
                return self._recent
        self._is_in_use = True
        recent = self._recent
        if self._older or self._store is not None:
            wanted = set(keys)
            missing = wanted.difference(recent)
            nowhere = missing.difference(self._older)
            if len(nowhere) < len(missing):
                older = missing - nowhere
                recent.update(zip(older, map(self._older.pop, older), strict=True))
                missing = nowhere
            self._wanted += len(wanted)
            self._missing += len(missing)
            if missing and self._store is not None:
                missing = missing.difference(self.changes)
                self._fetch(self._store, list(missing))
        return recent

    def _take(self, keys: list[Any]) -> bool:
        """Let the entries of a batch pass; False if they must be held."""
        if self.notes_writes or len(keys) < _LARGE_BATCH or (self._store is not None and self._store.has_apart()):
            return False
        self._write_back()
        self._recent, self._older = {}, {}
        self._taken = None if self._store is None else self._store.take(keys)
        if self._taken is None:
            return False
        self._is_in_use = True
        self._recent = self._taken.entries
        return True

    def _give_back(self, store: KeyStore, taken: Taken) -> None:
        store.give_back(taken)
        gone = [key for key in self.changes if key not in taken.entries]
        if gone:
            store.remove(gone)
        self.changes.clear()
        self._known_stored.clear()
        self._recent = {}
        self._left_to_pass -= len(taken.entries)
        self._passed += len(taken.entries)
        if self._passed > self._generation_size:
            self._passed = 0
            self._decide_on_notes(has_mostly_changed=False)

    def _fetch(self, store: KeyStore, keys: list[Any]) -> None:
        found = store.read(keys)
        # The store does not compare keys that are integers, so there is no need to remember them.
        if not self.notes_writes and keys and type(keys[0]) is not int:
            found = dict(found)
            self._known_stored.update(found)
        self._recent.update(found)

    def open_all(self) -> CachedKeys:
        """All entries, to be read and changed until `close`."""
        self._is_in_use = True
        return self

    def close(self) -> None:
        self._is_in_use = False
        taken, self._taken = self._taken, None
        if taken is not None and self._store is not None:
            self._give_back(self._store, taken)
        else:
            self._make_room()

    def _make_room(self) -> None:
        if self._is_in_use:
            return
        if self._memory is not None and len(self._recent) >= self._measure_at:
            self._measure(self._memory)
        if len(self._recent) > self._generation_size:
            has_mostly_changed = len(self.changes) >= _MOSTLY_CHANGED * len(self._recent)
            self._write_back()
            self._older, self._recent = self._recent, {}
            self._measure_at = self._generation_size // 4
            self._decide_on_notes(has_mostly_changed)
            self._decide_on_passing()

    def _decide_on_notes(self, has_mostly_changed: bool) -> None:
        """Stop noting writes, which takes time, for some generations if nearly all used entries have changed."""
        self._unnoted_generations = 0 if self.notes_writes else (self._unnoted_generations + 1) % _UNNOTED_GENERATIONS
        if self._tracks_changes and self._unnoted_generations == 0:
            self.notes_writes = not has_mostly_changed or not self.notes_writes

    def _decide_on_passing(self) -> None:
        """Let batches pass if two generations in a row were held, and the second found too few keys in memory."""
        found = self._wanted - self._missing
        if self._was_full and self._wanted and found <= _LOW_HIT_RATE * self._wanted:
            self._left_to_pass = _PASSING_GENERATIONS * self._generation_size
        self._was_full = self._left_to_pass <= 0
        self._wanted = self._missing = 0

    def _measure(self, memory: MemoryShare) -> None:
        """Set the size of a generation by the size of the newest entries and the memory of this state."""
        newest = itertools.islice(reversed(self._recent.items()), _SAMPLED_ENTRIES)
        most = memory.bytes() // max(bytes_of_entries(newest), 1)
        self._generation_size = max(min(self._capacity, most) // 2, 1)
        self._measure_at = 2 * len(self._recent)

    def _write_back(self) -> None:
        """Write all changes to the store."""
        if not self.changes and (self.notes_writes or not self._recent):
            return
        if self._store is None:
            self._store = KeyStore(self._make_folder)
        keys = self._unwritten()
        if self.notes_writes:
            were_there = list(self.changes.values())
        else:
            were_there = list(map(self._known_stored.__contains__, keys))
        are_recent = not self.notes_writes and len(keys) == len(self._recent)
        self._store.write(keys, list(self._recent.values()) if are_recent else self._values_of(keys), were_there)
        self.changes.clear()
        self._known_stored.clear()

    def _unwritten(self) -> list[Any]:
        """The keys of entries in memory that may differ from the store. Removals are applied to the store first."""
        elsewhere = [key for key in self.changes if key not in self._recent]
        gone = [key for key in elsewhere if key not in self._older and self.changes.pop(key)]
        if gone and self._store is not None:
            self._store.remove(gone)
        if self.notes_writes:
            return list(self.changes)
        return [*self._recent, *(key for key in elsewhere if key in self._older)]

    def _values_of(self, keys: list[Any]) -> list[Any]:
        """The objects of keys that are in memory."""
        recent, older = self._recent, self._older
        return [recent[key] if key in recent else older[key] for key in keys]

    # --- one entry -------------------------------------------------------------------------------------------------

    def find(self, key: Any) -> Any:
        """The object of `key`, or ABSENT. The entry becomes a recent one."""
        held = self._recent.get(key, UNKNOWN)
        if held is not UNKNOWN:
            return held
        held = self._older.pop(key, UNKNOWN)
        if held is UNKNOWN:
            held = self._stored(key)
        if held is not ABSENT:
            self._recent[key] = held
            self._make_room()
        return held

    def peek(self, key: Any) -> Any:
        """The object of `key`, or ABSENT. The entry stays where it is."""
        held = self._recent.get(key, UNKNOWN)
        if held is UNKNOWN:
            held = self._older.get(key, UNKNOWN)
        return self._stored(key) if held is UNKNOWN else held

    def _stored(self, key: Any) -> Any:
        return ABSENT if self._store is None or key in self.changes else self._store.get(key)

    def store(self, key: Any, value: Any) -> None:
        """Set the object of `key`, and note the change."""
        if key not in self.changes:
            self.changes[key] = self.find(key) is not ABSENT
        self[key] = value

    def remove(self, key: Any) -> bool:
        """Remove the entry of `key`, and note the change; True if the entry existed."""
        if self.find(key) is ABSENT:
            return False
        del self[key]
        self.note_removed(key)
        return True

    # --- changes ---------------------------------------------------------------------------------------------------

    def note_written(self, key: Any, was_there: bool) -> None:
        """Note that an entry in memory was written."""
        if key not in self.changes:
            self.changes[key] = was_there

    def note_all_written(self, keys: Iterable[Any], new: Iterable[Any]) -> None:
        """Note that entries in memory were written. Those of `new` did not exist before."""
        changes = self.changes
        for were_there, some in ((False, new), (True, keys)):
            changes.update(dict.fromkeys([key for key in some if key not in changes], were_there))

    def note_removed(self, key: Any) -> None:
        """Note that an entry that existed was removed from memory."""
        if self.changes.get(key, True):
            self.changes[key] = True
        else:
            del self.changes[key]

    def has_changes(self) -> bool:
        is_written = not self.changes and (self.notes_writes or not self._recent)
        return not is_written or (self._store is not None and self._store.has_changes)

    # --- snapshots -------------------------------------------------------------------------------------------------

    def blocks(self, extent: Extent) -> Iterator[Mapping[Any, Any]]:
        """The entries of a snapshot, in parts. Changed entries in memory are not read from the store."""
        keys = self._unwritten()
        for start in range(0, len(keys), _BLOCK_ENTRIES):
            some = keys[start : start + _BLOCK_ENTRIES]
            yield dict(zip(some, self._values_of(some), strict=True))
        given = self.changes if self.notes_writes else set(keys)
        for part in () if self._store is None else self._store.changes(extent):
            known = {key: value for key, value in part.items() if key not in given}
            if known:
                yield known

    def is_stored(self) -> bool:
        return self._store is not None

    def stored_blocks(self) -> Iterator[Contents]:
        """All entries, in parts. Those that the store holds pickled are given as they are."""
        self._write_back()
        assert self._store is not None
        waiting, size = [], 0
        for packed in self._store.packed():
            waiting.append(packed)
            size += len(packed)
            if size >= _BLOCK_BYTES:
                yield EncodedEntries({VOID_NAMESPACE: b"".join(waiting)})
                waiting, size = [], 0
        if waiting:
            yield EncodedEntries({VOID_NAMESPACE: b"".join(waiting)})
        for part in self._store.not_packed():
            yield {VOID_NAMESPACE: part}

    def snapshot_written(self, extent: Extent) -> None:
        self._write_back()
        if not self.notes_writes:
            self._older, self._recent = self._recent, {}  # Only entries used from now on count as written.
            self._was_full = False
        if self._store is not None:
            self._store.snapshot_written(extent)

    def load(self, saved: Mapping[Any, Any] | bytes, extent: Extent) -> None:
        """Apply a part of a snapshot of `extent` to the current entries."""
        self._write_back()
        self._recent.clear()
        self._older.clear()
        if self._store is None:
            self._store = KeyStore(self._make_folder)
        if isinstance(saved, bytes):
            self._store.load_packed(saved, extent)
        else:
            self._store.load(saved, extent)

    def drop(self) -> None:
        """Drop all entries and forget all changes."""
        self._taken = None
        self._recent.clear()
        self._older.clear()
        self.changes.clear()
        self._known_stored.clear()
        if self._store is not None:
            self._store.close()
            self._store = None

    def dispose(self) -> None:
        """Drop everything. Reading from here afterwards is an error."""
        self.drop()
        self._recent = _ClosedEntries()

    # --- a dictionary ----------------------------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        held = self._recent.get(key, UNKNOWN)
        if held is UNKNOWN:
            held = self.find(key)
        return default if held is ABSENT else held

    def __setitem__(self, key: Any, value: Any) -> None:
        self._older.pop(key, None)
        self._recent[key] = value
        self._make_room()  # Last: if the change is noted already, the new object must be in memory.

    def __delitem__(self, key: Any) -> None:
        if self.find(key) is ABSENT:
            raise KeyError(key)
        self._recent.pop(key, None)
        self._older.pop(key, None)

    def __bool__(self) -> bool:
        return bool(self._recent) or bool(self._older) or len(self) > 0

    def __len__(self) -> int:
        if self._store is None:
            return len(self._recent) + len(self._older)
        if not self.notes_writes:
            self._write_back()
        recent, older = self._recent, self._older
        stored = self._store.count
        for key, was_there in self.changes.items():
            stored += (key in recent or key in older) - was_there
        return stored

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self.entries())

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """(key, object) of all entries. If they change during the iteration, later ones are given as they are then."""
        given = {**self._older, **self._recent}
        for key in given:
            held = self.peek(key)
            if held is not ABSENT:
                yield key, held
        for found in () if self._store is None else self._store.scan():
            version = 0 if self._store is None else self._store.version
            for key, value in found:
                if key in given:
                    continue
                is_current = self._store is not None and self._store.version == version and self._is_stored_only(key)
                held = value if is_current else self.peek(key)
                if held is not ABSENT:
                    yield key, held

    def _is_stored_only(self, key: Any) -> bool:
        return key not in self._recent and key not in self._older and key not in self.changes


class _ClosedEntries(dict[Any, Any]):
    """Takes the place of the entries when their task is closed, so that they do not seem to be missing."""

    def get(self, key: Any, default: Any = None) -> Any:
        raise LocalStateError("working state was used after its task was closed")
