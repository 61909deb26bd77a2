"""Decides when an epoch ends with a checkpoint. Times go in, a decision comes out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class CheckpointPolicy:
    """A checkpoint every `interval_ms` while there is something new, and at least `min_pause_ms` after the last one.

    `interval_ms` 0: every epoch is a checkpoint; None: only those that are asked for, such as savepoints. All times are
    ticks of a clock that never goes back.
    """

    interval_ms: int | None
    min_pause_ms: int = 0
    last_start_tick_ms: int | None = None
    last_end_tick_ms: int | None = None
    has_news: bool = False
    """True if an epoch has run since the last checkpoint."""

    def is_due(self, tick_ms: int) -> bool:
        due_tick_ms = self._due_tick_ms(tick_ms)
        return due_tick_ms is not None and due_tick_ms <= tick_ms

    def wake_up_tick_ms(self, tick_ms: int) -> int | None:
        """When an epoch should run for the sake of a checkpoint alone."""
        return self._due_tick_ms(tick_ms) if self.has_news else None

    def _due_tick_ms(self, tick_ms: int) -> int | None:
        if self.interval_ms is None:
            return None
        if self.last_start_tick_ms is None:
            self.last_start_tick_ms = tick_ms - (0 if self.interval_ms else 1)
        due_tick_ms = self.last_start_tick_ms + self.interval_ms
        if self.last_end_tick_ms is None:
            return due_tick_ms
        return max(due_tick_ms, self.last_end_tick_ms + self.min_pause_ms)

    def epoch_completed(self) -> None:
        self.has_news = True

    def checkpoint_started(self, tick_ms: int) -> None:
        self.last_start_tick_ms = tick_ms

    def checkpoint_ended(self, tick_ms: int, is_complete: bool) -> None:
        self.last_end_tick_ms = tick_ms
        self.has_news = not is_complete


@dataclass
class FailurePolicy:
    """How many checkpoints in a row may fail before the job does; -1: any number."""

    tolerable: int = 0
    failures: int = 0

    def on_failure(self) -> bool:
        """True if the job must fail."""
        self.failures += 1
        return 0 <= self.tolerable < self.failures

    def start_over(self) -> None:
        """A checkpoint was completed, or the job has failed for those that were not."""
        self.failures = 0
