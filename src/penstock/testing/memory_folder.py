"""A folder for checkpoints in memory, for tests."""

from __future__ import annotations

import contextlib
import io
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass(frozen=True)
class MemoryFolder:
    """A folder for checkpoints that keeps its files in a dictionary, by their path.

    Its methods are those of `penstock.checkpoint.folders.Folder`.
    """

    path: str = "memory:"
    files: dict[str, bytes] = field(default_factory=dict, compare=False)

    def within(self, name: str) -> MemoryFolder:
        return MemoryFolder(self.path_of(name), self.files)

    @property
    def uri(self) -> str:
        return self.path

    def path_of(self, name: str) -> str:
        return posixpath.join(self.path, name)

    def make(self) -> None:
        """Does nothing: a folder exists as soon as something is in it."""

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        buffer = io.BytesIO()
        yield buffer
        self.files[self.path_of(name)] = buffer.getvalue()

    def open(self, name: str) -> BinaryIO:
        return io.BytesIO(self.read(name))

    def size(self, name: str) -> int:
        return len(self.read(name))

    def read(self, name: str) -> bytes:
        try:
            return self.files[self.path_of(name)]
        except KeyError:
            raise FileNotFoundError(self.path_of(name)) from None

    def write(self, name: str, content: bytes) -> None:
        self.files[self.path_of(name)] = content

    def names(self) -> list[str]:
        prefix = f"{self.path}/"
        inside = [path.removeprefix(prefix) for path in self.files if path.startswith(prefix)]
        return sorted({path.partition("/")[0] for path in inside})

    def delete(self, name: str) -> None:
        self.files.pop(self.path_of(name), None)

    def delete_all(self) -> None:
        for path in [path for path in self.files if path.startswith(f"{self.path}/")]:
            del self.files[path]
