"""The clock of a subtask, and what waits for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from penstock.common.clocks import monotonic_ms
from penstock.common.moment import Moment


class EpochClock:
    """Processing time in a subtask: the driver's clock when the epoch began, plus the time the subtask has run since.

    So all subtasks of an epoch agree on the time, however late some of them start.
    """

    def __init__(self) -> None:
        self._offset_ms = 0

    def start(self, now_ms: int) -> None:
        self._offset_ms = now_ms - monotonic_ms()

    def __call__(self) -> int:
        return self._offset_ms + monotonic_ms()

    def ticks(self) -> int:
        """For intervals: processing time jumps when the wall clock of the driver is set."""
        return monotonic_ms()

    def now(self) -> Moment:
        return Moment(self(), self.ticks())


def ticks_of(clock: Callable[[], int]) -> Callable[[], int]:
    """What intervals are measured by. A clock that a test sets serves for both."""
    return clock.ticks if isinstance(clock, EpochClock) else clock


class Alarms:
    """The time that each operator of a subtask waits for next.

    As in Flink, an operator that waits for a time waits no longer if the wall clock is set back in the meantime.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock, self._ticks = clock, ticks_of(clock)
        self._moments: dict[Hashable, Moment] = {}

    def now(self) -> Moment:
        return Moment(self._clock(), self._ticks())

    def set(self, operator: Hashable, time_ms: int | None) -> int | None:
        """Note the time that an operator waits for, or None; returns when that is by the present wall clock."""
        if time_ms is None:
            self._moments.pop(operator, None)
            return None
        now, known = self.now(), self._moments.get(operator)
        if known is None or known.wall_ms != time_ms:
            known = self._moments[operator] = now.at(time_ms)
        return now.wall_ms + now.until(known)

    def reached(self, operator: Hashable, now: Moment) -> int:
        """The processing time up to which timers of this operator are due."""
        known = self._moments.get(operator)
        return now.wall_ms if known is None or now.until(known) > 0 else max(now.wall_ms, known.wall_ms)
