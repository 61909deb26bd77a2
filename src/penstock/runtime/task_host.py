"""Runs the subtasks of one stage in one slot for one epoch, and keeps them for the next one."""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from penstock.common.exceptions import PenstockError
from penstock.runtime.chunk import encode
from penstock.runtime.failure import describe_failure
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, Row
from penstock.runtime.saved_state import SHARED, SavedState, StateFolder, StateHandle
from penstock.runtime.stack_sampler import Stack, sampling
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import Extent
from penstock.runtime.stream_task import Committables, EpochOutcome, JobDeployment, StreamTask


@dataclass(frozen=True)
class SubtaskOrder:
    """What a subtask is restored from if it must be, and what its next snapshot is to hold."""

    saved: tuple[SavedState, ...] = ()
    is_exact: bool = True
    """True if `saved` is the state of this very subtask, of the same job."""
    extent: Extent = Extent.ALL


@dataclass(frozen=True)
class EpochCommand:
    """The driver's order for one epoch."""

    epoch: int
    run_id: str
    """Changes with every restart of the job: tasks kept from before are not used again."""
    run_folder: str
    """Is there as long as the run goes on: what works for the run ends when it is gone."""
    orders: dict[tuple[int, int], SubtaskOrder]
    """By (vertex, subtask)."""
    now_ms: int
    """The driver's clock when the epoch began."""
    previous_epoch: int = 0
    """The last epoch of this run, whose state tasks go on with; 0 for none."""
    restorable_epoch: int = 0
    """The epoch whose state the orders hold; a task that is gone can be rebuilt if it is the previous one."""
    is_checkpoint: bool = False
    """True if the epoch ends with a checkpoint."""
    completed_checkpoint: int = 0
    """The last checkpoint that this run has completed; 0 for none."""
    aborted_checkpoints: tuple[int, ...] = ()
    """Checkpoints that failed since the last epoch."""
    is_last: bool = False
    """True if the tasks end with this epoch."""
    is_notice: bool = False
    """True if there is nothing to do but to hear of the last checkpoint. It goes under the number of the last epoch."""
    sampled_vertices: frozenset[int] = frozenset()
    """Those of which acknowledgements shall tell what their threads were doing."""


@dataclass(frozen=True)
class TaskAck:
    """A subtask's report that it is done with the epoch."""

    vertex: int
    subtask: int
    epoch: int
    handle: StateHandle | None
    """The new snapshot; None if the state did not change, or the epoch was no checkpoint."""
    outcome: EpochOutcome
    started_ms: int
    ended_ms: int
    committables: Committables = field(default_factory=dict)
    snapshot_failure: str | None = None
    """Why the snapshot could not be written."""
    snapshot_ms: int = 0
    """How long it took to write the snapshot."""
    host: str = ""
    process: int = 0
    stacks: dict[Stack, int] = field(default_factory=dict)
    """What its thread was seen doing, and how often; empty unless that was asked for."""


class LostTaskError(PenstockError):
    """A subtask is gone since the last checkpoint, and with it what it did since then."""


class EpochClock:
    """Processing time in a subtask: the driver's clock when the epoch began, plus the time the subtask itself has run.

    So all subtasks of an epoch agree on the time, however late Spark started some of them.
    """

    def __init__(self) -> None:
        self._offset_ms = 0

    def start(self, now_ms: int) -> None:
        self._offset_ms = now_ms - _monotonic_ms()

    def __call__(self) -> int:
        return self._offset_ms + _monotonic_ms()


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


@dataclass
class _KeptTask:
    task: StreamTask
    clock: EpochClock
    epoch: int
    """The last epoch it took part in."""
    finished_epoch: int | None = None

    def drop(self) -> None:
        try:
            self.task.close()
        finally:
            self.task.dispose()


# Python workers live longer than one epoch: the tasks they ran, by (run id, vertex, subtask).
_kept_tasks: dict[tuple[str, int, int], _KeptTask] = {}


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class _Snapshot:
    handle: StateHandle | None = None
    failure: str | None = None


