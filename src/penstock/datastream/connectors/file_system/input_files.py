"""Files to read: on this machine, or in a store that pyarrow reaches."""

from __future__ import annotations

import errno
import io
import logging
import os
import posixpath
import re
import stat
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")
_HIDDEN = (".", "_")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FoundFile:
    """A file: `root` leads to its file system, `path` to the file there."""

    root: str
    path: str
    size: int

    @property
    def uri(self) -> str:
        return uri_of(self.root, self.path)


class InputFiles(ABC):
    """Finds and opens files."""

    @abstractmethod
    def find(self, path: str) -> Iterator[tuple[str, int]]:
        """Path and size of a file, or of all files in and below a folder; hidden ones are left out."""

    @abstractmethod
    def open(self, path: str) -> BinaryIO:
        """A stream that can seek."""


class LocalInputFiles(InputFiles):
    """Files on this machine, or on a file system that is mounted here. Links are followed."""

    def find(self, path: str) -> Iterator[tuple[str, int]]:
        try:
            about = os.stat(path)
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file or folder {path}") from None
        if stat.S_ISDIR(about.st_mode):
            yield from self._below(path, frozenset([_identity(about)]))
        else:
            yield path, about.st_size

    def _below(self, folder: str, above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, int]]:
        """The files of a folder; `above` are this folder and those around it, which a link may lead back to."""
        for name in os.listdir(folder):
            if name.startswith(_HIDDEN):
                continue
            path = os.path.join(folder, name)
            about = _stat(path)
            if about is None:
                continue
            if stat.S_ISREG(about.st_mode):
                yield path, about.st_size
            elif stat.S_ISDIR(about.st_mode) and _identity(about) not in above:
                try:
                    yield from self._below(path, above | {_identity(about)})
                except (FileNotFoundError, NotADirectoryError):
                    _log.debug("%s was removed while it was looked through", path)

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")


def _stat(path: str) -> os.stat_result | None:
    """About a file or folder; None if it is gone since its folder was listed, or if a link leads nowhere."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            _log.info("%s is left out: it is a link to nothing", path)
        return None
    except OSError as failure:
        if failure.errno != errno.ELOOP:
            raise
        _log.info("%s is left out: it is a link to itself", path)
        return None


def _identity(about: os.stat_result) -> tuple[int, int]:
    return about.st_dev, about.st_ino


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


def is_local(path: str) -> bool:
    """True if a path or URI leads to a file on this machine."""
    return not _SCHEME.match(path) or path.lower().startswith("file:")


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


def uri_of(root: str, path: str) -> str:
    """What tells a file apart from all others, on any file system: its URI, or for local files its path.

    Passwords and options are left out, but for the address of the store.

    >>> uri_of("hdfs://nn1:8020/data", "/data/a.txt")
    'hdfs://nn1:8020/data/a.txt'
    >>> uri_of("s3://key:secret@bucket/logs?region=eu-west-1", "bucket/logs/a.txt")
    's3://bucket/logs/a.txt'
    """
    if not root:
        return path
    parts = urllib.parse.urlsplit(root)
    user, _, host = parts.netloc.rpartition("@")
    # In `container@account` of Azure's stores the first part is no secret, and tells stores apart.
    authority = f"{user}@{host}" if user and parts.scheme.startswith(("abfs", "wasb")) else host
    bucket = next((each for each in (host, user) if each and path.startswith(f"{each}/")), "")
    endpoint = urllib.parse.parse_qs(parts.query).get("endpoint_override")
    store = f"?endpoint_override={endpoint[0]}" if endpoint else ""
    return f"{parts.scheme}://{authority}/{path[len(bucket) :].lstrip('/')}{store}"


def is_below(root: str, path: str) -> bool:
    """True if a path within a file system may have been found by looking at `root`, itself a path or URI."""
    if is_local(root):
        tops = [input_files_at(root)[1]]
    else:
        parts = urllib.parse.urlsplit(root)
        user, _, host = parts.netloc.rpartition("@")
        tops = [parts.path] if path.startswith("/") else [f"{each}{parts.path}" for each in (host, user) if each]
    return any(path == top or path.startswith(f"{top.rstrip('/')}/") for top in tops)


def find_files(paths: tuple[str, ...]) -> list[FoundFile]:
    """All files that the paths lead to, each once, by name."""
    found: dict[str, FoundFile] = {}
    for path in paths:
        files, within = input_files_at(path)
        root = path if isinstance(files, ArrowInputFiles) else ""
        for each, size in files.find(within):
            file = FoundFile(root, each, size)
            found[file.uri] = file
    return sorted(found.values(), key=lambda file: (file.path, file.uri))


def open_file(root: str, path: str) -> BinaryIO:
    files = input_files_at(root)[0] if root else LocalInputFiles()
    try:
        return files.open(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"file {path} was there when the source looked for files, or when a checkpoint was taken, and is gone; put "
            f"it back, or start the job without state"
        ) from None
