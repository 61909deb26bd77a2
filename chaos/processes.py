"""The processes of a job, found by the session that its driver was started in. Nobody else's are touched."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class JobProcess:
    pid: int
    parent: int
    command: str


def processes_of(session: int) -> list[JobProcess]:
    """All living processes of a session."""
    found = []
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                command = (folder / "cmdline").read_text().replace("\0", " ")
                found.append(JobProcess(int(folder.name), int(fields[1]), command))
    return found


def roles_in(session: int) -> dict[str, list[int]]:
    """Process ids by what they do: worker (a Python process of Spark), python-daemon, executor."""
    processes = processes_of(session)
    java = {each.pid for each in processes if "org.apache.spark" in each.command and "java" in each.command}
    # Whichever daemon forks them, it is told to run this.
    python = [each for each in processes if "pyspark.worker" in each.command]
    daemons = {each.pid for each in python if each.parent in java}
    return {
        "executor": [each.pid for each in processes if "CoarseGrainedExecutorBackend" in each.command],
        "python-daemon": sorted(daemons),
        "worker": [each.pid for each in python if each.parent in daemons],
    }


def kill(pid: int) -> bool:
    """True if there was somebody to kill."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def pause(pid: int, seconds: float) -> bool:
    """Let a process stand still for a while; True if it was there."""
    try:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(session: int, seconds: float) -> list[JobProcess]:
    """Those that are still there in the end; none is as it should be."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def write_stacks(session: int) -> None:
    """Have all processes say in their logs where they are; Python (with PYTHONFAULTHANDLER=1) ends with that."""
    for each in processes_of(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGQUIT if "java" in each.command.split(" ")[0] else signal.SIGABRT)
    time.sleep(2)


def end_session(session: int) -> None:
    for each in processes_of(session):
        kill(each.pid)
