"""A point of time on two clocks: the one that people read, and the one that only goes forward."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.common.clocks import monotonic_ms, wall_clock_ms

SLACK_MS = 1000
"""How far the clocks may differ before the wall clock counts as set back: one is slewed, or read a little later."""


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

    def at(self, wall_ms: int) -> Moment:
        """When the wall clock will show this, unless it is set."""
        return Moment(wall_ms, self.tick_ms + wall_ms - self.wall_ms)

    def until(self, later: Moment) -> int:
        """How many milliseconds are left; 0 or less if it has come.

        If the wall clock is set forward, that is sooner. If it is set back, it takes no longer than it would have.
        """
        return min(later.wall_ms - self.wall_ms, later.tick_ms + SLACK_MS - self.tick_ms)

    @staticmethod
    def first(moments: Iterable[Moment]) -> Moment | None:
        """Until this one, it takes as long as until the first of them; None if there are none."""
        known = list(moments)
        return Moment(min(each.wall_ms for each in known), min(each.tick_ms for each in known)) if known else None

    def since(self) -> int:
        """Milliseconds that have passed since then."""
        return monotonic_ms() - self.tick_ms


def wait_seconds(wait_ms: int | None) -> float | None:
    """How long a thread waits before it checks again, in the form that `threading` takes."""
    return None if wait_ms is None else min(wait_ms / 1000, threading.TIMEOUT_MAX)
