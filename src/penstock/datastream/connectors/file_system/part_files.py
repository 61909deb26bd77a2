"""Where a file sink's part files are: on this machine, or in a store that pyarrow reaches."""

from __future__ import annotations

import io
import os
import posixpath
import re
import shutil
import urllib.parse
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from penstock.common.exceptions import JobExecutionError

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")
_BUFFER_SIZE = 1 << 18
_STORES_WITHOUT_FOLDERS = {"s3", "gcs", "abfs"}


@dataclass(frozen=True)
class PartFile:
    """A part file: hidden until it is committed, then called `path`. Its first `length` bytes count."""

    path: str
    hidden_path: str
    length: int


@dataclass(frozen=True)
class InProgressFileToCleanup:
    """A hidden file that was gone on with as a copy: it goes when a checkpoint knows the copy."""

    hidden_path: str


FileCommittable = PartFile | InProgressFileToCleanup


class _Nowhere(io.RawIOBase):
    """Takes what nobody wants any more."""

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
        """Close the file. A bulk writer that is given up may still want to end it; that goes nowhere."""
        file, self.file = self.file, cast(BinaryIO, _Nowhere())
        file.close()

    def flush(self) -> None:
        """Nothing to do: the file is flushed when a checkpoint is taken."""

    def close(self) -> None:
        """Nothing to do: see the class."""


class PartFileSystem(ABC):
    """Creates, hides and shows part files."""

    can_resume: bool
    """True if a file that was left open can be cut and written on."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """A new file, with the folders above it."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """A file, to read it."""

    @abstractmethod
    def resume(self, path: str, length: int, new_path: str) -> BinaryIO:
        """A new file that begins with the first `length` bytes of another one, to write on behind them."""

    @abstractmethod
    def sync(self, file: BinaryIO, path: str) -> None:
        """Return when everything written so far would survive a power failure."""

    @abstractmethod
    def size_of(self, path: str) -> int | None:
        """The size of a file; None if there is none."""

    @abstractmethod
    def rename(self, path: str, new_path: str) -> None:
        """Give a file its other name, in one step."""

    @abstractmethod
    def sync_folder(self, folder: str) -> None:
        """Return when new names in the folder would survive a power failure."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file."""

    @abstractmethod
    def delete_folder(self, path: str) -> None:
        """Remove a folder with everything in it, if it is there."""


class LocalPartFiles(PartFileSystem):
    """Files on this machine, or on a file system that is mounted here."""

    can_resume = True

    def create(self, path: str) -> BinaryIO:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "xb", buffering=_BUFFER_SIZE)

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    def resume(self, path: str, length: int, new_path: str) -> BinaryIO:
        # Not the file itself: a process that everybody takes for dead may wake up and write to it.
        size = self.size_of(path)
        if size is None or size < length:
            found = "it is gone" if size is None else f"it has only {size}"
            raise JobExecutionError(
                f"FileSink: the checkpoint needs the first {length} bytes of {path}, but {found}; the job wrote on "
                f"after this checkpoint, or the file was changed. Start from the latest checkpoint, or without state"
            )
        file = self.create(new_path)
        with open(path, "rb") as old:
            for start in range(0, length, _BUFFER_SIZE):
                file.write(old.read(min(_BUFFER_SIZE, length - start)))
        return file

    def sync(self, file: BinaryIO, path: str) -> None:
        file.flush()
        os.fsync(file.fileno())
        self.sync_folder(os.path.dirname(path))

    def size_of(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def rename(self, path: str, new_path: str) -> None:
        os.replace(path, new_path)

    def sync_folder(self, folder: str) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def delete(self, path: str) -> None:
        os.remove(path)

    def delete_folder(self, path: str) -> None:
        if os.path.isdir(path):
            shutil.rmtree(path)


class ArrowPartFiles(PartFileSystem):
    """Files in a store that pyarrow reaches, such as S3 or HDFS. A file is complete there when it is closed."""

    can_resume = False

    def __init__(self, file_system: Any) -> None:
        self._files = file_system

    def create(self, path: str) -> BinaryIO:
        if self._files.type_name not in _STORES_WITHOUT_FOLDERS:
            self._files.create_dir(posixpath.dirname(path), recursive=True)
        stream: BinaryIO = self._files.open_output_stream(path)
        return stream

    def open(self, path: str) -> BinaryIO:
        stream: BinaryIO = self._files.open_input_stream(path)
        return stream

    def resume(self, path: str, length: int, new_path: str) -> BinaryIO:
        raise JobExecutionError(
            f"FileSink: the checkpoint has left {path} open, but on {self._files.type_name} files cannot be written "
            f"on; go on with the path that the sink had before"
        )

    def sync(self, file: BinaryIO, path: str) -> None:
        """Closing the file, which follows, is what makes it safe."""

    def size_of(self, path: str) -> int | None:
        size: int | None = self._files.get_file_info(path).size
        return size

    def rename(self, path: str, new_path: str) -> None:
        self._files.move(path, new_path)

    def sync_folder(self, folder: str) -> None:
        """The store does so itself."""

    def delete(self, path: str) -> None:
        self._files.delete_file(path)

    def delete_folder(self, path: str) -> None:
        from pyarrow.fs import FileType

        if self._files.get_file_info(path).type == FileType.Directory:
            self._files.delete_dir(path)


def absolute_path(base_path: str) -> str:
    """Subtasks may run in another working folder, so a relative path is made absolute where the program runs."""
    return base_path if _SCHEME.match(base_path) else os.path.abspath(base_path)


def part_files_at(base_path: str) -> tuple[PartFileSystem, str]:
    """The file system of a path or URI, and the path within it."""
    if not _SCHEME.match(base_path):
        return LocalPartFiles(), base_path.rstrip("/") or "/"
    if base_path.lower().startswith("file:"):
        return LocalPartFiles(), urllib.parse.unquote(urllib.parse.urlsplit(base_path).path).rstrip("/") or "/"
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSystem

    try:
        file_system, path = FileSystem.from_uri(base_path)
    except ArrowInvalid as failure:
        raise ValueError(
            f"FileSink: cannot write to {base_path!r}: {failure}; use a local path, file://, or a scheme that pyarrow "
            f"knows, such as s3://, gs:// or hdfs://"
        ) from failure
    return ArrowPartFiles(file_system), path.rstrip("/")
