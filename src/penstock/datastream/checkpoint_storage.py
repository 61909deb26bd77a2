"""Where checkpoints are kept."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.common import config_keys
from penstock.common.exceptions import UnsupportedFeatureError

__all__ = ["CheckpointStorage", "CustomCheckpointStorage", "FileSystemCheckpointStorage", "JobManagerCheckpointStorage"]

_DEFAULT_STATE_THRESHOLD = 20 * 1024
_DEFAULT_WRITE_BUFFER = 4096


def normalized_path(path: str) -> str:
    """A folder as Flink shows it: no doubled slashes, none at the end, `file:/` for `file:///`."""
    parts = re.fullmatch(r"([A-Za-z][\w+.-]*):(?://([^/]*))?(/.*)?", path)
    if parts is None:
        return _single_slashes(path)
    scheme, host, rest = parts[1], parts[2], parts[3] or ""
    return f"{scheme}:{'//' + host if host else ''}{_single_slashes(rest)}"


def _single_slashes(path: str) -> str:
    return re.sub("/+", "/", path).rstrip("/") or "/"


class CheckpointStorage(ABC):
    """Says where checkpoints go."""

    @abstractmethod
    def configuration(self) -> dict[str, str]:
        """The configuration entries that mean the same as this storage."""


@dataclass(frozen=True)
class JobManagerCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints in a temporary folder of the driver: for tests, since they are lost with the driver.

    :param checkpoint_path: Accepted as in Flink; checkpoints go to the temporary folder whatever it is.
    :param max_state_size: Accepted as in Flink; the size of state is not limited.
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    checkpoint_path: str | None = None
    max_state_size: int | None = None

    def __post_init__(self) -> None:
        if self.max_state_size is not None and self.max_state_size <= 0:
            raise ValueError(f"JobManagerCheckpointStorage: max_state_size must be positive, got {self.max_state_size}")

    def get_checkpoint_path(self) -> str | None:
        """The path that was given, in Flink's form; None if none was."""
        return None if self.checkpoint_path is None else normalized_path(self.checkpoint_path)

    def get_max_state_size(self) -> int:
        """The size that was given, in bytes; 5 MiB if none was."""
        return self.DEFAULT_MAX_STATE_SIZE if self.max_state_size is None else self.max_state_size

    def get_savepoint_path(self) -> str | None:
        """Always None: set the default savepoint folder with `execution.checkpointing.savepoint-dir`."""
        return None

    def configuration(self) -> dict[str, str]:
        entries = {config_keys.CHECKPOINT_STORAGE.key: "jobmanager"}
        if self.checkpoint_path is not None:
            entries[config_keys.CHECKPOINT_DIR.key] = self.checkpoint_path
        return entries

    def __str__(self) -> str:
        return f"JobManagerCheckpointStorage (checkpoints to JobManager) ( maxStateSize: {self.get_max_state_size()})"


@dataclass(frozen=True)
class FileSystemCheckpointStorage(CheckpointStorage):
    """Keeps checkpoints as files.

    :param checkpoint_path: Folder for checkpoints, local or a URI that all machines reach.
    :param file_state_size_threshold: Accepted as in Flink; state of any size goes into files.
    :param write_buffer_size: Accepted as in Flink, without effect.
    """

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    checkpoint_path: str | None = None
    file_state_size_threshold: int | None = None
    write_buffer_size: int = -1

    def __post_init__(self) -> None:
        if not self.checkpoint_path:
            raise ValueError("FileSystemCheckpointStorage: checkpoint_path must not be empty; give a folder or a URI")
        threshold = -1 if self.file_state_size_threshold is None else self.file_state_size_threshold
        if not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ValueError(
                f"FileSystemCheckpointStorage: file_state_size_threshold must be from 0 to "
                f"{self.MAX_FILE_STATE_THRESHOLD} bytes, or -1 for the default, got {threshold}"
            )
        if self.write_buffer_size < -1:
            raise ValueError(
                f"FileSystemCheckpointStorage: write_buffer_size must not be negative, or -1 for the default, "
                f"got {self.write_buffer_size}"
            )

    def get_checkpoint_path(self) -> str:
        """The folder for checkpoints, in Flink's form."""
        return normalized_path(str(self.checkpoint_path))

    def get_savepoint_path(self) -> str | None:
        """Always None: set the default savepoint folder with `execution.checkpointing.savepoint-dir`."""
        return None

    def get_min_file_size_threshold(self) -> int:
        """The threshold that was given, in bytes; 20 KiB if none was."""
        threshold = self.file_state_size_threshold
        return _DEFAULT_STATE_THRESHOLD if threshold is None or threshold < 0 else threshold

    def get_write_buffer_size(self) -> int:
        """The size that was given, in bytes; 4 KiB if none was."""
        return _DEFAULT_WRITE_BUFFER if self.write_buffer_size < 0 else self.write_buffer_size

    def configuration(self) -> dict[str, str]:
        return {
            config_keys.CHECKPOINT_STORAGE.key: "filesystem",
            config_keys.CHECKPOINT_DIR.key: str(self.checkpoint_path),
        }


class CustomCheckpointStorage(CheckpointStorage):
    """Wraps a Java class in PyFlink; there is none here."""

    def __init__(self, *args: Any) -> None:
        raise UnsupportedFeatureError(
            "CustomCheckpointStorage wraps a Java class, which cannot run here; use FileSystemCheckpointStorage "
            "with any path or URI that Spark's or Arrow's file systems reach"
        )

    def configuration(self) -> dict[str, str]:
        return {}
