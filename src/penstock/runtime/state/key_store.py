"""The entries of plain keyed state in local files, which are read and written many at a time, and their changes.

    index   hash of the key -> where the entry is, and flags
    log     records: key and value

Integers and floats whose keys are integers are in the index itself. Other entries of numbers, strings, bytes, booleans
and None, or tuples of these, are marshalled, which is much faster than pickling; only this process reads the files. All
other entries are pickled, and full snapshots copy their records unchanged.

The files are working memory and play no part in recovery: nothing is synced to disk, and they are removed with their
task.
"""

from __future__ import annotations

import itertools
import marshal
import shutil
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.runtime.state.codec import encode_state
from penstock.runtime.state.contents import load, pack, unpack
from penstock.runtime.state.entry_index import EntryIndex, Hashes, Slots
from penstock.runtime.state.entry_store import made_folder, write_failure
from penstock.runtime.state.live_entries import ABSENT
from penstock.runtime.state.number_columns import column_of_floats, column_of_ints
from penstock.runtime.state.record_log import RecordLog
from penstock.runtime.state.table import REMOVED, Extent

# The flags of a slot. Three bits say in which form the entry is stored. A removed entry keeps its slot, and its record,
# which may hold the key, while the last snapshot or base has it.
_FORM = np.uint8(0b111)
_GONE, _INT, _FLOAT, _MARSHALLED, _PACKED, _GONE_MARSHALLED, _GONE_PACKED = range(1, 8)
_FIRST_THERE, _LAST_THERE = _INT, _PACKED
_IS_HASH = np.uint8(1 << 3)
"""The key is an integer that is its own hash."""
_CHANGED = np.uint8(1 << 4)
"""The entry differs from the last snapshot."""
_SINCE_BASE = np.uint8(1 << 5)
"""The entry changed between the last base and the last snapshot."""
_IN_SNAPSHOT = np.uint8(1 << 6)
"""The last snapshot, with those it builds on, has the entry."""
_IN_BASE = np.uint8(1 << 7)
"""The last base has the entry."""

_PLAIN = {int, float, str, bytes, bool, type(None)}
_LARGEST_OWN_HASH = sys.hash_info.modulus - 1
_PART_ENTRIES, _PART_BYTES = 10_000, 1 << 20
_WRITTEN_AT_ONCE = 1 << 16
_MIN_OBSOLETE_BYTES = 1 << 24

Flags = NDArray[np.uint8]


def _is_there(flags: Flags) -> NDArray[np.bool_]:
    form = flags & _FORM
    is_there: NDArray[np.bool_] = (form >= _FIRST_THERE) & (form <= _LAST_THERE)
    return is_there


def _is_record(flags: Flags) -> NDArray[np.bool_]:
    is_record: NDArray[np.bool_] = (flags & _FORM) >= _MARSHALLED
    return is_record


def _flags_when_written(flags: Flags, form: int, is_hash: bool, marks: np.uint8) -> Flags:
    """The flags of entries after they are written. `marks` are set in addition."""
    after: Flags = flags & (_SINCE_BASE | _IN_SNAPSHOT | _IN_BASE)
    after |= np.uint8(form) | (_IS_HASH if is_hash else np.uint8(0)) | marks
    return after


def _flags_when_removed(flags: Flags) -> Flags:
    """The flags of entries after they are removed; 0 for entries that neither the snapshot nor the base has."""
    kept = flags & (_SINCE_BASE | _IN_SNAPSHOT | _IN_BASE | _IS_HASH)
    form = flags & _FORM
    gone = np.where(form == _MARSHALLED, _GONE_MARSHALLED, np.where(form == _PACKED, _GONE_PACKED, _GONE))
    gone = np.where(form > _LAST_THERE, form, gone).astype(np.uint8)
    changed = np.where(flags & _IN_SNAPSHOT, _CHANGED, np.uint8(0))
    after: Flags = np.where(flags & (_IN_SNAPSHOT | _IN_BASE), kept | gone | changed, np.uint8(0)).astype(np.uint8)
    return after


