"""Files in a store that Arrow reaches, such as S3, GCS or HDFS, or that fsspec does."""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

from penstock.common.exceptions import EnvironmentSetupError
from penstock.files.store import FileStore

_OBJECT_STORES = {"s3", "gcs", "abfs"}
_OBJECT_STORES_OF_FSSPEC = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss", "oci", "memory"}
_OF_HADOOP = {"hdfs", "viewfs"}
_IN_MEMORY = 8 << 20
"""Larger files than this wait on a local disk until they are whole."""

_clients: dict[tuple[int, str, str, str], tuple[ArrowStore, str]] = {}
"""By process and the part of a URI before the path: the store, and where in it that is.

A client keeps its connections. One for each file would begin with a handshake each time.
"""


class ArrowStore(FileStore):
    """A store of Arrow or fsspec. A file is complete when it is closed."""

    can_append = False

    def __init__(self, file_system: Any) -> None:
        self._files = file_system
        self.name = str(file_system.type_name)
        protocol = self.name.removeprefix("py::fsspec+")
        self._has_objects = protocol in (_OBJECT_STORES if protocol == self.name else _OBJECT_STORES_OF_FSSPEC)
        """True if there are no folders, an object is seen only when it is whole, and a move would be a copy."""
        self._is_reached = False

    @staticmethod
    def at(uri: str) -> tuple[ArrowStore, str]:
        """The store of a URI, and the path within it; ValueError if neither Arrow nor fsspec knows it."""
        parts = urlsplit(uri)
        whose = os.getpid(), parts.scheme, parts.netloc, parts.query
        below = parts.path.rstrip("/")
        if whose in _clients and "%" not in below:
            store, above = _clients[whose]
            return store, above + below or "/"
        file_system, path = _file_system(uri)
        store, path = ArrowStore(file_system), path.rstrip("/") or path
        if parts.netloc and path.endswith(below):
            _clients[whose] = store, path.removesuffix(below)
        return store, path

    def open(self, path: str) -> BinaryIO:
        # Buffered, because an Arrow file cannot read single lines.
        return cast(BinaryIO, io.BufferedReader(self._files.open_input_file(path)))

    def create(self, path: str) -> BinaryIO:
        if not self._has_objects:
            self._files.create_dir(posixpath.dirname(path), recursive=True)
        stream: BinaryIO = self._files.open_output_stream(path)
        return stream

    def create_whole(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._put_whole(path) if self._has_objects else self._move_whole(path)

    @contextlib.contextmanager
    def _put_whole(self, path: str) -> Iterator[BinaryIO]:
        # Nothing is sent before it is whole: Arrow completes an object even when an error closes it.
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as content:
            yield cast(BinaryIO, content)
            content.seek(0)
            with self._files.open_output_stream(path) as out:
                shutil.copyfileobj(content, out, 1 << 20)

    @contextlib.contextmanager
    def _move_whole(self, path: str) -> Iterator[BinaryIO]:
        partial = f"{path}.{secrets.token_hex(4)}.partial"
        try:
            with self._files.open_output_stream(partial) as out:
                yield cast(BinaryIO, out)
            self._files.move(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):  # The first error is the one that counts.
                self._files.delete_file(partial)
            raise

    def sync(self, file: BinaryIO, path: str) -> None:
        """Does nothing: the store keeps a file safely once it is closed, which follows."""

    def sync_folder(self, folder: str) -> None:
        """Does nothing: the store takes care of it."""

    def size_of(self, path: str) -> int | None:
        found = self._files.get_file_info(path)
        return int(found.size) if found.is_file else None

    def names(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector

        found = self._files.get_file_info(FileSelector(folder, allow_not_found=True))
        return [posixpath.basename(each.path.rstrip("/")) for each in found]

    def find(self, path: str, hidden: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
        from pyarrow.fs import FileSelector, FileType

        about = self._files.get_file_info(path)
        if about.type == FileType.NotFound:
            raise FileNotFoundError(f"there is no file or folder {path} on {self.name}")
        if about.type == FileType.File:
            yield about.path, about.size
            return
        for each in self._files.get_file_info(FileSelector(path, recursive=True)):
            below = posixpath.relpath(each.path, path)
            if each.type == FileType.File and not any(part.startswith(hidden) for part in below.split("/")):
                yield each.path, each.size

    def rename(self, path: str, new_path: str) -> None:
        self._files.move(path, new_path)

    def make_folder(self, path: str) -> None:
        if not self._has_objects:
            self._files.create_dir(path, recursive=True)
        elif self.name in _OBJECT_STORES and not self._is_reached:
            # Folders need not be made, but the caller wants to know now if nothing can be written.
            from pyarrow.fs import FileType

            bucket = path.partition("/")[0]
            if self._files.get_file_info(bucket).type == FileType.NotFound:
                raise FileNotFoundError(f"there is no bucket {bucket} on {self.name}")
            self._is_reached = True

    def delete(self, path: str) -> None:
        self._files.delete_file(path)

    def delete_folder(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.delete_dir(path)


def _file_system(uri: str) -> tuple[Any, str]:
    import pyarrow
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    try:
        if urlsplit(uri).scheme in _OF_HADOOP:
            return _hadoop_file_system(uri)
        found: tuple[Any, str] = FileSystem.from_uri(uri)
        return found
    except pyarrow.ArrowInvalid as unknown:
        try:
            import fsspec  # type: ignore[import-not-found, import-untyped, unused-ignore]

            files, path = fsspec.core.url_to_fs(uri)
        except (ImportError, ValueError) as error:
            raise ValueError(
                f"{uri}: no file system is known for it ({unknown}; {error}); use a local path, file://, or a URI "
                f"that Arrow or fsspec knows, such as s3://bucket/folder"
            ) from error
        return PyFileSystem(FSSpecHandler(files)), path


def _hadoop_file_system(uri: str) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    try:
        found: tuple[Any, str] = FileSystem.from_uri(uri)
        return found
    except OSError as error:
        reason = str(error).partition("\n")[0]  # All places follow where the library was looked for.
        if not reason.startswith("Unable to load"):
            raise
    raise EnvironmentSetupError(
        f"{uri}: Hadoop's client cannot be loaded here ({reason}); install Java and Hadoop where the program and its "
        f"workers run, and set JAVA_HOME, HADOOP_HOME and CLASSPATH (to what `hadoop classpath --glob` prints); "
        f"or use a webhdfs:// URI, for which fsspec and requests are enough"
    )
