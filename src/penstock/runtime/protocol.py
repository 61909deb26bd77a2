"""What the driver sends to the subtasks of a region, once and in each epoch, and what they answer."""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

from penstock.graph.job_graph import DRIVER_STAGE, JobGraph, JobVertex
from penstock.runtime.chunk import encode
from penstock.runtime.latency import LatencyTracking
from penstock.runtime.metric_reports import Reports
from penstock.runtime.saved_state import FileChain, SavedState, StateHandle
from penstock.runtime.sources import SourceReport
from penstock.runtime.stack_sampler import Stack
from penstock.runtime.state.backends import HeapBackend, KeyedBackend
from penstock.runtime.state.table import Extent
from penstock.runtime.task_output import LogLevels

Committables = dict[str, list[Any]]
"""By operator id: what the driver commits once a checkpoint is complete."""


@dataclass(frozen=True)
class JobDeployment:
    """What every subtask of a job is built from."""

    job_id: str
    job_graph: JobGraph
    attempt: int = 0
    job_parameters: dict[str, str] = field(default_factory=dict)
    cached_files: dict[str, str] = field(default_factory=dict)
    """Local paths by name, where the task runs."""
    state_backend: KeyedBackend = field(default_factory=HeapBackend)
    region: frozenset[int] | None = None
    """The vertices that run together; None for all."""
    run_id: str = ""
    """Different for every start of the region: part of the names of files that belong to this start only."""
    latency: LatencyTracking | None = None
    """None if latency is not measured."""
    compresses_snapshots: bool = False
    log_levels: LogLevels = ()
    """The levels of the program's loggers, which workers set as well."""

    def vertices(self) -> list[JobVertex]:
        return [each for each in self.job_graph.vertices if self.region is None or each.id in self.region]

    def stages(self) -> list[list[JobVertex]]:
        """The vertices of each stage that runs on executors."""
        vertices = self.vertices()
        count = 1 + max(vertex.stage for vertex in vertices)
        return [[vertex for vertex in vertices if vertex.stage == stage] for stage in range(count)]

    def driver_vertices(self) -> list[JobVertex]:
        return [vertex for vertex in self.vertices() if vertex.stage == DRIVER_STAGE]


@dataclass(frozen=True)
class SubtaskOrder:
    """What a subtask is restored from if it must be restored, and how much its next snapshot must hold."""

    saved: tuple[SavedState, ...] = ()
    is_exact: bool = True
    """True if `saved` is the state of the same subtask in the same job."""
    extent: Extent = Extent.ALL
    strays: tuple[SavedState, ...] = ()
    """If `is_exact`: the state of other subtasks, if classes of the program have a say in which keys belong to whom."""

    def may_hold_lists(self) -> bool:
        """True if `saved` may hold operator state. Every subtask of the vertex needs the union lists in it."""
        return self.is_exact and any(
            not isinstance(each, FileChain) or any(state[1] == "operator" for state in each.states())
            for each in self.saved
        )


_PLAIN = struct.Struct("<cqqqqq")
_PLAIN_MARK = b"e"  # No pickle begins with this byte.


