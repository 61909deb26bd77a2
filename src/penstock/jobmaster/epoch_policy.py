"""Decides when the next epoch runs. Times go in, a decision comes out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EpochPolicy:
    """An epoch runs when there is something to do, and no sooner than `interval_ms` after the last one began.

    Nothing to do means: no source has anything new, and no timer of processing time is due. Such a job sleeps.
    """

    interval_ms: int
    last_start_ms: int | None = None
    wake_up_ms: int | None = None
    """The earliest processing-time timer of all subtasks."""

    def epoch_started(self, now_ms: int) -> None:
        self.last_start_ms = now_ms

    def epoch_completed(self, wake_ups_ms: list[int]) -> None:
        self.wake_up_ms = min(wake_ups_ms, default=None)

    def wait_ms(self, now_ms: int, has_work: bool, checkpoint_ms: int | None = None) -> int | None:
        """How long to wait, 0 for now; None until something happens. `checkpoint_ms`: when a checkpoint is due."""
        wake_ups = [now_ms if has_work else None, self.wake_up_ms, checkpoint_ms]
        if all(time is None for time in wake_ups):
            return None
        due = min(time for time in wake_ups if time is not None)
        if self.last_start_ms is not None:
            due = max(due, self.last_start_ms + self.interval_ms)
        return max(0, due - now_ms)
