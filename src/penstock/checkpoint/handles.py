"""Which state files each subtask is restored from, and how much its next one must hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.graph.job_graph import JobGraph
from penstock.graph.regions import Region
from penstock.runtime.protocol import SubtaskOrder, TaskAck
from penstock.runtime.saved_state import FileChain, StateFolder, StateHandle, following_handles
from penstock.runtime.state.table import Extent

Subtask = tuple[int, int]
"""Vertex and number."""

_MANY_DELTAS = 20
"""Each is a file to read when restoring, and meanwhile an entry in the metadata of every checkpoint: this many are
gathered into one file if that is cheap."""
_MOST_DELTAS = 200
"""This many are gathered at any cost."""
_CHEAP = 16 * 1024
"""What gathering may add to each of the checkpoints since the last time, in bytes."""
_SMALL = 64 * 1024


class HandleBook:
    """Handles by subtask: those of the last complete checkpoint, and those that subtasks have written since.

    A checkpoint that fails leaves files of some subtasks behind, on which their next deltas build.
    """

    def __init__(
        self,
        job_graph: JobGraph,
        folder: StateFolder,
        tracks_changes: bool,
        initial: dict[Subtask, SubtaskOrder] | None = None,
    ) -> None:
        self._folder = folder
        self._names = {
            vertex.id: {node.operator_id: node.name for node in vertex.nodes} for vertex in job_graph.vertices
        }
        self._subtasks = [(vertex.id, number) for vertex in job_graph.vertices for number in range(vertex.parallelism)]
        self._tracks_changes = tracks_changes
        self._initial = initial or {}
        self._complete: dict[Subtask, tuple[StateHandle, ...]] = {}
        self._written: dict[Subtask, tuple[StateHandle, ...]] = {}

    def recover(self, handles: dict[Subtask, tuple[StateHandle, ...]]) -> None:
        """Begin with files of a checkpoint that the job itself has written to this folder."""
        self._complete, self._written = dict(handles), dict(handles)

    def orders(self, region: Region) -> dict[Subtask, SubtaskOrder]:
        return {subtask: self._order(subtask) for subtask in self._subtasks if subtask[0] in region}

    def _order(self, subtask: Subtask) -> SubtaskOrder:
        extent = next_extent(self._written.get(subtask, ())) if self._tracks_changes else Extent.ALL
        handles = self._complete.get(subtask)
        if handles is None:
            return replace(self._initial.get(subtask, SubtaskOrder()), extent=extent)
        vertex, number = subtask
        chain = FileChain(self._folder, handles, number, self._names[vertex])
        return SubtaskOrder((chain,), is_exact=True, extent=extent)

    def acknowledged(self, acks: Iterable[TaskAck]) -> None:
        """Subtasks have written files, which count once the checkpoint is complete."""
        for ack in acks:
            subtask = (ack.vertex, ack.subtask)
            self._written[subtask] = following_handles(self._written.get(subtask, ()), ack.handle)

    def completed(self, region: Region) -> None:
        """What the subtasks of the region have written is what they are restored from now."""
        self._complete.update({subtask: each for subtask, each in self._written.items() if subtask[0] in region})

    def reset(self, region: Region) -> None:
        """Go back to the last complete checkpoint."""
        for subtask in [subtask for subtask in self._written if subtask[0] in region]:
            self._written[subtask] = self._complete.get(subtask, ())

    def files(self) -> set[str]:
        """The names of all files that subtasks are restored from, or that their next deltas build on."""
        books = (self._complete, self._written)
        return {handle.name for book in books for handles in book.values() for handle in handles}

    def written(self, vertex: int, number: int) -> tuple[StateHandle, ...]:
        return self._written.get((vertex, number), ())

    def complete(self, vertex: int, number: int) -> tuple[StateHandle, ...]:
        return self._complete.get((vertex, number), ())


def next_extent(handles: tuple[StateHandle, ...]) -> Extent:
    """How much the next snapshot must hold, so that neither writing nor restoring costs much more than the state.

    Deltas are gathered into one when there are many; a new base is written when what changed has outgrown the old one.
    So a small epoch of a large state costs what it changed, and a base is paid for by the changes before it.
    """
    if not handles:
        return Extent.ALL
    sizes = {extent: [handle.size for handle in handles if handle.extent is extent] for extent in Extent}
    base, gathered, deltas = (sum(sizes[extent]) for extent in (Extent.ALL, Extent.SINCE_BASE, Extent.CHANGES))
    if gathered + deltas > max(base, _SMALL):
        return Extent.ALL
    number = len(sizes[Extent.CHANGES])
    is_cheap = number >= _MANY_DELTAS and gathered + deltas <= number * _CHEAP
    if is_cheap or number >= _MOST_DELTAS or deltas > max(gathered, _SMALL):
        return Extent.SINCE_BASE
    return Extent.CHANGES
