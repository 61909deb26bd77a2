"""Folders for checkpoints: on a local path, or in any store that a URI leads to."""

from __future__ import annotations

import contextlib
import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from penstock.common.abandoned_calls import check_wanted
from penstock.common.exceptions import CheckpointError
from penstock.files.arrow_store import ArrowStore
from penstock.files.local_store import LocalStore
from penstock.files.locations import is_local, local_path, location_within
from penstock.files.store import FileStore
from penstock.runtime.saved_state import StateFolder


class Folder(StateFolder, Protocol):
    """A folder that holds files by name; names may lead into folders within it (`chk-1/_metadata`).

    A file appears under its name only when it is complete. Can be pickled.
    """

    def within(self, name: str) -> Folder: ...

    @property
    def uri(self) -> str: ...

    def make(self) -> None:
        """Create the folder and its parents; one that exists is fine."""

    def read(self, name: str) -> bytes: ...

    def write(self, name: str, content: bytes) -> None: ...

    def names(self) -> list[str]:
        """The files and folders directly in it; none if it does not exist."""

    def delete(self, name: str) -> None:
        """Remove a file; a missing one is fine."""

    def delete_all(self) -> None:
        """Remove the folder and all in it; a missing one is fine."""


class _FolderOfStore(ABC):
    """What a folder does, as calls to its store. Nothing changes in it for a job that has ended without waiting."""

    @abstractmethod
    def _at(self, name: str = "") -> tuple[FileStore, str]:
        """The store, and the path there of the folder or of something in it."""

    @abstractmethod
    def path_of(self, name: str) -> str: ...

    def make(self) -> None:
        check_wanted()
        store, path = self._at()
        store.make_folder(path)

    def create(self, name: str) -> AbstractContextManager[BinaryIO]:
        store, path = self._at(name)
        return _created(store, path)

    def open(self, name: str) -> BinaryIO:
        store, path = self._at(name)
        return store.open(path)

    def size(self, name: str) -> int:
        store, path = self._at(name)
        size = store.size_of(path)
        if size is None:
            raise FileNotFoundError(self.path_of(name))
        return size

    def read(self, name: str) -> bytes:
        with self.open(name) as content:
            return content.read()

    def write(self, name: str, content: bytes) -> None:
        with self.create(name) as out:
            out.write(content)

    def names(self) -> list[str]:
        store, path = self._at()
        return store.names(path)

    def delete(self, name: str) -> None:
        check_wanted()
        store, path = self._at(name)
        with contextlib.suppress(FileNotFoundError):
            store.delete(path)

    def delete_all(self) -> None:
        check_wanted()
        store, path = self._at()
        store.delete_folder(path)


@contextlib.contextmanager
def _created(store: FileStore, path: str) -> Iterator[BinaryIO]:
    check_wanted()
    with store.create_whole(path) as out:
        yield out
        check_wanted()  # When this block ends, the file can be seen.


@dataclass(frozen=True)
class LocalFolder(_FolderOfStore):
    """A folder that the driver and all executors reach by the same path.

    What is made in it is for its user alone: it holds state, and pickles that run code where they are read.
    """

    path: str
    is_durable: bool = field(default=True, compare=False)
    """True if files must survive a power failure: their predecessors are removed once they are written."""

    def within(self, name: str) -> LocalFolder:
        return LocalFolder(os.path.join(self.path, name), self.is_durable)

    @property
    def uri(self) -> str:
        return Path(self.path).absolute().as_uri()

    def path_of(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _at(self, name: str = "") -> tuple[FileStore, str]:
        store = LocalStore(is_private=True, is_durable=self.is_durable)
        return store, self.path_of(name) if name else self.path


@dataclass(frozen=True)
class ArrowFolder(_FolderOfStore):
    """A folder on a file system of Arrow's: `s3://bucket/path`, `gs://...`, `hdfs://...`, or one of fsspec's.

    A URI may end with settings of the store: `s3://bucket/path?endpoint_override=localhost:9000&scheme=http`.

    Where a store shows a file that was cut off, the file lacks its footer, or its checksum does not match. Reading
    detects that, and no complete checkpoint refers to such a file.
    """

    uri: str

    def within(self, name: str) -> ArrowFolder:
        return ArrowFolder(self.path_of(name))

    def path_of(self, name: str) -> str:
        return location_within(self.uri, name)

    def _at(self, name: str = "") -> tuple[FileStore, str]:
        store, path = ArrowStore.at(self.uri)
        return store, posixpath.join(path, name) if name else path


def numbers_after(prefix: str, names: Iterable[str]) -> list[int]:
    """The numbers in names that consist of the prefix and a number."""
    ends = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return [int(end) for end in ends if end.isdigit()]


def folder_at(uri: str) -> Folder:
    """The folder that a user named by a path or a URI."""
    if is_local(uri):
        return LocalFolder(local_path(uri))
    try:
        ArrowStore.at(uri)
    except ValueError as unknown:
        raise CheckpointError(str(unknown)) from unknown
    return ArrowFolder(uri)