def _flags_when_saved(flags: Flags, extent: Extent) -> Flags:
    """The flags of entries after a snapshot of `extent` is stored."""
    is_there = _is_there(flags)
    if extent is Extent.ALL:
        known = (flags & (_FORM | _IS_HASH)) | _IN_SNAPSHOT | _IN_BASE
        after: Flags = np.where(is_there, known, np.uint8(0)).astype(np.uint8)
        return after
    known = (flags & (_FORM | _IS_HASH | _IN_BASE)) | _SINCE_BASE
    known = np.where(is_there, known | _IN_SNAPSHOT, np.where(flags & _IN_BASE, known, np.uint8(0)))
    after = np.where(flags & _CHANGED, known, flags).astype(np.uint8)
    return after


def _is_wanted(flags: Flags, extent: Extent) -> NDArray[np.bool_]:
    """True for entries that a snapshot of `extent` contains, or whose removal it contains."""
    if extent is Extent.ALL:
        return _is_there(flags)
    is_wanted: NDArray[np.bool_] = (flags & _CHANGED) != 0
    if extent is Extent.SINCE_BASE:
        is_wanted = (is_wanted | ((flags & _SINCE_BASE) != 0)) & (_is_there(flags) | ((flags & _IN_BASE) != 0))
    return is_wanted


@dataclass
class _Apart:
    """An entry whose key has the same hash as another key. It is kept apart, in memory.

    There are few such entries, unless hashes are so bad that lookups are slow anyway.
    """

    flags: Flags
    """An array of one element."""
    value: Any


@dataclass(frozen=True)
class _Encoded:
    """Takes the place of a value that is encoded already. It is decoded only if the entry is kept apart."""

    content: bytes


@dataclass(frozen=True)
class _Content:
    """How entries of one form are stored in the files."""

    form: int
    is_hash: bool
    data: NDArray[np.int64] | list[bytes]
    """The new contents of the column `places`, or the records."""

    def only(self, kept: list[int]) -> _Content:
        """The content of some of the entries."""
        data = self.data[kept] if isinstance(self.data, np.ndarray) else [self.data[at] for at in kept]
        return _Content(self.form, self.is_hash, data)


@dataclass(frozen=True)
class Taken:
    """Entries that an operator works on, and where those that exist came from."""

    entries: dict[Any, Any]
    keys: list[Any]
    """The keys of entries that were found, in the order of `entries`."""
    slots: Slots
    absent: list[Any]
    """The keys that were not found."""
    absent_hashes: tuple[Hashes, bool]
    """The hashes of `absent`, and whether the keys are their own hashes."""
    version: int
    """The version of the store when the entries were taken."""


