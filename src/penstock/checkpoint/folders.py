"""Folders for checkpoints: on a local path, or on any file system that Arrow reaches by a URI."""

from __future__ import annotations

import contextlib
import os
import posixpath
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast
from urllib.parse import unquote, urlsplit

from penstock.common.exceptions import CheckpointError
from penstock.common.private_folder import make_folders, open_new
from penstock.runtime.saved_state import StateFolder


class Folder(StateFolder, Protocol):
    """A folder that holds files by name; names may lead into folders within it (`chk-1/_metadata`).

    A file is there under its name only when it is complete. Can be pickled.
    """

    def within(self, name: str) -> Folder: ...

    @property
    def uri(self) -> str: ...

    def make(self) -> None:
        """Have the folder, and all above it."""

    def read(self, name: str) -> bytes: ...

    def write(self, name: str, content: bytes) -> None: ...

    def names(self) -> list[str]:
        """The files and folders directly in it; none if it does not exist."""

    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is fine."""

    def delete_all(self) -> None:
        """Remove the folder and all in it; one that is not there is fine."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder that the driver and all executors reach by the same path.

    What is made in it is for its user alone: it holds state, and pickles that run code where they are read.
    """

    path: str
    is_durable: bool = field(default=True, compare=False)
    """True if a file that is there stays there when the power fails: the one before is removed for it."""

    def within(self, name: str) -> LocalFolder:
        return LocalFolder(os.path.join(self.path, name), self.is_durable)

    @property
    def uri(self) -> str:
        return Path(self.path).absolute().as_uri()

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def make(self) -> None:
        new = make_folders(self.path)
        if self.is_durable:
            for each in new:
                _sync_folder(each.parent)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        partial = f"{self.path_of(name)}.{secrets.token_hex(4)}.partial"
        try:
            with open_new(partial) as out:
                yield out
                if self.is_durable:
                    out.flush()
                    os.fsync(out.fileno())
            os.replace(partial, self.path_of(name))
            if self.is_durable:
                _sync_folder(Path(self.path_of(name)).parent)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)
            raise

    def open(self, name: str) -> BinaryIO:
        return open(self.path_of(name), "rb")

    def size(self, name: str) -> int:
        return os.path.getsize(self.path_of(name))

    def read(self, name: str) -> bytes:
        with self.open(name) as content:
            return content.read()

    def write(self, name: str, content: bytes) -> None:
        with self.create(name) as out:
            out.write(content)

    def names(self) -> list[str]:
        try:
            return os.listdir(self.path)
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path_of(name))

    def delete_all(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.path)


def _sync_folder(folder: Path) -> None:
    """Return when new names in the folder would survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class ArrowFolder:
    """A folder on a file system of Arrow's: `s3://bucket/path`, `gs://...`, `hdfs://...`, or one of fsspec's."""

    uri: str

    def within(self, name: str) -> ArrowFolder:
        return ArrowFolder(posixpath.join(self.uri, name))

    def path_of(self, name: str) -> str:
        return posixpath.join(self.uri, name)

    def _at(self, name: str = "") -> tuple[Any, str]:
        files, path = arrow_file_system(self.uri)
        return files, posixpath.join(path, name) if name else path

    def make(self) -> None:
        files, path = self._at()
        files.create_dir(path, recursive=True)

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        # Object stores show an object only when it is whole. On others a file that was cut off has no footer, or a
        # checksum that does not match: it is found out when it is read, and no complete checkpoint refers to it.
        files, path = self._at(name)
        partial = f"{path}.{secrets.token_hex(4)}.partial"
        try:
            with files.open_output_stream(partial) as out:
                yield cast(BinaryIO, out)
            files.move(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):  # The first error is the one that counts.
                files.delete_file(partial)
            raise

    def open(self, name: str) -> BinaryIO:
        files, path = self._at(name)
        return cast(BinaryIO, files.open_input_file(path))

    def size(self, name: str) -> int:
        files, path = self._at(name)
        found = files.get_file_info(path)
        if not found.is_file:
            raise FileNotFoundError(self.path_of(name))
        return int(found.size)

    def read(self, name: str) -> bytes:
        with self.open(name) as content:
            return content.read()

    def write(self, name: str, content: bytes) -> None:
        with self.create(name) as out:
            out.write(content)

    def names(self) -> list[str]:
        from pyarrow.fs import FileSelector

        files, path = self._at()
        found = files.get_file_info(FileSelector(path, allow_not_found=True))
        return [posixpath.basename(each.path.rstrip("/")) for each in found]

    def delete(self, name: str) -> None:
        files, path = self._at(name)
        with contextlib.suppress(FileNotFoundError):
            files.delete_file(path)

    def delete_all(self) -> None:
        files, path = self._at()
        with contextlib.suppress(FileNotFoundError):
            files.delete_dir(path)


def folder_at(uri: str) -> Folder:
    """The folder that a user named by a path or a URI."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file") or len(parts.scheme) == 1:  # A drive's letter is no scheme.
        path = unquote(parts.path) if parts.scheme == "file" else uri
        return LocalFolder(os.path.abspath(os.path.expanduser(path)))
    arrow_file_system(uri)
    return ArrowFolder(uri)


def arrow_file_system(uri: str) -> tuple[Any, str]:
    """Arrow's file system for `uri`, or fsspec's, and the path on it."""
    import pyarrow
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    try:
        found: tuple[Any, str] = FileSystem.from_uri(uri)
        return found
    except pyarrow.ArrowInvalid as unknown:
        try:
            import fsspec  # type: ignore[import-not-found, import-untyped, unused-ignore]

            files, path = fsspec.core.url_to_fs(uri)
        except (ImportError, ValueError) as error:
            raise CheckpointError(
                f"{uri}: no file system is known for it ({unknown}; {error}); use a local path, or a URI that Arrow or "
                f"fsspec knows, such as s3://bucket/folder"
            ) from error
        return PyFileSystem(FSSpecHandler(files)), path
