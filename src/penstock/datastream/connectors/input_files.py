"""Files to read: on this machine, or in a store that pyarrow reaches."""

from __future__ import annotations

import io
import os
import posixpath
import re
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")
_HIDDEN = (".", "_")


@dataclass(frozen=True)
class FoundFile:
    """A file: `root` leads to its file system, `path` to the file there."""

    root: str
    path: str
    size: int


class InputFiles(ABC):
    """Finds and opens files."""

    @abstractmethod
    def find(self, path: str) -> Iterator[tuple[str, int]]:
        """Path and size of a file, or of all files in and below a folder; hidden ones are left out."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """A stream that can seek."""


class LocalInputFiles(InputFiles):
    """Files on this machine, or on a file system that is mounted here."""

    def find(self, path: str) -> Iterator[tuple[str, int]]:
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no file or folder {path}")
        if os.path.isfile(path):
            yield path, os.path.getsize(path)
        for folder, folders, names in os.walk(path):
            folders[:] = [each for each in folders if not each.startswith(_HIDDEN)]
            for name in names:
                if not name.startswith(_HIDDEN):
                    found = os.path.join(folder, name)
                    yield found, os.path.getsize(found)

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")


class ArrowInputFiles(InputFiles):
    """Files in a store that pyarrow reaches, such as S3 or HDFS."""

    def __init__(self, file_system: Any) -> None:
        self._files = file_system

    def find(self, path: str) -> Iterator[tuple[str, int]]:
        from pyarrow.fs import FileSelector, FileType

        info = self._files.get_file_info(path)
        if info.type == FileType.NotFound:
            raise FileNotFoundError(f"there is no file or folder {path} on {self._files.type_name}")
        if info.type == FileType.File:
            yield info.path, info.size
            return
        for each in self._files.get_file_info(FileSelector(path, recursive=True)):
            below = posixpath.relpath(each.path, path)
            if each.type == FileType.File and not any(part.startswith(_HIDDEN) for part in below.split("/")):
                yield each.path, each.size

    def open(self, path: str) -> BinaryIO:
        # Buffered, because an Arrow file cannot read single lines.
        return cast(BinaryIO, io.BufferedReader(self._files.open_input_file(path)))


def input_files_at(path: str) -> tuple[InputFiles, str]:
    """The file system of a path or URI, and the path within it."""
    if not _SCHEME.match(path):
        return LocalInputFiles(), os.path.abspath(path)
    if path.lower().startswith("file:"):
        return LocalInputFiles(), urllib.parse.unquote(urllib.parse.urlsplit(path).path)
    from pyarrow import ArrowInvalid
    from pyarrow.fs import FileSystem

    try:
        file_system, within = FileSystem.from_uri(path)
    except ArrowInvalid as failure:
        raise ValueError(
            f"FileSource: cannot read {path!r}: {failure}; use a local path, file://, or a scheme that pyarrow knows, "
            f"such as s3://, gs:// or hdfs://"
        ) from failure
    return ArrowInputFiles(file_system), within


def find_files(paths: tuple[str, ...]) -> list[FoundFile]:
    """All files that the paths lead to, each once, by name."""
    found: dict[str, FoundFile] = {}
    for path in paths:
        files, within = input_files_at(path)
        root = path if isinstance(files, ArrowInputFiles) else ""
        for each, size in files.find(within):
            found[each] = FoundFile(root, each, size)
    return [found[path] for path in sorted(found)]


def open_file(root: str, path: str) -> BinaryIO:
    files = input_files_at(root)[0] if root else LocalInputFiles()
    try:
        return files.open(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"file {path} was there when the source looked for files, or when a checkpoint was taken, and is gone; put "
            f"it back, or start the job without state"
        ) from None
