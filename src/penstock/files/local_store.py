"""Files on this machine, or on a file system that is mounted here."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from penstock.common.private_folder import make_folders, open_new
from penstock.files.store import FileStore

BUFFER_SIZE = 1 << 18

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalStore(FileStore):
    """The local file system. Links are followed."""

    is_private: bool = False
    """True if new files and folders are for their user alone."""
    is_durable: bool = True
    """True if a complete file survives a power failure."""

    name = "local"
    can_append = True

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    def create(self, path: str) -> BinaryIO:
        self.make_folder(os.path.dirname(path))
        return self._new(path)

    def _new(self, path: str) -> BinaryIO:
        return open_new(path) if self.is_private else open(path, "xb", buffering=BUFFER_SIZE)

    @contextlib.contextmanager
    def create_whole(self, path: str) -> Iterator[BinaryIO]:
        partial = f"{path}.{secrets.token_hex(4)}.partial"
        try:
            with self._new(partial) as out:
                yield out
                if self.is_durable:
                    out.flush()
                    os.fsync(out.fileno())
            os.replace(partial, path)
            if self.is_durable:
                self.sync_folder(os.path.dirname(path))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)
            raise

    def sync(self, file: BinaryIO, path: str) -> None:
        file.flush()
        os.fsync(file.fileno())
        self.sync_folder(os.path.dirname(path))

    def sync_folder(self, folder: str) -> None:
        descriptor = os.open(folder or ".", os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def size_of(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []

    def find(self, path: str, hidden: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
        try:
            about = os.stat(path)
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file or folder {path}") from None
        if stat.S_ISDIR(about.st_mode):
            yield from _files_below(path, hidden, frozenset([_identity(about)]))
        else:
            yield path, about.st_size

    def rename(self, path: str, new_path: str) -> None:
        os.replace(path, new_path)

    def make_folder(self, path: str) -> None:
        if not self.is_private:
            os.makedirs(path, exist_ok=True)
            return
        new = make_folders(path)
        if self.is_durable:
            for each in new:
                self.sync_folder(str(each.parent))

    def delete(self, path: str) -> None:
        os.unlink(path)

    def delete_folder(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)


def _files_below(folder: str, hidden: tuple[str, ...], above: frozenset[tuple[int, int]]) -> Iterator[tuple[str, int]]:
    """The files of a folder; `above` are this folder and those around it, which a link may lead back to."""
    for name in os.listdir(folder):
        if name.startswith(hidden):
            continue
        path = os.path.join(folder, name)
        about = _stat(path)
        if about is None:
            continue
        if stat.S_ISREG(about.st_mode):
            yield path, about.st_size
        elif stat.S_ISDIR(about.st_mode) and _identity(about) not in above:
            try:
                yield from _files_below(path, hidden, above | {_identity(about)})
            except (FileNotFoundError, NotADirectoryError):
                _log.debug("%s was removed while it was looked through", path)


def _stat(path: str) -> os.stat_result | None:
    """The status of a file or folder; None if it is gone since its folder was listed, or is a link to nothing."""
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
