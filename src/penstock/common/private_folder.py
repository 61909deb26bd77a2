"""A folder in which processes of one user meet."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from penstock.common.exceptions import EnvironmentSetupError

_LONGEST = 60
"""A Unix socket's address has about 100 bytes, with the name in the folder."""


def private_folder(purpose: str) -> Path:
    """The folder for `purpose` that only this user can enter, with a name short enough for a socket's address."""
    name = f"penstock-{purpose}-{os.getuid()}"
    folder = Path(tempfile.gettempdir(), name)
    if len(str(folder)) > _LONGEST:
        folder = Path("/tmp", name)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise EnvironmentSetupError(
            f"{folder} must belong to user {os.getuid()} alone (mode 700), because jobs are controlled through it; "
            f"remove it, or set TMPDIR to another folder"
        )
    return folder
