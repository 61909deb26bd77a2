"""Decides when checkpoints are taken and when they are complete, and keeps what they consist of."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from penstock.checkpoint.handles import HandleBook
from penstock.checkpoint.metadata import CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.policy import CheckpointPolicy, FailurePolicy
from penstock.checkpoint.restoring import RestoredJob
from penstock.checkpoint.statistics import CheckpointStats, CheckpointStatsTracker, RestoredStats, SubtaskStats
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.checkpoint.topology import fingerprint
from penstock.common.exceptions import CheckpointError
from penstock.graph.job_graph import JobGraph
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.state.codec import encode_state
from penstock.runtime.task_host import SubtaskOrder, TaskAck

_log = logging.getLogger(__name__)


class CheckpointFailedError(CheckpointError):
    """A checkpoint failed, and the job may not go on without it."""


class CheckpointCoordinator:
    """One job's checkpoints. A checkpoint's id is the number of the epoch that it ends."""

    def __init__(
        self,
        job_id: str,
        job_graph: JobGraph,
        store: CompletedCheckpointStore,
        options: CheckpointOptions,
        stats: CheckpointStatsTracker,
        restored: RestoredJob | None = None,
    ) -> None:
        self._job_id = job_id
        self._job_graph = job_graph
        self._topology = fingerprint(job_graph)
        self._store = store
        self._options = options
        self.stats = stats
        self.policy = CheckpointPolicy(options.interval_ms, options.min_pause_ms)
        self._failures = FailurePolicy(options.tolerable_failures)
        self._book = HandleBook(
            job_graph, store.folder, options.interval_ms is not None, restored.orders if restored else None
        )
        self._current: CheckpointStats | None = None
        self._prepared: dict[str, list[Any]] = {}
        """Committables of checkpoints that failed: they are committed with the next one."""
        self.completed_id = restored.found.metadata.checkpoint_id if restored else 0
        self.aborted: list[int] = []
        """Checkpoints that failed, until the subtasks were told."""

    def orders(self) -> dict[tuple[int, int], SubtaskOrder]:
        return self._book.orders()

    def restored_from(self, restored: RestoredJob, now_ms: int) -> None:
        found = restored.found
        self.stats.restored_from(
            RestoredStats(found.metadata.checkpoint_id, now_ms, found.metadata.is_savepoint, found.path)
        )

    def start(self, epoch: int, now_ms: int, savepoint_format: str | None = None) -> None:
        self.policy.checkpoint_started(now_ms)
        subtasks = sum(vertex.parallelism for vertex in self._job_graph.vertices)
        is_savepoint = savepoint_format is not None
        self._current = CheckpointStats(epoch, now_ms, subtasks, is_savepoint, savepoint_format)
        self.stats.started(self._current)

    def complete(
        self, acks: list[TaskAck], positions: Mapping[str, Any], now_ms: int
    ) -> tuple[CheckpointMetadata, dict[str, list[Any]]] | None:
        """All subtasks have acknowledged: write the metadata. Returns it, and what is to be committed now.

        None if the checkpoint failed and the job goes on without it; raises if it may not.
        """
        current = self._current
        assert current is not None
        self._book.acknowledged(acks)
        self._count(acks, current)
        for ack in acks:
            for operator, committables in ack.committables.items():
                self._prepared.setdefault(operator, []).extend(committables)
        failure = self._failure_of(acks)
        metadata = self._metadata(current, positions, now_ms)
        if failure is None:
            try:
                removed = self._store.add(metadata)
            except OSError as error:
                failure = f"its metadata could not be written: {error}"
        if failure is not None:
            self._fail(failure, now_ms)
            return None
        self._succeed(metadata, removed, now_ms)
        committables, self._prepared = self._prepared, {}
        return metadata, committables

    def _failure_of(self, acks: list[TaskAck]) -> str | None:
        failures = [ack.snapshot_failure for ack in acks if ack.snapshot_failure is not None]
        if failures:
            return f"state could not be written: {failures[0]}"
        slowest = max((ack.snapshot_ms for ack in acks), default=0)
        if slowest > self._options.timeout_ms:
            return f"it expired: writing a snapshot took {slowest} ms, more than {self._options.timeout_ms} ms"
        return None

    def _succeed(self, metadata: CheckpointMetadata, removed: list[int], now_ms: int) -> None:
        current, self._current = self._current, None
        assert current is not None
        self._book.completed()
        self._failures.on_success()
        self.completed_id = metadata.checkpoint_id
        self.policy.checkpoint_ended(now_ms, is_complete=True)
        current.external_path = self._store.path_of(metadata)
        self.stats.completed(current)
        for stats in self.stats.history():
            stats.discarded = stats.discarded or stats.id in removed

    def _fail(self, reason: str, now_ms: int) -> None:
        current, self._current = self._current, None
        assert current is not None
        self.stats.failed(current, reason, now_ms)
        self.aborted.append(current.id)
        self.policy.checkpoint_ended(now_ms, is_complete=False)
        if self._failures.on_failure():
            raise CheckpointFailedError(
                f"checkpoint {current.id} failed: {reason} ({self._failures.failures} in a row, "
                f"execution.checkpointing.tolerable-failed-checkpoints is {self._options.tolerable_failures})"
            )
        _log.warning("checkpoint %d failed: %s", current.id, reason)

    def epoch_failed(self, reason: str, now_ms: int) -> None:
        """The epoch that was to end with a checkpoint failed, and with it all that was not complete."""
        if self._current is not None:
            self.stats.failed(self._current, reason, now_ms)
            self._current = None

    def reset(self) -> None:
        """The job goes back to the last complete checkpoint."""
        self._book.reset()
        self._prepared = {}
        self.aborted = []
        self.policy.has_news = False
        self._store.remove_leftovers()

    def _count(self, acks: list[TaskAck], current: CheckpointStats) -> None:
        for ack in sorted(acks, key=lambda ack: (ack.vertex, ack.subtask)):
            written = 0 if ack.handle is None else ack.handle.size
            size = sum(handle.size for handle in self._book.written(ack.vertex, ack.subtask))
            current.tasks.setdefault(ack.vertex, []).append(
                SubtaskStats(ack.subtask, ack.ended_ms, ack.snapshot_ms, size, written)
            )
            current.state_size += size
            current.checkpointed_size += written
        current.num_acknowledged = len(acks)
        current.latest_ack_timestamp_ms = max((ack.ended_ms for ack in acks), default=None)

    def _metadata(self, current: CheckpointStats, positions: Mapping[str, Any], now_ms: int) -> CheckpointMetadata:
        return CheckpointMetadata(
            self._job_id,
            self._job_graph.job_name,
            current.id,
            now_ms,
            self._topology,
            tuple(
                VertexEntry(
                    tuple(OperatorEntry(node.operator_id, node.name, node.uid) for node in vertex.nodes),
                    vertex.parallelism,
                    vertex.max_parallelism,
                    tuple(self._book.written(vertex.id, number) for number in range(vertex.parallelism)),
                )
                for vertex in self._job_graph.vertices
            ),
            {operator: encode_state(position) for operator, position in positions.items()},
            {operator: encode_in_driver(committables) for operator, committables in self._prepared.items()},
        )