class TaskHost:
    """One slot of one stage."""

    def __init__(self, deployment: JobDeployment, folder: StateFolder, command: EpochCommand) -> None:
        self._deployment = deployment
        self._folder = folder
        self._command = command

    def run(self, stage: int, slot: int, rows: Iterable[Row]) -> Iterator[Row]:
        """Run every vertex of `stage` that has a subtask `slot`; rows for others pass through.

        Nothing is done after a row that carries a failure: the epoch is lost.
        """
        vertices = {v.id for v in self._deployment.vertices() if v.stage == stage and slot < v.parallelism}
        mine: dict[int, list[Row]] = {vertex: [] for vertex in sorted(vertices)}
        has_failed = False
        for row in rows:
            if row.vertex in vertices:
                mine[row.vertex].append(row)
            else:
                has_failed = has_failed or row.vertex == FAILURE
                yield row
        if has_failed:
            return
        for vertex in mine:
            yield from self.run_task(vertex, slot, mine[vertex])

    def run_task(self, vertex: int, subtask: int, rows: list[Row]) -> Iterator[Row]:
        """One subtask's epoch: its output rows, then its acknowledgement, or a failure instead."""
        key = (self._command.run_id, vertex, subtask)
        started_ms = wall_clock_ms()
        kept = _kept_tasks.pop(key, None)  # Put back only if the epoch goes well.
        try:
            order = self._command.orders.get((vertex, subtask), SubtaskOrder())
            kept = self._continued(kept, vertex, subtask, order)
            self._notify(kept)
            stacks: dict[Stack, int] = {}
            if not self._command.is_notice:
                with sampling(stacks) if vertex in self._command.sampled_vertices else contextlib.nullcontext():
                    yield from kept.task.run_epoch(rows)
            ack = self._acknowledgement(kept, vertex, subtask, order, started_ms, stacks)
            if self._command.is_last:
                kept.drop()
            else:
                kept.epoch = self._command.epoch
                _kept_tasks[key] = kept
            yield Row(ACKNOWLEDGEMENT, subtask, 0, 0, 0, encode(ack))
        except (Exception, SystemExit) as exc:  # Whatever a task raises is reported to the driver as its failure.
            yield self._failure(exc, kept, vertex, subtask)

    def _continued(self, kept: _KeptTask | None, vertex: int, subtask: int, order: SubtaskOrder) -> _KeptTask:
        """The task as the previous epoch left it: kept in this process, or rebuilt from its files."""
        if kept is not None and kept.epoch == self._command.previous_epoch:
            kept.clock.start(self._command.now_ms)
            return kept
        if kept is not None:
            kept.drop()
        if self._command.previous_epoch not in (0, self._command.restorable_epoch):
            raise LostTaskError(
                f"subtask {subtask} lost its state: the process that held it since checkpoint "
                f"{self._command.restorable_epoch} has ended"
                if self._command.restorable_epoch
                else f"subtask {subtask} lost its state: the process that held it has ended, and there was no "
                f"checkpoint yet; turn checkpointing on with env.enable_checkpointing(interval_ms) to survive this"
            )
        return self._build(vertex, subtask, order)

    def _build(self, vertex: int, subtask: int, order: SubtaskOrder) -> _KeptTask:
        clock = EpochClock()
        clock.start(self._command.now_ms)
        task = StreamTask(self._deployment, vertex, subtask, clock, self._command.run_id)
        built = _KeptTask(task, clock, 0)
        try:
            if order.saved:
                others = partial(self._saved_by_others, vertex, subtask)
                task.restore(order.saved, self._command.restorable_epoch, order.is_exact, others)
            if not task.is_closed:
                task.open()
        except Exception:
            with contextlib.suppress(Exception):  # Close what was opened; the first failure is the one that is told.
                built.drop()
            raise
        built.finished_epoch = self._command.restorable_epoch if task.is_finished else None
        return built

    def _saved_by_others(self, vertex: int, subtask: int) -> list[SavedState]:
        orders = [order for at, order in self._command.orders.items() if at[0] == vertex and at[1] != subtask]
        return [saved for order in orders for saved in order.saved]

    def _notify(self, kept: _KeptTask) -> None:
        for checkpoint in self._command.aborted_checkpoints:
            kept.task.notify_checkpoint_aborted(checkpoint)
        kept.task.notify_checkpoint_complete(self._command.completed_checkpoint)
        if kept.finished_epoch is not None and self._command.restorable_epoch >= kept.finished_epoch:
            kept.task.close()

    def _acknowledgement(
        self,
        kept: _KeptTask,
        vertex: int,
        subtask: int,
        order: SubtaskOrder,
        started_ms: int,
        stacks: dict[Stack, int],
    ) -> TaskAck:
        task, command = kept.task, self._command
        started_snapshot_ms = _monotonic_ms()
        committables = task.prepare_snapshot(command.epoch, order.extent) if command.is_checkpoint else None
        if task.is_finished and kept.finished_epoch is None:
            kept.finished_epoch = command.epoch
        if command.is_last or (task.is_finished and not task.waits_for_checkpoint()):
            task.close()
        snapshot = _Snapshot()
        if committables is not None:
            snapshot = self._write(task, vertex, subtask, order.extent)
        return TaskAck(
            vertex,
            subtask,
            command.epoch,
            snapshot.handle,
            task.outcome(),  # After `close`, where functions may still add to accumulators.
            started_ms,
            wall_clock_ms(),
            committables or {},
            snapshot.failure,
            _monotonic_ms() - started_snapshot_ms,
            platform.node(),
            os.getpid(),
            stacks,
        )

    def _write(self, task: StreamTask, vertex: int, subtask: int, extent: Extent) -> _Snapshot:
        # Spark may run a task twice: each run writes a file of its own, and only the acknowledged one counts.
        name = f"{SHARED}/v{vertex}-s{subtask}-e{self._command.epoch}-{secrets.token_hex(4)}"
        try:
            with self._folder.create(name) as out:
                writer = StateFileWriter(out)
                task.write_snapshot(writer, extent)
                writer.finish()
        except OSError as error:  # The disk is full, the store is away: the driver decides what a checkpoint is worth.
            return _Snapshot(None, f"{self._folder.path_of(name)}: {error}")
        task.snapshot_written(extent)
        return _Snapshot(StateHandle(name, self._command.epoch, writer.size, extent, writer.states()))

    def _failure(self, exc: BaseException, kept: _KeptTask | None, vertex: int, subtask: int) -> Row:
        described = self._deployment.job_graph.vertices[vertex]
        failure = describe_failure(exc, vertex, described.name, subtask, described.parallelism)
        if kept is not None:
            with contextlib.suppress(Exception):  # The first failure is the one that is told.
                kept.drop()
        return Row(FAILURE, subtask, 0, 0, 0, pickle.dumps(failure))


def forget_run(run_id: str) -> None:
    """Close and drop the tasks of a run in this process."""
    for key in [key for key in list(_kept_tasks) if key[0] == run_id]:
        kept = _kept_tasks.pop(key)
        # The run is over: what a function fails to close cannot change its result any more.
        with contextlib.suppress(Exception):
            kept.drop()
