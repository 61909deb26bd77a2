"""The checkpoints of a whole job, made up of those of its regions.

Regions exchange nothing, so their newest checkpoints fit together whenever each was taken. When a region completes one,
a checkpoint of the job is written: the region's new part, and the others' as they were.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.checkpoint.handles import HandleBook
from penstock.checkpoint.metadata import CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.restoring import RestoredJob
from penstock.checkpoint.statistics import CheckpointStatsTracker
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.checkpoint.topology import fingerprint
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.graph.regions import Region, pipelined_regions
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.protocol import SubtaskOrder, TaskAck
from penstock.runtime.state.codec import encode_state

Committables = Mapping[str, list[Any]]


@dataclass(frozen=True)
class _Part:
    """What a region's checkpoint holds besides state files."""

    positions: dict[str, bytes]
    committables: dict[str, bytes]


def _part_of(positions: Mapping[str, Any], committables: Committables) -> _Part:
    return _Part(
        {operator: encode_state(position) for operator, position in positions.items()},
        {operator: encode_in_driver(found) for operator, found in committables.items()},
    )


class Completed(NamedTuple):
    """What came of a region's checkpoint."""

    number: int | None
    """The number of the job's checkpoint that it is part of; None while other regions have yet to save their state."""
    removed: list[int]
    """The numbers of the job's checkpoints that are removed for it."""


