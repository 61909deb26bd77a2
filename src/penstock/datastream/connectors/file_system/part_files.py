"""The part files of a file sink: what is known of them, and how they are written."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from penstock.common.exceptions import JobExecutionError
from penstock.files.local_store import BUFFER_SIZE
from penstock.files.store import FileStore


@dataclass(frozen=True)
class PartFile:
    """A part file: hidden until it is committed, then called `path`. Its first `length` bytes count."""

    path: str
    hidden_path: str
    length: int


@dataclass(frozen=True)
class InProgressFileToCleanup:
    """A hidden file that was continued as a copy: it is removed when a checkpoint knows the copy."""

    hidden_path: str


FileCommittable = PartFile | InProgressFileToCleanup


class _Nowhere(io.RawIOBase):
    """Drops what is written to it."""

    def write(self, data: Any) -> int:
        return 0


class PartStream(io.BufferedIOBase):
    """What encoders and bulk writers write to: a file that knows its size without being asked.

    Closing it does nothing, because the sink closes the file when it is safe.
    """

    def __init__(self, file: BinaryIO, size: int = 0) -> None:
        self.file = file
        self.size = size

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.file.write(data)
        written = len(data) if type(data) is bytes else memoryview(data).nbytes
        self.size += written
        return written

    def tell(self) -> int:
        return self.size

    def discard(self) -> None:
        """Close the file. A bulk writer that is given up may still write the end of the file, which is dropped."""
        file, self.file = self.file, cast(BinaryIO, _Nowhere())
        file.close()

    def flush(self) -> None:
        """Does nothing: the file is flushed when a checkpoint is taken."""

    def close(self) -> None:
        """Does nothing: the sink closes the file."""


def resume_part(store: FileStore, path: str, length: int, new_path: str) -> BinaryIO:
    """A new file that begins with the first `length` bytes of another one, to be continued after them."""
    if not store.can_append:
        raise JobExecutionError(
            f"FileSink: the checkpoint has left {path} open, but on {store.name} files cannot be appended to; continue "
            f"with the path that the sink had before"
        )
    # Not the file itself: a process that is believed dead may wake up and write to it.
    size = store.size_of(path)
    if size is None or size < length:
        found = "it is gone" if size is None else f"it has only {size}"
        raise JobExecutionError(
            f"FileSink: the checkpoint needs the first {length} bytes of {path}, but {found}; the job wrote on "
            f"after this checkpoint, or the file was changed. Start from the latest checkpoint, or without state; with "
            f"RollingPolicy.on_checkpoint_rolling_policy() no checkpoint needs an open file"
        )
    file = store.create(new_path)
    with store.open(path) as old:
        for start in range(0, length, BUFFER_SIZE):
            file.write(old.read(min(BUFFER_SIZE, length - start)))
    return file
