"""Folders on the local disk that belong to one process and are removed with it, even if it is killed.

    <folder>/penstock-files-<user>/<process>-<token>/lock
                                                    /<purpose>-<token>/

A process holds the lock of its folder as long as it lives, and removes folders whose lock is free. The lock also
distinguishes processes of other containers, which process ids do not.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path

from penstock.common.private_folder import make_private

_LOCK = "lock"

_own: dict[tuple[int, Path], tuple[Path, int]] = {}
"""By process and parent, the folder and its open lock: after a fork the folders are still the first process's."""


def new_local_folder(parent: Path, purpose: str) -> Path:
    """A new folder in `parent`, removed at the end of this process or, if it is killed, by the next one that asks."""
    folder = _folder_of_process(parent) / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', purpose)[:80]}-{secrets.token_hex(4)}"
    folder.mkdir()
    return folder


def new_socket_folder(purpose: str, longest: int) -> Path:
    """A new folder for sockets, whose addresses must be short: in the temporary folder, or in /tmp if that is long."""
    folder = new_local_folder(Path(tempfile.gettempdir()), purpose)
    if len(str(folder)) > longest:
        folder.rmdir()
        folder = new_local_folder(Path("/tmp"), purpose)
    return folder


def remove_own_folders() -> None:
    """Remove what this process has made: for a process that ends without running exit handlers, as workers do."""
    for process, parent in list(_own):
        if process == os.getpid():
            folder, lock = _own.pop((process, parent))
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _folder_of_process(parent: Path) -> Path:
    known = _own.get((os.getpid(), parent))
    if known is None or not known[0].exists():
        users = _folder_of_user(parent)
        _remove_leftovers(users)
        known = _own[(os.getpid(), parent)] = _locked_folder(users)
    return known[0]


def _folder_of_user(parent: Path) -> Path:
    folder = parent / f"penstock-files-{os.getuid()}"
    instead = "set penstock.working-dir and state.backend.rocksdb.localdir to other folders"
    make_private(folder, "records and state are kept in it", instead)
    return folder


def _locked_folder(users: Path) -> tuple[Path, int]:
    while True:
        folder = users / f"{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700)
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)  # Open as long as the process lives.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _LOCK).exists():
            atexit.register(_remove_if_own, folder, os.getpid())
            return folder, lock
        os.close(lock)  # Another process took it for a leftover before it was locked.


def _remove_if_own(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)  # It may be gone: others clean temporary folders, too.


def _remove_leftovers(users: Path) -> None:
    for lock_path in users.glob(f"*/{_LOCK}"):
        # A lock that is held means that its process lives; a missing one, that another process removes the folder.
        with contextlib.suppress(BlockingIOError, FileNotFoundError), open(lock_path, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(lock_path.parent)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: if this is interrupted, another process finds the rest and removes it.

    Processes that a killed driver has started may still write there until they notice.
    """
    for each in folder.iterdir():
        if each.name != _LOCK:
            shutil.rmtree(each, ignore_errors=True)
    if [each.name for each in folder.iterdir()] == [_LOCK]:
        shutil.rmtree(folder, ignore_errors=True)
