"""Where the jobs of this user are found: a folder of Unix sockets.

A process that runs jobs listens on one socket there, and for each running job there is a link to it, named like the
job's id. What a killed process has left is removed by the next process that finds it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from penstock.common.private_folder import private_folder

_JOB_ID = re.compile(r"[0-9a-f]{32}")
_BACKLOG = 64


def folder() -> Path:
    return private_folder("jobs")


@dataclass(frozen=True)
class ProcessSocket:
    """The listening socket of this process."""

    listener: socket.socket
    path: Path

    def announce(self, job_id: str) -> None:
        """Let the job be found here."""
        # A job may have had a driver before, which was killed and has left its link.
        new = self.path.parent / f".{secrets.token_hex(8)}"
        new.symlink_to(self.path.name)
        new.replace(self.path.parent / job_id)

    def withdraw(self, job_id: str) -> None:
        link = self.path.parent / job_id
        if link.is_symlink() and os.readlink(link) == self.path.name:  # Not that of a later driver of the job.
            link.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take the socket and all links to it away; connections that exist stay."""
        self.path.unlink(missing_ok=True)
        _remove_dead_links(self.path.parent)


def listen(name: str | None = None) -> ProcessSocket:
    """Listen under a name, or under one that no other process has. What killed processes have left is removed."""
    live_sockets()
    path = folder() / (name or f"driver-{secrets.token_hex(8)}")
    listener = socket.socket(socket.AF_UNIX)
    # It gets its name only once it listens: before, others would take it for a dead one and remove it.
    hidden = path.with_name(f".{secrets.token_hex(8)}")
    try:
        listener.bind(str(hidden))
        listener.listen(_BACKLOG)
        hidden.rename(path)
    except BaseException:
        listener.close()
        hidden.unlink(missing_ok=True)
        raise
    return ProcessSocket(listener, path)


def live_sockets() -> list[Path]:
    """The sockets of all processes that answer."""
    here = folder()
    alive = [path for path in sorted(here.iterdir()) if _is_visible_socket(path) and is_alive(path)]
    _remove_dead_links(here)
    return alive


def socket_of(job_id: str) -> Path | None:
    """The socket of the process that runs a job; None if there is none."""
    link = folder() / job_id
    if not link.is_symlink() or not is_alive(link):
        return None
    return link.parent / os.readlink(link)


def announced_jobs() -> list[str]:
    """The ids of all jobs that have a link, dead or alive."""
    return sorted(path.name for path in folder().iterdir() if _JOB_ID.fullmatch(path.name))


def is_alive(path: Path) -> bool:
    """True if a process listens there; what is left of a dead one is removed."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.setblocking(False)
        try:
            connection.connect(str(path))
        except BlockingIOError:  # It lives, and has more to accept than it can.
            return True
        except (ConnectionRefusedError, FileNotFoundError):
            path.resolve().unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            return False
    return True


def _is_visible_socket(path: Path) -> bool:
    return path.is_socket() and not path.is_symlink() and not path.name.startswith(".")


def _remove_dead_links(here: Path) -> None:
    for path in here.iterdir():
        if path.is_symlink() and not path.exists():
            path.unlink(missing_ok=True)