class JobCheckpoints:
    """The complete checkpoints of a job. Its regions share this, each of which runs in a thread."""

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
        self._lock = threading.RLock()
        """Never held while the store works: all regions need it, whatever they do."""
        self._completing = threading.RLock()
        """Held by the region that completes a checkpoint, also while the store works. Taken before the other lock."""
        self._book = HandleBook(job_graph, store.folder, tracks_changes, restored.orders if restored else None)
        store.files_in_use = self._files_in_use
        self._positions: dict[str, bytes] = {}
        self._committables: dict[Region, dict[str, bytes]] = {}
        self._proposed: dict[Region, _Part] = {}
        self._last_proposal = (0, 0)
        # State that was restored lies in other folders: the job has no checkpoint of its own before all of it is saved.
        self._missing = set(pipelined_regions(job_graph)) if restored else set()
        self._last_id = max(self.restored_id, store.leadership.used_ids)
        self._last_number = 0
        """The highest number under which a checkpoint may be on disk, also one that failed."""
        self.latest: CheckpointMetadata | None = None
        if restored is not None and store.leadership.checkpoint is not None:
            store.recover(restored.found.metadata)
            if restored.is_exact and not any(order.strays for order in restored.orders.values()):
                self._continue_from(restored.found.metadata)

    def _continue_from(self, metadata: CheckpointMetadata) -> None:
        """Continue as after a failure in this process: what the checkpoint holds need not be saved again."""
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

    def ended_without(self, region: Region, positions: Mapping[str, Any]) -> None:
        """A region has come to its end without a checkpoint of its own: those of the others know that it has.

        Nothing of its state is needed any more, also if it was restored.
        """
        with self._lock:
            self.begin_with(positions)
            self._missing.discard(region)

    def orders(self, region: Region) -> dict[tuple[int, int], SubtaskOrder]:
        with self._lock:
            return self._book.orders(region)

    def acknowledged(self, acks: Iterable[TaskAck]) -> None:
        with self._lock:
            self._book.acknowledged(acks)

    def written_size(self, vertex: int, number: int) -> int:
        """The bytes of all files that a subtask is restored from once its checkpoint is complete."""
        with self._lock:
            return sum(handle.size for handle in self._book.written(vertex, number))

    def complete(
        self, region: Region, checkpoint_id: int, positions: Mapping[str, Any], committables: Committables, now_ms: int
    ) -> Completed:
        """Make a region's checkpoint part of the job's."""
        part = _part_of(positions, committables)
        with self._completing:
            metadata = self._next_metadata(region, checkpoint_id, part, now_ms)
            unwanted = [] if metadata is None else self.store.add(metadata)
            with self._lock:
                self.latest = metadata or self.latest
                self._missing.discard(region)
                self._proposed.pop(region, None)
                self._book.completed(region)
                self._positions.update(part.positions)
                self._committables[region] = part.committables
        # Only now: until here, subtasks would have been restored from the older files.
        self.store.discard(unwanted)
        number = None if metadata is None else metadata.checkpoint_id
        return Completed(number, [each.checkpoint_id for each in unwanted])

    def _next_metadata(self, region: Region, checkpoint_id: int, part: _Part, now_ms: int) -> CheckpointMetadata | None:
        """The job's next checkpoint, with a new part of this region; None while other regions have yet to save state.

        The others' parts do not change before it is complete, since only completing a checkpoint changes them.
        """
        with self._lock:
            if self._missing - {region}:
                return None
            self._last_number = self._next_number(checkpoint_id)
            return self._metadata(self._last_number, now_ms, {region: part})

    def committed(self, region: Region) -> None:
        """All that belongs to a region's last checkpoint is committed: later checkpoints of others need not list it.

        The region may have ended, or have nothing new for long. What it has committed is its user's to move by then.
        """
        with self._lock:
            self._committables.pop(region, None)

    def _next_number(self, checkpoint_id: int) -> int:
        """The number of the job's next checkpoint: the region's own, unless another region has passed it meanwhile.

        Whoever restores a job takes the highest number for the newest. So numbers rise in the order in which
        checkpoints complete, not in the order in which the epochs of different regions began. A checkpoint that failed
        counts, too: its storage may have written it without confirming that.
        """
        return checkpoint_id if checkpoint_id > self._last_number else self.next_id()

    def propose(
        self, region: Region, checkpoint_id: int, positions: Mapping[str, Any], committables: Committables, now_ms: int
    ) -> None:
        """A region has what would be its next checkpoint, and waits for a savepoint of it before it becomes one."""
        part = _part_of(positions, committables)
        with self._lock:
            self._proposed[region] = part
            self._last_proposal = max(self._next_number(checkpoint_id), self._last_proposal[0]), now_ms

    def hold(self, proposed: bool = False) -> tuple[CheckpointMetadata, ExitStack]:
        """The newest checkpoint of the job; its files stay until the stack is closed, whatever other regions do.

        `proposed`: with the parts that regions have proposed.
        """
        with self._lock:
            metadata = self.latest
            if proposed and self._proposed:
                metadata = self._metadata(*self._last_proposal, self._proposed)
            assert metadata is not None, "every region has a checkpoint now"
            held = ExitStack()
            held.enter_context(self.store.holding(metadata))
            return metadata, held

    def _metadata(self, checkpoint_id: int, now_ms: int, new: Mapping[Region, _Part]) -> CheckpointMetadata:
        # What others have yet to commit is listed again: the restoring job commits it if they do not come to that.
        committables = {**self._committables, **{region: part.committables for region, part in new.items()}}
        positions = [part.positions for part in new.values()]
        return CheckpointMetadata(
            self._job_id,
            self.job_graph.job_name,
            checkpoint_id,
            now_ms,
            self._topology,
            tuple(
                self._vertex_entry(vertex, any(vertex.id in region for region in new))
                for vertex in self.job_graph.vertices
            ),
            {operator: at for each in [self._positions, *positions] for operator, at in each.items()},
            {operator: found for each in committables.values() for operator, found in each.items()},
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
            self._proposed.pop(region, None)
        if self.store.has_doubtful:
            with self._completing:  # Nobody confirms a checkpoint while another one is taken back.
                self.store.remove_doubtful()
        self.store.remove_leftovers(region)

    def _files_in_use(self) -> set[str]:
        """Includes files that no metadata lists: those of a proposal, and of regions that wait for others to save."""
        with self._lock:
            return self._book.files()