@dataclass(frozen=True)
class EpochCommand:
    """The driver's order for one epoch."""

    epoch: int
    now_ms: int
    """The driver's clock when the epoch began."""
    orders: dict[tuple[int, int], SubtaskOrder] = field(default_factory=dict)
    """By (vertex, subtask). A worker gets the orders for its own subtasks."""
    previous_epoch: int = 0
    """The last epoch of this run, from whose state tasks continue; 0 if there is none."""
    restorable_epoch: int = 0
    """The last complete checkpoint of the region, or the one that it was restored from; 0 for none. The orders of the
    first epoch of a run hold its state."""
    is_checkpoint: bool = False
    """True if the epoch ends with a checkpoint."""
    completed_checkpoint: int = 0
    """The last checkpoint that this run has completed; 0 for none."""
    aborted_checkpoints: tuple[int, ...] = ()
    """Checkpoints that failed since the last epoch."""
    is_last: bool = False
    """True if the tasks end with this epoch."""
    processes_nothing: bool = False
    """True if tasks get no rows and fire no timers.

    They are only notified of the last checkpoint, under the number of the last epoch, or save what they were restored
    with.
    """
    sampled_vertices: frozenset[int] = frozenset()
    """Vertices whose acknowledgements must include samples of what their threads were doing."""

    is_report: bool = False
    """True if all subtasks must report their metrics, even those that have nothing to do."""

    @property
    def is_plain(self) -> bool:
        """True if the epoch is only for its rows: a subtask without rows and without due timers need not run."""
        return not (
            self.is_report
            or self.orders
            or self.is_checkpoint
            or self.is_last
            or self.processes_nothing
            or self.aborted_checkpoints
            or self.sampled_vertices
        )

    def encode(self) -> bytes:
        """Most commands are plain. Of these, only the numbers are sent."""
        if self.is_plain:
            return _PLAIN.pack(
                _PLAIN_MARK,
                self.epoch,
                self.now_ms,
                self.previous_epoch,
                self.restorable_epoch,
                self.completed_checkpoint,
            )
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def decode(content: bytes) -> EpochCommand:
        if content.startswith(_PLAIN_MARK):
            _, epoch, now_ms, previous, restorable, completed = _PLAIN.unpack(content)
            return EpochCommand(epoch, now_ms, {}, previous, restorable, completed_checkpoint=completed)
        command: EpochCommand = pickle.loads(content)
        return command

    def by_worker(self, workers: int) -> list[EpochCommand]:
        """The command for each worker, with only the orders that its subtasks need."""
        orders: list[dict[tuple[int, int], SubtaskOrder]] = [{} for _ in range(workers)]
        is_first = self.previous_epoch == 0
        if is_first or self.is_checkpoint:
            for at, order in self.orders.items():
                # A subtask that continues does not need the state from which it was restored.
                orders[at[1] % workers][at] = order if is_first else SubtaskOrder(extent=order.extent)
        if is_first:
            shared = {vertex for (vertex, _), order in self.orders.items() if order.may_hold_lists()}
            united = {at: order for at, order in self.orders.items() if at[0] in shared}
            orders = [{**own, **united} for own in orders]
        return [replace(self, orders=own) for own in orders]


@dataclass(frozen=True)
class EpochOutcome:
    """What a subtask reports at the end of an epoch, besides its rows and state."""

    is_finished: bool
    next_processing_time: int | None
    records_in: int
    records_out: int
    watermark: int
    lines: list[tuple[bool, str]]
    collected: dict[str, list[Any]]
    metrics: dict[str, Reports]
    """By operator id."""
    accumulators: dict[str, Any]
    bytes_in: int = 0
    bytes_out: int = 0
    source_report: SourceReport | None = None


@dataclass(frozen=True)
class TaskAck:
    """A subtask's report that it is done with the epoch."""

    vertex: int
    subtask: int
    epoch: int
    handle: StateHandle | None
    """The new snapshot; None if the epoch was no checkpoint, the state did not change, or it could not be written."""
    outcome: EpochOutcome
    started_ms: int
    ended_ms: int
    committables: Committables = field(default_factory=dict)
    snapshot_failure: str | None = None
    """Why the snapshot could not be written; None if it was, or if there was none."""
    snapshot_ms: int = 0
    """How long it took to write the snapshot."""
    host: str = ""
    process: int = 0
    stacks: dict[Stack, int] = field(default_factory=dict)
    """The stacks in which its thread was seen, and how often; empty unless the command asked for samples."""

    def encode(self) -> bytes:
        """Leaves out the names of classes and fields, because every subtask that runs sends one in each epoch."""
        return encode((*_ACK_FIELDS(self), _OUTCOME_FIELDS(self.outcome)))

    @staticmethod
    def decode(content: bytes) -> TaskAck:
        *own, outcome = pickle.loads(content)
        vertex, subtask, epoch, handle, *others = own
        return TaskAck(vertex, subtask, epoch, handle, EpochOutcome(*outcome), *others)


_ACK_FIELDS = attrgetter(*(each.name for each in fields(TaskAck) if each.name != "outcome"))
_OUTCOME_FIELDS = attrgetter(*(each.name for each in fields(EpochOutcome)))
