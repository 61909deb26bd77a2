"""What the epochs of a region have produced, until it is committed and shown for good."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from penstock.common.abandoned_calls import check_wanted
from penstock.common.exceptions import AbandonedError, LeadershipLostError
from penstock.jobmaster.counted import Counted
from penstock.jobmaster.execution.stage_executor import EpochCancelledError
from penstock.jobmaster.sinks.job_output import RegionOutput
from penstock.jobmaster.sinks.sink_commits import SinkCommits
from penstock.runtime.protocol import TaskAck

_log = logging.getLogger(__name__)

Committables = Mapping[str, list[Any]]
"""By operator id."""


class RegionResults:
    """Committables, printed lines, collected values and accumulators of one region.

    What belongs to a complete checkpoint is kept until it is settled, whatever fails meanwhile; the rest is dropped
    when the region goes back.
    """

    def __init__(self, output: RegionOutput, commits: SinkCommits) -> None:
        self._output = output
        self._commits = commits
        self._restored: Committables = {}
        """What belongs to the checkpoint that the job was restored from."""
        self._prepared: dict[str, list[Any]] = {}
        """What belongs to the region's own checkpoint."""
        self.counted = Counted()
        self._counted_then = Counted()
        """As it was at the last checkpoint."""

    def restore(self, committables: Committables) -> None:
        self._restored = committables

    def take(self, ack: TaskAck) -> None:
        """A subtask's part of an epoch that all subtasks have acknowledged."""
        self.counted.take(ack.vertex, ack.subtask, ack.outcome.accumulators)
        self._output.take(ack.outcome)

    def epoch_completed(self, is_last: bool) -> None:
        """The epoch is complete without a checkpoint: show what need not wait for one."""
        self._output.epoch_completed(is_covered=is_last)
        self._output.show()

    def prepare_checkpoint(self) -> Callable[[Committables], None]:
        """Called before the metadata is written. Returns what to call as soon as it is, which cannot fail."""
        counted = self.counted.copy()

        def completed(prepared: Committables) -> None:
            self._counted_then = counted
            self._output.epoch_completed(is_covered=True)
            for operator_id, committables in prepared.items():
                self._prepared.setdefault(operator_id, []).extend(committables)

        return completed

    def go_back(self) -> None:
        """To the last checkpoint."""
        self.counted = self._counted_then.copy()
        self._output.drop_held()

    def settle(self, has_own: bool) -> None:
        """Commit and show what belongs to complete epochs; what fails is tried again by the next attempt."""
        take_all_steps(lambda: self.commit(has_own), check_wanted, self._output.show)

    def commit(self, has_own: bool) -> None:
        """Commit what belongs to complete checkpoints.

        `has_own`: also what belongs to the region's own one. Otherwise that waits for a checkpoint of the whole job.
        """
        self._commits.commit(self._restored)
        self._restored = {}
        if has_own:
            self._commits.commit(self._prepared)
            self._prepared = {}

    @property
    def is_committed(self) -> bool:
        """True if nothing that belongs to a complete checkpoint waits for its commit."""
        return not any(self._restored.values()) and not any(self._prepared.values())

    def close(self) -> None:
        self._commits.close()


def take_all_steps(*steps: Callable[[], None]) -> None:
    """Take all steps, even if one of them fails; the first failure is raised."""
    failures: list[Exception] = []
    for step in steps:
        try:
            step()
        except (AbandonedError, EpochCancelledError, LeadershipLostError):
            raise  # Nothing more may happen here.
        except Exception as failure:  # It must not keep the other steps from being taken.
            failures.append(failure)
    for other in failures[1:]:
        _log.warning("failed as well: %s", other)
    if failures:
        raise failures[0]
