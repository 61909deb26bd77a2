"""Decides when the next epoch runs. Times go in, a decision comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.moment import Moment
from penstock.graph.job_graph import JobVertex

PROMPT_MS = 5
"""Between two epochs, where nobody has set a buffer timeout."""
UNHURRIED_MS = 100
"""Where the buffer timeout is switched off: in Flink a record then waits until its buffer is full."""


def epoch_interval_ms(config: Configuration, vertices: Iterable[JobVertex]) -> int:
    """The least time between the beginnings of two epochs, which is the longest that a record waits for its own.

    It is Flink's buffer timeout, the shortest of those that the program has set for the environment and for operators.
    """
    chosen = config.get_optional(keys.EPOCH_INTERVAL)
    if chosen is not None:
        return chosen
    if not config.get(keys.BUFFER_TIMEOUT_ENABLED) or config.get_string(keys.BUFFER_TIMEOUT.key, "").strip() == "-1":
        of_all = UNHURRIED_MS
    else:
        timeout_ms = config.get_optional(keys.BUFFER_TIMEOUT)
        of_all = PROMPT_MS if timeout_ms is None else timeout_ms
    of_operators = (node.buffer_timeout_ms for vertex in vertices for node in vertex.nodes)
    return min([of_all, *(each for each in of_operators if each >= 0)])


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
