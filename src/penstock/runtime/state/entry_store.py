"""Entries of state in a local file, an LMDB environment, for state that does not fit into memory.

The file is working memory and plays no part in recovery: nothing is synced to disk, and it is removed with its task. An
entry has a name (its key), a value, and an address: a prefix and a hash of the name. Entries with the same hash share
an address.
"""

from __future__ import annotations

import itertools
import operator
import shutil
import struct
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from penstock.common.exceptions import LocalStateError
from penstock.runtime.nan_keys import is_same_key
from penstock.runtime.state.contents import is_single_entry, load, pack, unpack

_PREFIX = struct.Struct(">I")
_FIRST_MAP_SIZE = 1 << 30
_TRANSACTION_ENTRIES = 10_000
"""A transaction keeps the pages it changes in memory until its end, and every entry may be on a different page."""
SCAN_ENTRIES = 1_000


Write = tuple[bytes, Any, bytes, bytes | None]
"""A change of an entry: its address, its name, its encoded name, and its encoded value, or None to remove the entry.

This is a plain tuple because making a named one takes as long as all other steps of a write in Python."""

Found = tuple[bytes, bytes]
"""The encoded name and value of an entry of the store."""


class EntryStore:
    """The store of one operator in one subtask. The file is created with the first write."""

    def __init__(self, make_folder: Callable[[], Path]) -> None:
        self.make_folder = make_folder
        self._folder: Path | None = None
        self._environment: Any = None
        self._reading: Any = None
        self.version = 0
        """Increases with every write."""
        self._prefixes = itertools.count(1)
        self._remove: Callable[[], Any] = lambda: None

    def new_prefix(self) -> bytes:
        """A prefix for the addresses of a new group of entries."""
        return _PREFIX.pack(next(self._prefixes))

    # --- reading ---------------------------------------------------------------------------------------------------

    def get(self, address: bytes, name: Any) -> bytes | None:
        """The value of an entry; None if there is no such entry."""
        entries = None if self._environment is None else self._transaction().get(address)
        if entries is not None:
            for found, value in unpack(entries):
                if is_same_key(load(found), name):
                    return value
        return None

    def scan(self, prefix: bytes, limit: int = SCAN_ENTRIES) -> Iterator[list[Found]]:
        """The entries whose addresses begin with `prefix`, in lists of `limit` or a few more.

        The store may change during the iteration. Each list holds the entries that exist when it is given.
        """
        return map(unpack, self.scan_packed(prefix, limit))

    def scan_packed(self, prefix: bytes, limit: int = SCAN_ENTRIES) -> Iterator[bytes]:
        """The same, with the entries of each list packed and concatenated."""
        start = prefix
        while self._environment is not None:
            found = self._addresses_from(start, prefix, limit)
            if found:
                yield b"".join([entries for _, entries in found])
            if len(found) < limit:
                return
            start = found[-1][0] + b"\0"

    def _addresses_from(self, start: bytes, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        with self._transaction().cursor() as cursor:
            found = list(itertools.islice(cursor, limit)) if cursor.set_range(start) else []
        if found and not found[-1][0].startswith(prefix):
            found = [each for each in found if each[0].startswith(prefix)]
        return found

    def _transaction(self) -> Any:
        # One transaction serves all reads until the next write, which ends it: LMDB cannot reuse the pages that an open
        # transaction sees.
        if self._reading is None:
            self._reading = self._environment.begin()
        return self._reading

    # --- writing ---------------------------------------------------------------------------------------------------

    def write(self, writes: list[Write]) -> int:
        """Write entries, each at most once; returns by how many entries the store grew."""
        writes.sort(key=operator.itemgetter(0))
        grown = 0
        for start in range(0, len(writes), _TRANSACTION_ENTRIES):
            part = writes[start : start + _TRANSACTION_ENTRIES]
            grown += self._in_transaction(partial(_write_all, writes=part))
        return grown

    def delete(self, prefix: bytes) -> None:
        """Remove all entries whose addresses begin with `prefix`."""
        while self._environment is not None:
            if self._in_transaction(partial(_delete_some, prefix=prefix)) < _TRANSACTION_ENTRIES:
                return

    def _in_transaction(self, change: Callable[[Any], int]) -> int:
        import lmdb

        self._end_reading()
        self.version += 1
        try:
            if self._environment is None:
                self._open()
            while True:
                try:
                    with self._environment.begin(write=True) as transaction:
                        return change(transaction)
                except lmdb.MapFullError:
                    self._environment.set_mapsize(2 * self._environment.info()["map_size"])
        except lmdb.Error as error:
            raise write_failure(self._folder, error) from error

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.abort()
            self._reading = None

    # --- life ------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        import lmdb  # Imported here because only jobs with state on disk need it.

        self._folder = made_folder(self.make_folder)
        # Not a writable map: with one, a full disk would kill the process. This way it is an error.
        self._environment = lmdb.open(
            str(self._folder), map_size=_FIRST_MAP_SIZE, sync=False, metasync=False, lock=False, readahead=False
        )
        # Also called when the store is garbage collected, or the process exits normally.
        self._remove = weakref.finalize(self, _remove_file, self._environment, self._folder)

    def close(self) -> None:
        """Remove the file."""
        self._reading = None
        self._environment = _ClosedEnvironment()
        self._remove()


def made_folder(make_folder: Callable[[], Path]) -> Path:
    try:
        return make_folder()
    except OSError as error:
        raise write_failure(None, error) from error


def write_failure(folder: Path | None, error: Exception) -> LocalStateError:
    """The error to raise; `folder` is None if `error` names the place."""
    place = "" if folder is None else f" to {folder}"
    return LocalStateError(
        f"working state cannot be written{place}: {error}; make room on the disk, or set "
        f"state.backend.rocksdb.localdir to a folder on another disk"
    )


class _ClosedEnvironment:
    """Takes the place of the environment of a closed store, so that the store does not seem to be empty."""

    def __getattr__(self, name: str) -> Any:
        raise LocalStateError("working state was used after its task was closed")


def _remove_file(environment: Any, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # It may be gone: other programs clean up temporary folders, too.
    environment.close()


def _write_all(transaction: Any, writes: list[Write]) -> int:
    grown = 0
    get, put = transaction.get, transaction.put
    for address, name, encoded, value in writes:
        before = get(address)
        if before is None:
            if value is not None:
                put(address, pack(encoded, value))
                grown += 1
        elif value is not None and is_single_entry(before, encoded):
            put(address, pack(encoded, value))
        else:
            grown += _write_among(transaction, before, (address, name, encoded, value))
    return grown


def _write_among(transaction: Any, before: bytes, write: Write) -> int:
    """Write an entry at an address that has entries already; returns by how many entries the store grew."""
    address, name, encoded, value = write
    entries = unpack(before)
    after = [each for each in entries if each[0] != encoded and not is_same_key(load(each[0]), name)]
    if value is not None:
        after.append((encoded, value))
    if after:
        transaction.put(address, b"".join(pack(each, held) for each, held in after))
    else:
        transaction.delete(address)
    return len(after) - len(entries)


def _delete_some(transaction: Any, prefix: bytes) -> int:
    with transaction.cursor() as cursor:
        cursor.set_range(prefix)
        deleted = 0
        while deleted < _TRANSACTION_ENTRIES and cursor.key().startswith(prefix):
            cursor.delete()
            deleted += 1
    return deleted
