"""What can be done with files, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO


class FileStore(ABC):
    """Paths are those of the store: absolute ones on this machine, `bucket/folder/file` in an object store."""

    name: str
    """How people call the kind of store."""
    can_append: bool
    """True if a file that was left open can be copied up to some byte and written on."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """A file to read, buffered, that can seek; FileNotFoundError if there is none."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """A new file, with the folders above it. Whether a half-written one can be seen depends on the store."""

    @abstractmethod
    def create_whole(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A file that is there under its name once it is closed without error, and not before; replaces another."""

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
        """The files and folders directly in it; none if it does not exist."""

    @abstractmethod
    def find(self, path: str, hidden: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
        """Path and size of a file, or of all files in and below a folder.

        Files and folders whose names begin with one of `hidden` are left out. FileNotFoundError if there is nothing.
        """

    @abstractmethod
    def rename(self, path: str, new_path: str) -> None:
        """Give a file its other name, in one step; replaces another."""

    @abstractmethod
    def make_folder(self, path: str) -> None:
        """Have the folder, and all above it."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; FileNotFoundError if there is none."""

    @abstractmethod
    def delete_folder(self, path: str) -> None:
        """Remove a folder with everything in it; one that is not there is fine."""
