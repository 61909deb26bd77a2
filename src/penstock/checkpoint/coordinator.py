"""Decides when checkpoints are taken and when they are complete, and keeps what they consist of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from penstock.checkpoint.job_checkpoints import Completed, JobCheckpoints
from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.policy import CheckpointPolicy, FailurePolicy
from penstock.checkpoint.statistics import CheckpointStats, SubtaskStats
from penstock.common.exceptions import CheckpointError
from penstock.common.moment import Moment
from penstock.graph.regions import Region
from penstock.runtime.protocol import SubtaskOrder, TaskAck

_log = logging.getLogger(__name__)


class CheckpointFailedError(CheckpointError):
    """A checkpoint failed, and the job may not continue without it."""


class CheckpointCoordinator:
    """The checkpoints of one region of a job. A checkpoint's id is the number of the epoch that it ends."""

    def __init__(self, checkpoints: JobCheckpoints, region: Region, options: CheckpointOptions) -> None:
        self._checkpoints = checkpoints
        self._region = region
        self._options = options
        self.policy = CheckpointPolicy(options.interval_ms, options.min_pause_ms)
        self._failures = FailurePolicy(options.tolerable_failures)
        self._current: CheckpointStats | None = None
        self._failure: str | None = None
        """Why the acknowledged epoch cannot become a checkpoint; None if it can."""
        self._prepared: dict[str, list[Any]] = {}
        """Committables that wait for a complete checkpoint, also those of checkpoints that failed."""
        self.completed_id = checkpoints.restored_id
        self.aborted: list[int] = []
        """Checkpoints that failed, until the subtasks are notified."""

    def orders(self) -> dict[tuple[int, int], SubtaskOrder]:
        return self._checkpoints.orders(self._region)

    def start(self, epoch: int, now: Moment, savepoint_format: str | None = None) -> None:
        self.policy.checkpoint_started(now.tick_ms)
        subtasks = sum(self._checkpoints.job_graph.vertices[vertex].parallelism for vertex in self._region)
        is_savepoint = savepoint_format is not None
        self._current = CheckpointStats(epoch, now.wall_ms, subtasks, is_savepoint, savepoint_format)
        self._checkpoints.stats.started(self._current)

    def acknowledged(self, acks: list[TaskAck]) -> None:
        """All subtasks have done their part of the checkpoint."""
        current = self._current
        assert current is not None
        self._checkpoints.acknowledged(acks)
        self._count(acks, current)
        for ack in acks:
            for operator, committables in ack.committables.items():
                self._prepared.setdefault(operator, []).extend(committables)
        self._failure = self._failure_of(acks)

    def propose(self, positions: Mapping[str, Any], now: Moment) -> str | None:
        """Offer what was acknowledged for a savepoint, before it counts as a checkpoint.

        Returns why that is impossible, or None. If the savepoint is not written, the region goes back to its last
        checkpoint.
        """
        assert self._current is not None
        if self._failure is None:
            self._checkpoints.propose(self._region, self._current.id, positions, self._prepared, now.wall_ms)
        return self._failure

    def complete_acknowledged(
        self, positions: Mapping[str, Any], now: Moment, before_retry: Callable[[Exception], None] | None = None
    ) -> dict[str, list[Any]] | None:
        """Write the metadata of what all subtasks have acknowledged. Returns what is to be committed now.

        `before_retry`: if the metadata cannot be written, this is called and it is tried again, unless this raises.
        None if the checkpoint failed and the job continues without it; raises if it may not. Nothing is raised once the
        metadata is written: the checkpoint is complete then, and the caller must know what belongs to it.
        """
        current, failure = self._current, self._failure
        assert current is not None
        completed = Completed(None, [])
        while failure is None:
            try:
                completed = self._checkpoints.complete(self._region, current.id, positions, self._prepared, now.wall_ms)
                break
            except OSError as error:
                failure = f"its metadata could not be written: {error}"
            if before_retry is not None:
                before_retry(CheckpointFailedError(f"checkpoint {current.id} failed: {failure}"))
                failure = None
        if failure is not None:
            self._fail(current, failure, now)
            return None
        self._succeed(current, completed, now)
        prepared, self._prepared = self._prepared, {}
        return prepared

    def _failure_of(self, acks: list[TaskAck]) -> str | None:
        failures = [ack.snapshot_failure for ack in acks if ack.snapshot_failure is not None]
        if failures:
            return f"state could not be written: {failures[0]}"
        slowest = max((ack.snapshot_ms for ack in acks), default=0)
        if slowest > self._options.timeout_ms:
            return f"it expired: writing a snapshot took {slowest} ms, more than {self._options.timeout_ms} ms"
        return None

    def _succeed(self, current: CheckpointStats, completed: Completed, now: Moment) -> None:
        self._current = None
        self._failures.start_over()
        self.completed_id = current.id
        self.policy.checkpoint_ended(now.tick_ms, is_complete=True)
        if completed.number is not None:
            current.id = completed.number  # What people see is the job's checkpoint, under the number it has on disk.
            current.external_path = self._checkpoints.store.path_of(completed.number)
        self._checkpoints.stats.completed(current)
        self._checkpoints.stats.discarded(completed.removed)

    def _fail(self, current: CheckpointStats, reason: str, now: Moment) -> None:
        self._current = None
        self._checkpoints.stats.failed(current, reason, now.wall_ms)
        self.aborted.append(current.id)
        self.policy.checkpoint_ended(now.tick_ms, is_complete=False)
        if self._failures.on_failure():
            failures = self._failures.failures
            self._failures.start_over()
            raise CheckpointFailedError(
                f"checkpoint {current.id} failed: {reason} ({failures} in a row, "
                f"execution.checkpointing.tolerable-failed-checkpoints is {self._options.tolerable_failures})"
            )
        _log.warning("checkpoint %d failed: %s", current.id, reason)

    def epoch_failed(self, reason: str, now_ms: int) -> None:
        """The epoch that was to end with a checkpoint failed, and with it all that was not complete."""
        if self._current is not None:
            self._checkpoints.stats.failed(self._current, reason, now_ms)
            self._current = None

    def reset(self) -> None:
        """The region goes back to its last complete checkpoint."""
        self._checkpoints.reset(self._region)
        self._prepared = {}
        self.aborted = []
        self.policy.has_news = False

    def _count(self, acks: list[TaskAck], current: CheckpointStats) -> None:
        for ack in sorted(acks, key=lambda ack: (ack.vertex, ack.subtask)):
            written = 0 if ack.handle is None else ack.handle.size
            size = self._checkpoints.written_size(ack.vertex, ack.subtask)
            current.tasks.setdefault(ack.vertex, []).append(
                SubtaskStats(ack.subtask, ack.ended_ms, ack.snapshot_ms, size, written)
            )
            current.state_size += size
            current.checkpointed_size += written
        current.num_acknowledged = len(acks)
        current.latest_ack_timestamp_ms = max((ack.ended_ms for ack in acks), default=None)
