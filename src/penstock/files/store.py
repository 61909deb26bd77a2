"""What can be done with files, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO


class FileStore(ABC):
    """A place for files. Paths are the store's: absolute on this machine, `bucket/folder/file` in an object store."""

    name: str
    """What people call this kind of store."""
    can_append: bool
    """True if an unfinished file can be copied up to some byte and continued."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """A file to read, buffered, that can seek; FileNotFoundError if there is none."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """A new file, with the folders above it. Whether a half-written one can be seen depends on the store."""

    @abstractmethod
    def create_whole(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A file that appears under its name only when it is closed without error; replaces an existing one."""

    @abstractmethod
    def sync(self, file: BinaryIO, path: str) -> None:
        """Return when everything written so far would survive a power failure."""

    @abstractmethod
    def sync_folder(self, folder: str) -> None:
        """Return when new names in the folder would survive a power failure."""

    @abstractmethod
    def size_of(self, path: str) -> int | None:
        """The size of a file; None if there is none."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The names of the files and folders directly in a folder; none if it does not exist."""

    @abstractmethod
    def find(self, path: str, hidden: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
        """Path and size of a file, or of all files in and below a folder.

        Files and folders whose names begin with one of `hidden` are left out. FileNotFoundError if there is nothing.
        """

    @abstractmethod
    def rename(self, path: str, new_path: str) -> None:
        """Give a file a new name in one step; replaces an existing one."""

    @abstractmethod
    def make_folder(self, path: str) -> None:
        """Make a folder and all above it, where they are missing."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; FileNotFoundError if there is none."""

    @abstractmethod
    def delete_folder(self, path: str) -> None:
        """Remove a folder with everything in it; does nothing if it does not exist."""
