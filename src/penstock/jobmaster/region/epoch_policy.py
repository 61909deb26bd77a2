"""Decides when the next epoch runs. Times go in, a decision comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.moment import Moment
from penstock.graph.job_graph import JobVertex

PROMPT_MS = 5
"""Between two epochs at most, where nobody has set a buffer timeout."""
_SHARE = 2
"""Without a buffer timeout, epochs may take up half of the time, unless records would wait longer than PROMPT_MS."""
UNHURRIED_MS = 100
"""Where the buffer timeout is switched off: in Flink a record then waits until its buffer is full."""


def epoch_policy(config: Configuration, vertices: Iterable[JobVertex]) -> EpochPolicy:
    """As the program has set it, or the default: short pauses after short epochs."""
    chosen_ms = _chosen_interval_ms(config, vertices)
    return EpochPolicy(PROMPT_MS, is_eager=True) if chosen_ms is None else EpochPolicy(chosen_ms)


def _chosen_interval_ms(config: Configuration, vertices: Iterable[JobVertex]) -> int | None:
    """The least time between the beginnings of two epochs, which is the longest that a record waits for its own.

    It is Flink's buffer timeout, the shortest of those that the program has set for the environment and for operators;
    None if it has set none.
    """
    chosen = config.get_optional(keys.EPOCH_INTERVAL)
    if chosen is not None:
        return chosen
    if not config.get(keys.BUFFER_TIMEOUT_ENABLED) or config.get_string(keys.BUFFER_TIMEOUT.key, "").strip() == "-1":
        of_all: int | None = UNHURRIED_MS
    else:
        of_all = config.get_optional(keys.BUFFER_TIMEOUT)
    of_operators = [
        node.buffer_timeout_ms for vertex in vertices for node in vertex.nodes if node.buffer_timeout_ms >= 0
    ]
    if of_all is None:
        return min([PROMPT_MS, *of_operators]) if of_operators else None
    return min([of_all, *of_operators])


@dataclass
class EpochPolicy:
    """An epoch runs when there is something to do, and no sooner than `interval_ms` after the last one began.

    An eager policy waits less if the last epoch was over soon: about as long as that took.
    Nothing to do means: no source has anything new, and no timer of processing time is due. Such a job sleeps.
    """

    interval_ms: int
    last_start_tick_ms: int | None = None
    wake_up: Moment | None = None
    """The earliest processing-time timer of all subtasks."""
    is_eager: bool = False
    last_duration_ms: int | None = None

    def epoch_started(self, now: Moment) -> None:
        self.last_start_tick_ms = now.tick_ms

    def epoch_completed(self, wake_ups: Iterable[Moment], now: Moment) -> None:
        self.wake_up = Moment.first(wake_ups)
        if self.last_start_tick_ms is not None:
            self.last_duration_ms = now.tick_ms - self.last_start_tick_ms

    def wait_ms(self, now: Moment, has_work: bool, checkpoint_tick_ms: int | None = None) -> int | None:
        """How long to wait, 0 for now; None until something happens. `checkpoint_tick_ms`: a checkpoint is due then."""
        waits = [
            0 if has_work else None,
            None if self.wake_up is None else now.until(self.wake_up),
            None if checkpoint_tick_ms is None else checkpoint_tick_ms - now.tick_ms,
        ]
        if all(wait is None for wait in waits):
            return None
        pause_ms = 0 if self.last_start_tick_ms is None else self.last_start_tick_ms + self._least_ms() - now.tick_ms
        return max(0, pause_ms, min(wait for wait in waits if wait is not None))

    def _least_ms(self) -> int:
        """Between the beginnings of two epochs."""
        if not self.is_eager or self.last_duration_ms is None:
            return self.interval_ms
        return min(self.interval_ms, _SHARE * max(1, self.last_duration_ms))
