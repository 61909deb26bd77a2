"""How a subtask holds its state while it works."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, ClassVar
from urllib.parse import urlsplit

from penstock.common import config_keys
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream.checkpoint_storage import (
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    normalized_path,
)

__all__ = [
    "CustomStateBackend",
    "EmbeddedRocksDBStateBackend",
    "FsStateBackend",
    "HashMapStateBackend",
    "MemoryStateBackend",
    "PredefinedOptions",
    "RocksDBStateBackend",
    "StateBackend",
]


class StateBackend(ABC):
    """Determines how working state is held. The checkpoint storage determines what is kept for recovery."""

    @abstractmethod
    def configuration(self) -> dict[str, str]:
        """The configuration entries that mean the same as this backend."""


class PredefinedOptions(Enum):
    """Tunings of RocksDB. Accepted as in Flink, without effect: there is no RocksDB to tune."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


@dataclass(frozen=True)
class HashMapStateBackend(StateBackend):
    """Holds state as Python objects in memory: fast, limited by memory.

    >>> _ = env.set_state_backend(HashMapStateBackend())
    """

    def configuration(self) -> dict[str, str]:
        return {config_keys.STATE_BACKEND.key: "hashmap"}


class EmbeddedRocksDBStateBackend(StateBackend):
    """Holds state on local disk, for state larger than memory, with the entries used last in memory.

    It takes the place of Flink's backend of that name, and uses LMDB. Timers are in memory.

    :param enable_incremental_checkpointing: Whether checkpoints hold changes only; None leaves it to the configuration.

    >>> _ = env.set_state_backend(EmbeddedRocksDBStateBackend())
    """

    DEFAULT_TRANSFER_THREADS = 4

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            raise TypeError(
                f"EmbeddedRocksDBStateBackend: enable_incremental_checkpointing must be True, False or None, "
                f"got {enable_incremental_checkpointing!r}"
            )
        self._incremental = enable_incremental_checkpointing
        self._db_storage_paths: tuple[str, ...] = ()
        self._predefined_options = PredefinedOptions.DEFAULT
        self._transfer_threads: int | None = None

    def set_db_storage_paths(self, *paths: str) -> None:
        """Choose local folders for working state; none means the executor's own temporary folders."""
        self._db_storage_paths = tuple(_local_path(path) for path in paths)

    def get_db_storage_paths(self) -> list[str]:
        """The folders for state on disk; empty if the default is used."""
        return list(self._db_storage_paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """The value given, which has no effect: every checkpoint writes only what changed."""
        return bool(self._incremental)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Accepted without effect: there is no RocksDB to tune."""
        if not isinstance(options, PredefinedOptions):
            raise TypeError(f"set_predefined_options: expected a PredefinedOptions, got {options!r}")
        self._predefined_options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """The value set by `set_predefined_options`."""
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        """Refused: an options factory is a Java class."""
        raise UnsupportedFeatureError(
            f"set_options({options_factory_class_name!r}): a Java options factory cannot run here; "
            "use set_predefined_options(...) or state.backend.rocksdb.* configuration keys"
        )

    def get_options(self) -> str | None:
        """Always None: there are no Java options factories here."""
        return None

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Accepted without effect: each subtask writes its own file."""
        if number_of_transfering_threads <= 0:
            raise ValueError(
                f"set_number_of_transfer_threads: the number must be positive, got {number_of_transfering_threads}"
            )
        self._transfer_threads = number_of_transfering_threads

    def get_number_of_transfer_threads(self) -> int:
        """The value set by `set_number_of_transfer_threads`; 4 if none was."""
        return self._transfer_threads or self.DEFAULT_TRANSFER_THREADS

    def configuration(self) -> dict[str, str]:
        entries = {config_keys.STATE_BACKEND.key: "rocksdb"}
        if self._incremental is not None:
            entries[config_keys.INCREMENTAL_CHECKPOINTS.key] = str(self._incremental).lower()
        if self._db_storage_paths:
            entries["state.backend.rocksdb.localdir"] = ",".join(self._db_storage_paths)
        if self._predefined_options is not PredefinedOptions.DEFAULT:
            entries["state.backend.rocksdb.predefined-options"] = self._predefined_options.name
        if self._transfer_threads is not None:
            entries["state.backend.rocksdb.checkpoint.transfer.thread.num"] = str(self._transfer_threads)
        return entries

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(localRocksDbDirectories={list(self._db_storage_paths) or None}, "
            f"enableIncrementalCheckpointing={self._incremental}, "
            f"numberOfTransferThreads={self.get_number_of_transfer_threads()})"
        )


@dataclass(frozen=True)
class MemoryStateBackend(HashMapStateBackend):
    """The old name for state in memory, with checkpoints in a temporary folder of the driver."""

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE

    checkpoint_path: str | None = None
    savepoint_path: str | None = None
    max_state_size: int | None = None
    using_asynchronous_snapshots: bool | None = None

    @property
    def checkpoint_storage(self) -> JobManagerCheckpointStorage:
        """Where checkpoints go."""
        return JobManagerCheckpointStorage(self.checkpoint_path, self.max_state_size)

    def get_max_state_size(self) -> int:
        """The size that was given, in bytes; 5 MiB if none was. It limits nothing."""
        return self.checkpoint_storage.get_max_state_size()

    def is_using_asynchronous_snapshots(self) -> bool:
        """The value given, True if none was. It has no effect."""
        return self.using_asynchronous_snapshots is not False

    def configuration(self) -> dict[str, str]:
        return {**super().configuration(), **self.checkpoint_storage.configuration(), **_savepoints(self)}


@dataclass(frozen=True)
class FsStateBackend(HashMapStateBackend):
    """The old name for state in memory and checkpoints in files."""

    checkpoint_directory_uri: str | None = None
    default_savepoint_directory_uri: str | None = None
    file_state_size_threshold: int | None = None
    write_buffer_size: int | None = None
    using_asynchronous_snapshots: bool | None = None

    @property
    def checkpoint_storage(self) -> FileSystemCheckpointStorage:
        """Where checkpoints go."""
        buffer_size = -1 if self.write_buffer_size is None else self.write_buffer_size
        return FileSystemCheckpointStorage(self.checkpoint_directory_uri, self.file_state_size_threshold, buffer_size)

    @property
    def savepoint_path(self) -> str | None:
        """Where savepoints go by default; None if that was not given."""
        return self.default_savepoint_directory_uri

    def get_checkpoint_path(self) -> str | None:
        """The folder for checkpoints, in Flink's form."""
        return self.checkpoint_storage.get_checkpoint_path()

    def get_min_file_size_threshold(self) -> int:
        """The threshold that was given, in bytes; 20 KiB if none was. It has no effect."""
        return self.checkpoint_storage.get_min_file_size_threshold()

    def get_write_buffer_size(self) -> int:
        """The size that was given, in bytes; 4 KiB if none was. It has no effect."""
        return self.checkpoint_storage.get_write_buffer_size()

    def is_using_asynchronous_snapshots(self) -> bool:
        """The value given, True if none was. It has no effect."""
        return self.using_asynchronous_snapshots is not False

    def configuration(self) -> dict[str, str]:
        return {**super().configuration(), **self.checkpoint_storage.configuration(), **_savepoints(self)}


def _savepoints(backend: MemoryStateBackend | FsStateBackend) -> dict[str, str]:
    folder = backend.savepoint_path
    return {} if folder is None else {config_keys.SAVEPOINT_DIR.key: folder}


class RocksDBStateBackend(EmbeddedRocksDBStateBackend):
    """The old name for state on disk and checkpoints in files."""

    def __init__(
        self,
        checkpoint_data_uri: str | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: StateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        if checkpoint_stream_backend is None:
            checkpoint_stream_backend = FsStateBackend(checkpoint_data_uri)
        self._checkpoint_backend = checkpoint_stream_backend

    def get_checkpoint_backend(self) -> StateBackend:
        """The old backend that says where checkpoints go."""
        return self._checkpoint_backend

    def set_number_of_transfering_threads(self, number_of_transfering_threads: int) -> None:
        """The old name of `set_number_of_transfer_threads`."""
        self.set_number_of_transfer_threads(number_of_transfering_threads)

    def get_number_of_transfering_threads(self) -> int:
        """The old name of `get_number_of_transfer_threads`."""
        return self.get_number_of_transfer_threads()

    def configuration(self) -> dict[str, str]:
        return {**self._checkpoint_backend.configuration(), **super().configuration()}


class CustomStateBackend(StateBackend):
    """Wraps a Java class in PyFlink; there is none here."""

    def __init__(self, *args: Any) -> None:
        raise UnsupportedFeatureError(
            "CustomStateBackend wraps a Java class, which cannot run here; use HashMapStateBackend for state in memory "
            "or EmbeddedRocksDBStateBackend for state on disk"
        )

    def configuration(self) -> dict[str, str]:
        return {}


def _local_path(path: str) -> str:
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        raise ValueError(f"set_db_storage_paths: {path!r} is not local; working state needs a local folder")
    if not PurePosixPath(parts.path).is_absolute():
        raise ValueError(f"set_db_storage_paths: {path!r} is relative; give an absolute path")
    return normalized_path(parts.path)
