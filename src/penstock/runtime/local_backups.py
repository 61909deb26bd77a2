"""Copies of state files on the disk of the host that wrote them, so that restoring need not read the storage.

    <folder>/penstock-local-state-<user>/<job>/lock
                                               /v<vertex>-s<subtask>-e<epoch>-<token>

Copies may be lost at any time: if one is missing or damaged, the file is read from the checkpoint storage. Processes of
a job hold a shared lock on its folder. A process that finds a folder of another job whose lock is free removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import CorruptStateError
from penstock.common.private_folder import make_private, open_new
from penstock.runtime.saved_state import StateFolder, StateHandle, following_handles
from penstock.runtime.state.state_file import StateFileReader

_log = logging.getLogger(__name__)
_LOCK = "lock"


@dataclass(frozen=True)
class BackupSettings:
    """What a worker must know to keep copies of a job's state."""

    job_id: str
    folder: str | None = None
    """None for the system's folder of temporary files."""
    restores: bool = True
    """True if state is restored from the copies."""

    @staticmethod
    def of(config: Configuration, job_id: str) -> BackupSettings | None:
        """None if no copies are kept. A job that restores from copies also makes them, as before Flink 2."""
        restores = config.get(keys.RECOVER_FROM_LOCAL)
        if not restores and not config.get(keys.LOCAL_BACKUP):
            return None
        return BackupSettings(job_id, config.get_optional(keys.LOCAL_BACKUP_DIR), restores)


class LocalBackups:
    """The copies of one region's state on this host. Only `create` may be called by several threads."""

    def __init__(self, settings: BackupSettings) -> None:
        parent = Path(settings.folder or tempfile.gettempdir()) / f"penstock-local-state-{os.getuid()}"
        make_private(parent, "state is kept in it", f"set {keys.LOCAL_BACKUP_DIR.key} to another folder")
        _remove_leftovers(parent, settings.job_id)
        self._restores = settings.restores
        self._folder = parent / settings.job_id
        self._lock = _locked(self._folder)
        self._handles: dict[tuple[int, int], list[StateHandle]] = {}
        """By vertex and subtask: the files that were written or restored here, in this order."""
        self._completed = 0

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def create(self, folder: StateFolder, name: str) -> Iterator[BinaryIO]:
        """Like `folder.create`; also writes a copy here, unless that fails."""
        path = self._path_of(name)
        copy = _Copy(path.with_name(f"{path.name}.partial"))
        try:
            with folder.create(name) as out:
                copy.original = out
                yield cast(BinaryIO, copy)
        except BaseException:
            copy.drop()
            raise
        copy.keep(path)

    def wrote(self, vertex: int, subtask: int, handle: StateHandle) -> None:
        self._handles.setdefault((vertex, subtask), []).append(handle)

    def completed(self, checkpoint: int) -> None:
        """Remove copies that only checkpoints before this one need."""
        if checkpoint <= self._completed:
            return
        self._completed = checkpoint
        for at, handles in self._handles.items():
            older = [handle for handle in handles if handle.epoch <= checkpoint]
            needed: tuple[StateHandle, ...] = ()
            for handle in older:
                needed = following_handles(needed, handle)
            for handle in older:
                if handle not in needed:
                    self._path_of(handle.name).unlink(missing_ok=True)
            self._handles[at] = [*needed, *(handle for handle in handles if handle.epoch > checkpoint)]

    # --- restoring -------------------------------------------------------------------------------------------------

    def first(self, folder: StateFolder) -> StateFolder:
        """A folder that reads copies where there are any, and the files of `folder` otherwise."""
        return _LocalFirst(folder, self._folder) if self._restores else folder

    def restored(self, vertex: int, subtask: int, handles: tuple[StateHandle, ...]) -> None:
        """The subtask continues from these files: remove all other copies of its state."""
        self._handles[(vertex, subtask)] = list(handles)
        wanted = {self._path_of(handle.name).name for handle in handles}
        for path in self._folder.glob(f"v{vertex}-s{subtask}-*"):
            if path.name not in wanted:
                path.unlink(missing_ok=True)

    # --- the end ---------------------------------------------------------------------------------------------------

    def remove(self, vertices: frozenset[int]) -> None:
        """Remove the copies of vertices that have ended for good, and the job's folder if no other process uses it."""
        for vertex in vertices:
            for path in self._folder.glob(f"v{vertex}-*"):
                path.unlink(missing_ok=True)
        with contextlib.suppress(BlockingIOError):  # Another process of the job uses it.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        os.close(self._lock)

    def _path_of(self, name: str) -> Path:
        return self._folder / name.rpartition("/")[2]


class _Copy:
    """A stream that writes to the original and to a copy. A copy that fails is dropped; the checkpoint continues."""

    original: BinaryIO

    def __init__(self, path: Path) -> None:
        self._path = path
        self._out: BinaryIO | None = None
        with self._logging_failures():
            self._out = open_new(path)

    def write(self, content: bytes) -> int:
        written = self.original.write(content)
        if self._out is not None:
            with self._logging_failures():
                self._out.write(content)
        return written

    def keep(self, path: Path) -> None:
        if self._out is not None:
            with self._logging_failures():
                self._out.close()
                self._path.replace(path)

    def drop(self) -> None:
        out, self._out = self._out, None
        if out is not None:
            with contextlib.suppress(OSError):  # It may fail to write what is still in its buffer.
                out.close()
        self._path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _logging_failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _log.warning("%s: no local copy of the state is kept: %s", self._path, error)
            self.drop()


@dataclass(frozen=True)
class _LocalFirst:
    folder: StateFolder
    copies: Path

    def create(self, name: str) -> contextlib.AbstractContextManager[BinaryIO]:
        return self.folder.create(name)

    def open(self, name: str) -> BinaryIO:
        path = self._copy_of(name)
        if path.exists():
            if _is_whole(path):
                _log.info("%s is read from its copy on this host, %s", name, platform.node())
                return open(path, "rb")
            path.unlink(missing_ok=True)
        _log.info("%s has no copy on this host, %s, and is read from the checkpoint", name, platform.node())
        return self.folder.open(name)

    def size(self, name: str) -> int:
        path = self._copy_of(name)
        return path.stat().st_size if path.exists() else self.folder.size(name)

    def path_of(self, name: str) -> str:
        path = self._copy_of(name)
        return str(path) if path.exists() else self.folder.path_of(name)

    def _copy_of(self, name: str) -> Path:
        return self.copies / name.rpartition("/")[2]


def _is_whole(path: Path) -> bool:
    """False if the copy is damaged: after a crash of the machine it may be, because it is not synced to the disk."""
    try:
        with open(path, "rb") as content:
            reader = StateFileReader(str(path), content, path.stat().st_size)
            for block in reader.blocks:
                reader.content(block)
        return True
    except (OSError, CorruptStateError) as error:
        _log.warning("the local copy of a state file is not used: %s", error)
        return False


def _locked(folder: Path) -> int:
    """Make sure that the folder exists, with a shared lock that is held as long as the returned descriptor is open."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # Another process has removed the folder as a leftover.
            lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if (folder / _LOCK).exists():
                return lock
            os.close(lock)


def _remove_leftovers(parent: Path, own: str) -> None:
    for path in parent.glob(f"*/{_LOCK}"):
        if path.parent.name != own:
            # It blocks while the job runs on this host. It is not found if another process removes the folder.
            with contextlib.suppress(BlockingIOError, FileNotFoundError), open(path, "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.parent, ignore_errors=True)
