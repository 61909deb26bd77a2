"""A point of time on two clocks: the one that people read, and the one that only goes forward."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from penstock.common.clocks import monotonic_ms, wall_clock_ms


@dataclass(frozen=True)
class Moment:
    """Intervals are measured in ticks: a wall clock that is set back must not stretch them."""

    wall_ms: int
    """Milliseconds since 1970, as timers of processing time and people count them. May go back."""
    tick_ms: int
    """Milliseconds since some point in the past. Never goes back."""

    @staticmethod
    def now() -> Moment:
        """This moment, on both clocks."""
        return Moment(wall_clock_ms(), monotonic_ms())

    def since(self) -> int:
        """Milliseconds that have passed since then."""
        return monotonic_ms() - self.tick_ms


def wait_seconds(wait_ms: int | None) -> float | None:
    """How long a thread waits before it checks again, in the form that `threading` takes."""
    return None if wait_ms is None else min(wait_ms / 1000, threading.TIMEOUT_MAX)
