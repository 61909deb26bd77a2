"""The checkpoints of a whole job, made up of those of its regions.

Regions exchange nothing, so their newest checkpoints fit together whenever each was taken. When a region completes one,
a checkpoint of the job is written: the region's new part, and the others' as they were.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.checkpoint.handles import HandleBook
from penstock.checkpoint.metadata import CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.restoring import RestoredJob
from penstock.checkpoint.statistics import CheckpointStatsTracker
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.checkpoint.topology import fingerprint
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.graph.regions import Region, pipelined_regions
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.state.codec import encode_state
from penstock.runtime.task_host import SubtaskOrder, TaskAck

Committables = Mapping[str, list[Any]]


class JobCheckpoints:
    """What is complete. Shared by the regions of a job, each of which runs in a thread."""

    def __init__(
        self,
        job_id: str,
        job_graph: JobGraph,
        store: CompletedCheckpointStore,
        stats: CheckpointStatsTracker,
        tracks_changes: bool,
        restored: RestoredJob | None = None,
    ) -> None:
        self.job_graph = job_graph
        self.store = store
        self.stats = stats
        self.restored_id = restored.found.metadata.checkpoint_id if restored else 0
        self._job_id = job_id
        self._topology = fingerprint(job_graph)
        self._lock = threading.Lock()
        self._book = HandleBook(job_graph, store.folder, tracks_changes, restored.orders if restored else None)
        self._positions: dict[str, bytes] = {}
        self._committables: dict[Region, dict[str, bytes]] = {}
        # State that was restored lies in other folders: the job has no checkpoint of its own before all of it is saved.
        self._missing = set(pipelined_regions(job_graph)) if restored else set()
        self._last_id = max(self.restored_id, store.leadership.used_ids)
        self.latest: CheckpointMetadata | None = None
        if restored is not None and store.leadership.checkpoint is not None:
            store.recover(restored.found.metadata)
            if restored.is_exact:
                self._go_on_from(restored.found.metadata)

    def _go_on_from(self, metadata: CheckpointMetadata) -> None:
        """As after a failure in this process: what is there need not be saved again."""
        self._book.recover(
            {
                (vertex.id, number): handles
                for vertex in self.job_graph.vertices
                for number, handles in enumerate(metadata.vertices[vertex.id].subtasks)
            }
        )
        self._positions = dict(metadata.positions)
        for region in pipelined_regions(self.job_graph):
            operators = {node.operator_id for vertex in region for node in self.job_graph.vertices[vertex].nodes}
            committables = metadata.committables.items()
            self._committables[region] = {operator: each for operator, each in committables if operator in operators}
        self._missing = set()
        self.latest = metadata

    @property
    def is_whole(self) -> bool:
        """False while some region's state lies only where the job was restored from."""
        return not self._missing

    def next_id(self) -> int:
        """The number of the next epoch of any region, which is the id of the checkpoint if it ends with one."""
        with self._lock:
            self._last_id += 1
            return self._last_id

    def begin_with(self, positions: Mapping[str, Any]) -> None:
        """Where the sources of a region stand before its first checkpoint."""
        with self._lock:
            self._positions.update({operator: encode_state(position) for operator, position in positions.items()})

    def orders(self, region: Region) -> dict[tuple[int, int], SubtaskOrder]:
        with self._lock:
            return self._book.orders(region)

    def acknowledged(self, acks: Iterable[TaskAck]) -> None:
        with self._lock:
            self._book.acknowledged(acks)

    def written(self, vertex: int, number: int) -> tuple[StateHandle, ...]:
        with self._lock:
            return self._book.written(vertex, number)

    def complete(
        self, region: Region, checkpoint_id: int, positions: Mapping[str, Any], committables: Committables, now_ms: int
    ) -> list[int]:
        """Make a region's checkpoint part of the job's; returns the ids of checkpoints that were removed for it."""
        new_positions = {operator: encode_state(position) for operator, position in positions.items()}
        prepared = {operator: encode_in_driver(found) for operator, found in committables.items()}
        with self._lock:
            missing = self._missing - {region}
            removed: list[int] = []
            if not missing:
                metadata = self._metadata(region, checkpoint_id, new_positions, prepared, now_ms)
                removed = self.store.add(metadata)
                self.latest = metadata
            self._missing = missing
            self._book.completed(region)
            self._positions.update(new_positions)
            self._committables[region] = prepared
            return removed

    def _metadata(
        self,
        region: Region,
        checkpoint_id: int,
        positions: dict[str, bytes],
        prepared: dict[str, bytes],
        now_ms: int,
    ) -> CheckpointMetadata:
        # What a region has committed stays listed until its next checkpoint: whoever restores commits it again.
        others = [each for other, each in self._committables.items() if other != region]
        return CheckpointMetadata(
            self._job_id,
            self.job_graph.job_name,
            checkpoint_id,
            now_ms,
            self._topology,
            tuple(self._vertex_entry(vertex, vertex.id in region) for vertex in self.job_graph.vertices),
            {**self._positions, **positions},
            {operator: found for each in [*others, prepared] for operator, found in each.items()},
        )

    def _vertex_entry(self, vertex: JobVertex, is_new: bool) -> VertexEntry:
        handles = self._book.written if is_new else self._book.complete
        return VertexEntry(
            tuple(OperatorEntry(node.operator_id, node.name, node.uid) for node in vertex.nodes),
            vertex.parallelism,
            vertex.max_parallelism,
            tuple(handles(vertex.id, number) for number in range(vertex.parallelism)),
        )

    def reset(self, region: Region) -> None:
        """A region goes back to its last checkpoint; what its subtasks have written since then is removed."""
        with self._lock:
            self._book.reset(region)
            self.store.remove_doubtful()
        self.store.remove_leftovers(region)
