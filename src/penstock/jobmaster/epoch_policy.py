"""Decides when the next epoch runs. Times go in, a decision comes out."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.moment import Moment


@dataclass
class EpochPolicy:
    """An epoch runs when there is something to do, and no sooner than `interval_ms` after the last one began.

    Nothing to do means: no source has anything new, and no timer of processing time is due. Such a job sleeps.
    """

    interval_ms: int
    last_start_tick_ms: int | None = None
    wake_up_ms: int | None = None
    """The earliest processing-time timer of all subtasks, by the wall clock."""

    def epoch_started(self, now: Moment) -> None:
        self.last_start_tick_ms = now.tick_ms

    def epoch_completed(self, wake_ups_ms: list[int]) -> None:
        self.wake_up_ms = min(wake_ups_ms, default=None)

    def wait_ms(self, now: Moment, has_work: bool, checkpoint_tick_ms: int | None = None) -> int | None:
        """How long to wait, 0 for now; None until something happens. `checkpoint_tick_ms`: a checkpoint is due then."""
        waits = [
            0 if has_work else None,
            None if self.wake_up_ms is None else self.wake_up_ms - now.wall_ms,
            None if checkpoint_tick_ms is None else checkpoint_tick_ms - now.tick_ms,
        ]
        if all(wait is None for wait in waits):
            return None
        pause_ms = 0 if self.last_start_tick_ms is None else self.last_start_tick_ms + self.interval_ms - now.tick_ms
        return max(0, pause_ms, min(wait for wait in waits if wait is not None))
