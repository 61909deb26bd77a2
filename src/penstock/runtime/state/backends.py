"""State backends at run time: small factories that travel with the job and make the tables of each operator."""

from __future__ import annotations

import re
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.common import config_keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.common.local_folders import new_local_folder
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.slot_memory import memory_of, parse_memory_size
from penstock.runtime.state.table import StateTable
from penstock.runtime.timers import TIMER_TABLE_PREFIX

MakeTable = Callable[[str], StateTable]
"""Makes an empty table, given its name."""

_ON_HEAP = ("hashmap", "filesystem", "memory", "jobmanager")
_ON_DISK = ("rocksdb", "forst")


class KeyedBackend(Protocol):
    """How a subtask stores keyed state."""

    def tables(self, run_id: str, subtask_name: str, operator_id: str) -> MakeTable:
        """A factory for the tables of one operator in one subtask. Tables begin empty: old files are not read."""


@dataclass(frozen=True)
class HeapBackend:
    """State as Python objects in memory. Without `tracks_changes`, every snapshot holds all state."""

    tracks_changes: bool = True

    def tables(self, run_id: str, subtask_name: str, operator_id: str) -> MakeTable:
        return lambda name: HeapStateTable(name, self.tracks_changes)


@dataclass(frozen=True)
class DiskBackend:
    """State in local files, with the most recently used entries as Python objects in memory.

    Timers are in memory, as with Flink's HEAP timer service. `folders` are on local disks; without any, the temporary
    folder is used. `cache_entries` is the limit for each state of each subtask. `memory_bytes` is the limit for all
    plain keyed state of a slot, that is, for all but maps and the state of windows.
    """

    folders: tuple[str, ...] = ()
    cache_entries: int = config_keys.DISK_CACHE_ENTRIES.default
    tracks_changes: bool = True
    memory_bytes: int | None = None

    def tables(self, run_id: str, subtask_name: str, operator_id: str) -> MakeTable:
        # Imported here because only jobs with state on disk need them, and LMDB.
        from penstock.runtime.state.disk_table import DiskStateTable
        from penstock.runtime.state.entry_store import EntryStore

        slot = subtask_name.rpartition("-")[2]  # Subtasks of different vertices with the same index share a slot.
        memory = None if self.memory_bytes is None else memory_of(run_id, slot, self.memory_bytes)
        purpose = f"{run_id}-{subtask_name}-{operator_id}"
        parent = self._folder_for(purpose)
        store = EntryStore(lambda: new_local_folder(parent, purpose))

        def make(name: str) -> StateTable:
            if name.startswith(TIMER_TABLE_PREFIX):
                return HeapStateTable(name, self.tracks_changes)
            return DiskStateTable(
                name, store, self.cache_entries, self.tracks_changes, None if memory is None else memory.new_share()
            )

        return make

    def _folder_for(self, purpose: str) -> Path:
        folders = self.folders or (tempfile.gettempdir(),)
        return Path(folders[zlib.crc32(purpose.encode()) % len(folders)])


def backend_of(configuration: Configuration, tracks_changes: bool = True) -> KeyedBackend:
    """The configured state backend.

    >>> backend_of(Configuration().set_string("state.backend.type", "hashmap"))
    HeapBackend(tracks_changes=True)
    """
    kind = configuration.get(config_keys.STATE_BACKEND)
    if kind.lower() in _ON_HEAP:
        return HeapBackend(tracks_changes)
    if kind.lower() in _ON_DISK:
        return DiskBackend(
            _folders_of(configuration),
            _cache_entries_of(configuration),
            tracks_changes,
            _memory_bytes_of(configuration),
        )
    raise ConfigurationError(
        f"{config_keys.STATE_BACKEND.key} is {kind!r}, and there is no such state backend; use 'hashmap' for state in "
        f"memory or 'rocksdb' for state on local disks"
    )


def _folders_of(configuration: Configuration) -> tuple[str, ...]:
    listed = (configuration.get(config_keys.DISK_LOCAL_DIR) or "").replace("file://", "")
    folders = tuple(folder.strip() for folder in re.split(r"[,:]", listed) if folder.strip())
    for folder in folders:
        if not Path(folder).is_absolute():
            raise ConfigurationError(
                f"{config_keys.DISK_LOCAL_DIR.key} has {folder!r}, which is not an absolute path; working state needs "
                f"folders on a local disk"
            )
    return folders


def _cache_entries_of(configuration: Configuration) -> int:
    entries: int = configuration.get(config_keys.DISK_CACHE_ENTRIES)
    if entries < 1:
        raise ConfigurationError(f"{config_keys.DISK_CACHE_ENTRIES.key} must be positive, got {entries}")
    return entries


def _memory_bytes_of(configuration: Configuration) -> int | None:
    text = configuration.get(config_keys.DISK_MEMORY)
    size = None if text is None else parse_memory_size(text)
    if text is not None and not size:
        raise ConfigurationError(
            f"{config_keys.DISK_MEMORY.key} is {text!r}, which is not a memory size; write 512 mb or 1 gb, for example"
        )
    return size
