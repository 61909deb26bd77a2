"""CPU time and memory of all processes of a session (a job's driver, its JVM, its Python workers), read from /proc.

By session and not by parent: workers outlive the process that started them. Without /proc the answer is None.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

_PROC = Path("/proc")
_SAMPLE_SECONDS = 0.2


def _stats(session: int) -> Iterator[tuple[int, list[str]]]:
    """Process ids with the fields of /proc/<pid>/stat from the third on."""
    for folder in _PROC.glob("[0-9]*"):
        try:
            # The second field, the name in brackets, may hold anything.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended meanwhile.
        if int(fields[3]) == session:
            yield int(folder.name), fields


def process_ids(session: int) -> list[int]:
    """Those of the session's processes that live now; none without /proc."""
    return [pid for pid, _ in _stats(session)]


def cpu_seconds(session: int) -> float | None:
    """User and system time so far, with that of children that have ended and were waited for."""
    if not _PROC.is_dir():
        return None
    ticks = sum(int(each) for _, fields in _stats(session) for each in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes(session: int) -> int | None:
    """Memory in use now; pages that processes share count once."""
    if not _PROC.is_dir():
        return None
    return sum(_memory_of(pid) for pid, _ in _stats(session))


def _memory_of(pid: int) -> int:
    try:
        rollup = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))


def end_session(session: int) -> None:
    """Kill what is left of a session that this process started."""
    if not _PROC.is_dir() or session == os.getsid(0):
        return
    for pid, _ in _stats(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class UsedCpu:
    """CPU time that a session uses within, also in processes that end within: `with UsedCpu(session) as used: ...`."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._ticks: dict[tuple[int, str], int] = {}
        """By process and the time of its start: the most that was seen."""
        self._before = 0

    @property
    def seconds(self) -> float | None:
        if not _PROC.is_dir():
            return None
        return (sum(self._ticks.values()) - self._before) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> UsedCpu:
        self._look()
        self._before = sum(self._ticks.values())
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS / 2):
            self._look()

    def _look(self) -> None:
        for pid, fields in _stats(self._session):
            self._ticks[(pid, fields[19])] = sum(int(each) for each in fields[11:15])


class PeakMemory:
    """Watches a session from another process: `with PeakMemory(pid) as peak: ...`, then `peak.bytes`."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            now = memory_bytes(self._session)
            if now is not None:
                self.bytes = max(now, self.bytes or 0)