class KeyStore:
    """Entries by key. As in a dictionary, equal keys are the same key, whatever their types."""

    def __init__(self, make_folder: Callable[[], Path]) -> None:
        self._folder = made_folder(make_folder)
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._paths = (self._folder / f"records-{number}" for number in itertools.count(1))
        self._apart: dict[Any, _Apart] = {}
        self.count = 0
        self.has_changes = False
        self.version = 0
        """Increases with every write and removal."""
        with self._reporting_failures():
            self._index = EntryIndex(self._folder)
            self._log = RecordLog(next(self._paths))

    @contextmanager
    def _reporting_failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise write_failure(self._folder, error) from error

    def close(self) -> None:
        """Remove the files."""
        self._log.close()
        self._remove()

    # --- reading ---------------------------------------------------------------------------------------------------

    def get(self, key: Any) -> Any:
        """The value of `key`, or ABSENT."""
        return next(iter(self.read([key])), (key, ABSENT))[1]

    def read(self, keys: list[Any]) -> Iterable[tuple[Any, Any]]:
        """The keys that have entries, with their values."""
        if not self._apart:
            return self._read(keys)
        apart = [(key, self._apart[key].value) for key in keys if key in self._apart]
        found = self._read([key for key in keys if key not in self._apart])
        return itertools.chain(((key, value) for key, value in apart if value is not ABSENT), found)

    def _read(self, keys: list[Any]) -> Iterable[tuple[Any, Any]]:
        is_found, _, values = self._found(keys, *_hashes_of(keys))
        return zip(keys if is_found.all() else itertools.compress(keys, is_found.tolist()), values, strict=True)

    def _found(self, keys: list[Any], hashes: Hashes, are_hashes: bool) -> tuple[NDArray[np.bool_], Slots, list[Any]]:
        """Which keys have entries in the files, and the slots and values of these entries."""
        slots = self._index.find(hashes)
        is_found: NDArray[np.bool_] = (slots >= 0) & _is_there(self._index.flags[slots])
        if not is_found.all():
            keys, slots = list(itertools.compress(keys, is_found.tolist())), slots[is_found]
        names, values = self._columns(slots, are_hashes)
        if names and names != keys:
            is_own = np.fromiter(map(_is_same, names, keys), bool, len(keys))
            is_found[is_found] = is_own
            slots, values = slots[is_own], list(itertools.compress(values, is_own.tolist()))
        return is_found, slots, values

    def has_apart(self) -> bool:
        """True if entries are kept apart from the files, because their keys have the same hashes as others."""
        return bool(self._apart)

    def take(self, keys: list[Any]) -> Taken | None:
        """The entries of `keys`, to be changed and given back; None if one of them may be kept apart."""
        if self._apart:
            return None
        hashes, are_hashes = _hashes_of(keys)
        is_found, slots, values = self._found(keys, hashes, are_hashes)
        found, absent = keys, []
        if not is_found.all():
            found = list(itertools.compress(keys, is_found.tolist()))
            absent, hashes = list(itertools.compress(keys, (~is_found).tolist())), hashes[~is_found]
        entries = dict(zip(found, values, strict=True))
        if len(entries) < len(found):  # Some keys occur twice.
            found = list(entries)
            slots = self._index.find(_hashes_of(found)[0])
        return Taken(entries, found, slots, absent, (hashes, are_hashes), self.version)

    def _columns(self, slots: Slots, are_known: bool = False) -> tuple[list[Any], list[Any]]:
        """The keys and values of slots, in order; the value of a removed entry is ABSENT.

        With `are_known`, the caller's keys are their own hashes. Then the list of keys may be empty, which means that
        they are the caller's.
        """
        kinds = self._index.flags[slots] & (_FORM | _IS_HASH)
        if not len(slots):
            return [], []
        if (kinds == kinds[0]).all():
            return self._columns_of(slots, int(kinds[0]), are_known)
        keys: list[Any] = [None] * len(slots)
        values: list[Any] = [None] * len(slots)
        for kind in np.unique(kinds):
            at = np.flatnonzero(kinds == kind)
            for number, key, value in zip(at.tolist(), *self._columns_of(slots[at], int(kind)), strict=True):
                keys[number], values[number] = key, value
        return keys, values

    def _columns_of(self, slots: Slots, kind: int, are_known: bool = False) -> tuple[list[Any], list[Any]]:
        """The same for slots whose flags `_FORM` and `_IS_HASH` agree."""
        form, is_hash = kind & int(_FORM), bool(kind & int(_IS_HASH))
        keys: list[Any] = self._index.hashes(slots).tolist() if is_hash and not are_known else []
        if form == _INT:
            return keys, self._index.places[slots].tolist()
        if form == _FLOAT:
            return keys, self._index.places[slots].view(np.float64).tolist()
        if form == _GONE or (is_hash and form > _LAST_THERE):
            return keys, [ABSENT] * len(slots)
        records = self._log.read(self._index.places[slots], self._index.sizes[slots])
        if form in (_MARSHALLED, _GONE_MARSHALLED):
            loaded = list(map(marshal.loads, records))
            values = loaded if is_hash else [value for _, value in loaded]
            keys = keys if is_hash else [key for key, _ in loaded]
        else:
            unpacked = [unpack(record)[0] for record in records]
            keys = keys if is_hash else [load(name) for name, _ in unpacked]
            values = [load(value) for _, value in unpacked] if form == _PACKED else []
        return keys, values if form <= _LAST_THERE else [ABSENT] * len(slots)

    # --- writing ---------------------------------------------------------------------------------------------------

    def write(self, keys: list[Any], values: list[Any], were_there: list[bool] | None = None) -> None:
        """Write entries; no key may occur twice. `were_there` is True for keys that the store certainly has."""
        self.has_changes = True
        self._put(keys, values, were_there, _CHANGED)

    def give_back(self, taken: Taken) -> None:
        """Write all entries of `taken`, including those added since. Removals are left to the caller.

        Entries that were found go back to their slots: they need not be looked up and compared again.
        """
        keys, values = list(taken.entries), list(taken.entries.values())
        found, slots = taken.keys, taken.slots
        if keys[: len(found)] != found:
            is_left = list(map(taken.entries.__contains__, found))
            found, slots = list(itertools.compress(found, is_left)), slots[np.array(is_left, bool)]
        known = len(found)
        if taken.version != self.version or keys[:known] != found:
            self.write(keys, values)
            return
        self.has_changes = True
        for part in _write_parts(0, known):
            are_hashes = bool((self._index.flags[slots[part]] & _IS_HASH).all())
            with self._reporting_failures():
                self._fill(slots[part], _content(keys[part], values[part], are_hashes), _CHANGED)
        hashes, are_hashes = taken.absent_hashes if keys[known:] == taken.absent else _hashes_of(keys[known:])
        for part in _write_parts(known, len(keys)):
            hashed = hashes[part.start - known : part.stop - known], are_hashes
            self._put_some(keys[part], values[part], hashed, None, _CHANGED, are_new=True)
        self._end_writing()

    def remove(self, keys: list[Any]) -> None:
        self.has_changes = True
        self._take_out(keys, _flags_when_removed)

    def _take_out(self, keys: list[Any], flags_after: Callable[[Flags], Flags]) -> None:
        self.version += 1
        for key in [key for key in keys if key in self._apart]:
            apart = self._apart[key]
            self.count -= int(_is_there(apart.flags)[0])
            apart.flags, apart.value = flags_after(apart.flags), ABSENT
            if not apart.flags[0]:
                del self._apart[key]
        keys = [key for key in keys if key not in self._apart]
        slots = self._index.find(_hashes_of(keys)[0])
        has_slot = (slots >= 0) & (self._index.flags[slots] != 0)
        keys, slots = list(itertools.compress(keys, has_slot.tolist())), slots[has_slot]
        is_own = list(map(_is_same, self._columns(slots)[0], keys))
        slots = slots[np.array(is_own, bool)]
        self._set_flags(slots, flags_after(self._index.flags[slots]))

    def _set_flags(self, slots: Slots, flags: Flags) -> None:
        """Set flags by which entries are removed or forgotten. Records that are no longer needed become obsolete."""
        before = self._index.flags[slots]
        self.count -= int(np.count_nonzero(_is_there(before))) - int(np.count_nonzero(_is_there(flags)))
        self._log.obsolete_bytes += int(self._index.sizes[slots[_is_record(before) & ~_is_record(flags)]].sum())
        self._index.flags[slots] = flags

    def _put(self, keys: list[Any], values: list[Any], were_there: list[bool] | None, marks: np.uint8) -> None:
        for part in _write_parts(0, len(keys)):
            some = None if were_there is None else were_there[part]
            self._put_some(keys[part], values[part], _hashes_of(keys[part]), some, marks)
        self._end_writing()

    def _end_writing(self) -> None:
        self.version += 1
        self._compact()

    def _put_some(
        self,
        keys: list[Any],
        values: list[Any],
        hashed: tuple[Hashes, bool],
        were_there: list[bool] | None,
        marks: np.uint8,
        are_new: bool = False,
    ) -> None:
        """Write some entries. `are_new` speeds this up if the store has hardly any of the keys."""
        hashes, are_hashes = hashed
        with self._reporting_failures():
            slots = self._index.place(hashes, are_new)
            self._put_slots(keys, values, slots, were_there, _content(keys, values, are_hashes), marks)

    def _put_slots(
        self,
        keys: list[Any],
        values: list[Any],
        slots: Slots,
        were_there: list[bool] | None,
        content: _Content,
        marks: np.uint8,
    ) -> None:
        """Write entries to the slots of their hashes, or keep them apart."""
        shared = self._sharing_hashes(keys, slots, were_there, content.is_hash)
        if shared:
            for at in shared:
                self._put_apart(keys[at], values[at], marks)
            kept = [at for at in range(len(keys)) if at not in shared]
            slots, content = slots[np.array(kept, np.intp)], content.only(kept)
        self._fill(slots, content, marks)

    def _fill(self, slots: Slots, content: _Content, marks: np.uint8) -> None:
        """Write entries to slots that belong to their keys."""
        before = self._index.flags[slots]
        had_record = _is_record(before)
        if had_record.any():
            self._log.obsolete_bytes += int(self._index.sizes[slots[had_record]].sum())
        if isinstance(content.data, np.ndarray):
            self._index.places[slots] = content.data
        else:
            self._index.places[slots], self._index.sizes[slots] = self._log.append(content.data)
        self.count += len(slots) - int(np.count_nonzero(_is_there(before)))
        self._index.flags[slots] = _flags_when_written(before, content.form, content.is_hash, marks)

    def _sharing_hashes(self, keys: list[Any], slots: Slots, were_there: list[bool] | None, is_hash: bool) -> set[int]:
        """The positions of keys that are kept apart, or must be because their slot belongs to another key."""
        flags = self._index.flags[slots]
        is_doubtful = flags != 0
        if is_hash:
            is_doubtful &= (flags & _IS_HASH) == 0
        if were_there is not None:
            is_doubtful &= ~np.array(were_there, bool)
        shared = {at for at, key in enumerate(keys) if key in self._apart} if self._apart else set()
        doubtful = np.flatnonzero(is_doubtful)
        if len(doubtful):
            names, _ = self._columns(slots[doubtful])
            shared |= {at for at, name in zip(doubtful.tolist(), names, strict=True) if not _is_same(name, keys[at])}
        if not is_hash and len(set(slots.tolist())) < len(keys):
            first: dict[int, int] = {}
            others = ((at, slot) for at, slot in enumerate(slots.tolist()) if at not in shared)
            shared |= {at for at, slot in others if first.setdefault(slot, at) != at}
        return shared

    def _put_apart(self, key: Any, value: Any, marks: np.uint8) -> None:
        value = load(value.content) if isinstance(value, _Encoded) else value
        flags = self._apart[key].flags if key in self._apart else np.zeros(1, np.uint8)
        self.count += 1 - int(_is_there(flags)[0])
        self._apart[key] = _Apart(_flags_when_written(flags, _PACKED, is_hash=False, marks=marks), value)

    def _compact(self) -> None:
        """Move the records that are still needed to a new log if more than half of the bytes are obsolete."""
        log = self._log
        if log.obsolete_bytes <= max(_MIN_OBSOLETE_BYTES, log.size // 2):
            return
        with self._reporting_failures():
            self._log = RecordLog(next(self._paths))
            for slots in self._index.with_flags(_is_record):
                for part in self._parts(slots):
                    records = log.read(self._index.places[part], self._index.sizes[part])
                    self._index.places[part], _ = self._log.append(records)
        log.close()

    # --- restoring -------------------------------------------------------------------------------------------------

    def load(self, entries: Mapping[Any, Any], extent: Extent) -> None:
        """Take over the entries of a snapshot of `extent`. Those whose value is REMOVED are removed."""
        self._take_out(
            [key for key, value in entries.items() if value is REMOVED],
            lambda flags: _flags_when_saved(_flags_when_removed(flags), Extent.CHANGES),
        )
        there = {key: value for key, value in entries.items() if value is not REMOVED}
        self._put(list(there), list(there.values()), None, _marks_of_loaded(extent))

    def load_packed(self, entries: bytes, extent: Extent) -> None:
        """The same for pickled entries, as `packed` gives them."""
        by_key = {load(name): (name, value) for name, value in unpack(entries)}
        keys = list(by_key)
        hashes, are_hashes = _hashes_of(keys)
        values = [_Encoded(value) for _, value in by_key.values()]
        records = list(itertools.starmap(pack, by_key.values()))
        with self._reporting_failures():
            slots = self._index.place(hashes)
            content = _Content(_PACKED, are_hashes, records)
            self._put_slots(keys, values, slots, None, content, _marks_of_loaded(extent))
        self.version += 1

    # --- snapshots -------------------------------------------------------------------------------------------------

    def changes(self, extent: Extent) -> Iterator[dict[Any, Any]]:
        """The contents of a snapshot of `extent`, in parts; the value of a removed entry is REMOVED."""
        for slots in self._index.with_flags(lambda flags: _is_wanted(flags, extent)):
            for part in self._parts(slots):
                found = zip(*self._columns(part), strict=True)
                yield {key: REMOVED if value is ABSENT else value for key, value in found}
        apart = {key: each for key, each in self._apart.items() if _is_wanted(each.flags, extent)[0]}
        if apart:
            yield {key: REMOVED if each.value is ABSENT else each.value for key, each in apart.items()}

    def _parts(self, slots: Slots) -> list[Slots]:
        """The slots in parts of limited numbers of entries and bytes."""
        sizes = np.maximum(self._index.sizes[slots], _PART_BYTES // _PART_ENTRIES)
        numbers = np.cumsum(sizes, dtype=np.int64) // _PART_BYTES
        return np.split(slots, 1 + np.flatnonzero(np.diff(numbers)))

    def packed(self) -> Iterator[bytes]:
        """All entries that are stored pickled, as they are, in parts."""
        for slots in self._index.with_flags(lambda flags: (flags & _FORM) == _PACKED):
            for part in self._parts(slots):
                yield b"".join(self._log.read(self._index.places[part], self._index.sizes[part]))

    def not_packed(self) -> Iterator[dict[Any, Any]]:
        """All other entries, in parts."""
        for slots in self._index.with_flags(lambda flags: _is_there(flags) & ((flags & _FORM) != _PACKED)):
            for part in self._parts(slots):
                yield dict(zip(*self._columns(part), strict=True))
        apart = {key: each.value for key, each in self._apart.items() if each.value is not ABSENT}
        if apart:
            yield apart

    def snapshot_written(self, extent: Extent) -> None:
        is_touched = (lambda flags: flags != 0) if extent is Extent.ALL else (lambda flags: (flags & _CHANGED) != 0)
        for slots in self._index.with_flags(is_touched):
            self._set_flags(slots, _flags_when_saved(self._index.flags[slots], extent))
        for key, each in list(self._apart.items()):
            each.flags = _flags_when_saved(each.flags, extent)
            if not each.flags[0]:
                del self._apart[key]
        self.has_changes = False

    # --- all entries -----------------------------------------------------------------------------------------------

    def scan(self) -> Iterator[list[tuple[Any, Any]]]:
        """All entries, in lists. If the store changes during the iteration, later lists show the changes."""
        position: int | None = 0
        while position is not None:
            slots, position = self._index.some(position, 2_000)
            slots = slots[_is_there(self._index.flags[slots])]
            if len(slots):
                yield list(zip(*self._columns(slots), strict=True))
        yield [(key, each.value) for key, each in self._apart.items() if each.value is not ABSENT]


def _is_same(key: Any, other: Any) -> bool:
    """True if both are the same key of a dictionary."""
    return key is other or bool(key == other)


def _write_parts(start: int, end: int) -> Iterator[slice]:
    """The positions from `start` to `end` in parts, each of which is written at once."""
    for at in range(start, end, _WRITTEN_AT_ONCE):
        yield slice(at, min(at + _WRITTEN_AT_ONCE, end))


def _marks_of_loaded(extent: Extent) -> np.uint8:
    """The flags that an entry from a snapshot of `extent` gets in addition to its form."""
    marks: np.uint8 = _IN_SNAPSHOT | (_IN_BASE if extent is Extent.ALL else _SINCE_BASE)
    return marks


def _hashes_of(keys: list[Any]) -> tuple[Hashes, bool]:
    """The hashes of keys, and True if all keys are integers that are their own hashes."""
    numbers = column_of_ints(keys)
    if numbers is not None and len(numbers):
        in_range = numbers.min() >= -_LARGEST_OWN_HASH and numbers.max() <= _LARGEST_OWN_HASH
        if in_range and not (numbers == -1).any():
            return numbers, True
    return np.fromiter(map(hash, keys), np.int64, len(keys)), False


def _content(keys: list[Any], values: list[Any], are_hashes: bool) -> _Content:
    """How entries are stored. With `are_hashes`, the keys are integers that are their own hashes."""
    inline = _inline(values) if are_hashes else None
    if inline is not None:
        return _Content(inline[0], True, inline[1])
    if are_hashes and _are_plain(values):
        return _Content(_MARSHALLED, True, list(map(marshal.dumps, values)))
    if _are_plain(keys) and _are_plain(values):
        return _Content(_MARSHALLED, False, list(map(marshal.dumps, zip(keys, values, strict=True))))
    entries = zip(keys, values, strict=True)
    return _Content(_PACKED, are_hashes, [pack(encode_state(key), encode_state(value)) for key, value in entries])


def _inline(values: list[Any]) -> tuple[int, NDArray[np.int64]] | None:
    """The form and the column of values that are stored in the index; None unless all values can be."""
    numbers = column_of_ints(values)
    if numbers is not None:
        return _INT, numbers
    floats = column_of_floats(values)
    return None if floats is None else (_FLOAT, floats.view(np.int64))


def _are_plain(values: list[Any]) -> bool:
    """True if all values survive marshalling unchanged. Subclasses do not, nor do buffers, which become bytes."""
    kinds = set(map(type, values))
    if tuple in kinds:
        kinds.discard(tuple)
        kinds.update(map(type, itertools.chain.from_iterable(each for each in values if type(each) is tuple)))
    return kinds <= _PLAIN
