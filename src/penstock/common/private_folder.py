"""Folders that only one user can enter."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import BinaryIO

from penstock.common.exceptions import EnvironmentSetupError

_LONGEST = 60
"""A Unix socket's address has about 100 bytes, with the name in the folder."""


def private_folder(purpose: str) -> Path:
    """The folder for `purpose` where processes of this user meet; its name is short enough for a socket's address."""
    name = f"penstock-{purpose}-{os.getuid()}"
    folder = Path(tempfile.gettempdir(), name)
    if len(str(folder)) > _LONGEST:
        folder = Path("/tmp", name)
    make_private(folder, "jobs are controlled through it", "set TMPDIR to another folder")
    return folder


def make_private(folder: Path, reason: str, instead: str) -> None:
    """Make a folder that only this user can enter; raises if it exists and others can enter it.

    :param reason: Why that would be bad, for the message.
    :param instead: What the user can do other than remove the folder.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise EnvironmentSetupError(
            f"{folder} must belong to user {os.getuid()} alone (mode 700), because {reason}; remove it, or {instead}"
        )


def make_folders(folder: str | Path) -> list[Path]:
    """Make a folder and all above it that are missing, for this user alone. Returns the new ones.

    Folders that exist keep their rights: their owner has chosen who may enter.
    """
    new = [each for each in (Path(folder), *Path(folder).parents) if not each.exists()]
    for each in reversed(new):
        each.mkdir(mode=0o700, exist_ok=True)
    Path(folder).mkdir(exist_ok=True)  # Raises if it is a file.
    return new


def open_new(path: str | Path) -> BinaryIO:
    """A new file that only this user can read and write; raises FileExistsError if it exists."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")
