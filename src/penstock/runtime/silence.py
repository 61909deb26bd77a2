"""Decides whether a process that does not answer is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from enum import Enum, auto

AT_WORK = 0.1
"""The share of a core that a process at work uses at least. Threads that wait for the interpreter use half of that."""


class Verdict(Enum):
    ALIVE = auto()
    AT_WORK = auto()
    """It has not answered for the whole timeout, but it is computing."""
    LOST = auto()


class Silence:
    """How long the process at the other end of a connection has been silent, for whoever looks every `interval_s`.

    Time in which this process itself stood still does not count, because nothing could be heard in it. And a process
    that computes is not lost: native code that keeps Python's interpreter lock lets no thread answer.
    """

    def __init__(
        self,
        interval_s: float,
        timeout_s: float,
        cpu_seconds: Callable[[], float | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`cpu_seconds`: how much the other process has used so far; None if that is not known."""
        self._interval_s, self._timeout_s = interval_s, timeout_s
        self._cpu_seconds, self._clock = cpu_seconds, clock
        self._heard = self._looked = clock()
        self._used = cpu_seconds()

    def heard(self) -> None:
        """It has sent something."""
        self._heard = self._clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._heard

    def look(self) -> Verdict:
        """What to think of the process now."""
        now = self._clock()
        stood_still_s = now - self._looked - self._interval_s
        if stood_still_s > self._interval_s:
            self._heard = min(self._heard + stood_still_s, now)
        self._looked = now
        if now - self._heard <= self._interval_s:
            self._used = self._cpu_seconds()
        if now - self._heard <= self._timeout_s:
            return Verdict.ALIVE
        used, self._used = self._used, self._cpu_seconds()
        if used is None or self._used is None or self._used - used < AT_WORK * (now - self._heard):
            return Verdict.LOST
        self._heard = now
        return Verdict.AT_WORK


def cpu_seconds_of(process: int | None) -> Callable[[], float | None]:
    """What the system says about a process of this machine; for others it says nothing, nor on macOS."""

    def used() -> float | None:
        try:
            with open(f"/proc/{process}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    return used
