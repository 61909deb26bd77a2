"""The subtasks that live in this process: built for their first epoch, kept until the run of their region ends."""

from __future__ import annotations

import contextlib
import os
import pickle
import platform
import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

from penstock.common.clocks import monotonic_ms, wall_clock_ms
from penstock.common.exceptions import PenstockError
from penstock.common.moment import Moment
from penstock.runtime.clocks import EpochClock
from penstock.runtime.failure import describe_failure
from penstock.runtime.local_backups import LocalBackups
from penstock.runtime.protocol import EpochCommand, JobDeployment, SubtaskOrder, TaskAck
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, AnyRow, Row
from penstock.runtime.saved_state import SHARED, FileChain, SavedState, StateFolder, StateHandle
from penstock.runtime.snapshot_writes import SnapshotWrites
from penstock.runtime.stack_sampler import Stack, sampling
from penstock.runtime.state.state_file import StateFileWriter
from penstock.runtime.state.table import Extent
from penstock.runtime.stream_task import StreamTask
from penstock.runtime.task_output import TaskPlace, enter_task


class LostTaskError(PenstockError):
    """A subtask is lost, and with it its work since the last checkpoint."""


@dataclass
class _KeptTask:
    task: StreamTask
    clock: EpochClock
    epoch: int
    """The last epoch in which it took part."""
    finished_epoch: int | None = None
    """The epoch in which its input ended; None if it has not ended yet."""
    restorable_epoch: int = 0
    """The last complete checkpoint that a command to it has named."""
    wake_up: Moment | None = None
    """When it must run again even if no rows have arrived for it."""

    def is_due(self, now_ms: int) -> bool:
        """True if it must run at this time, by the driver's clock, even if no rows have arrived for it."""
        return self.wake_up is not None and Moment(now_ms, self.clock.ticks()).until(self.wake_up) <= 0

    def drop(self) -> None:
        try:
            self.task.close()
        finally:
            self.task.dispose()


@dataclass(frozen=True)
class _Snapshot:
    """A state file, which may not be completely written yet."""

    handle: StateHandle
    written: Future[int]
    began_ms: int
    """By the monotonic clock."""


@dataclass(frozen=True)
class _LateAck:
    """An acknowledgement that is sent when the snapshot is written."""

    ack: TaskAck
    task: StreamTask
    snapshot: _Snapshot


class TaskHost:
    """The subtasks of one run that live in this process. They run one at a time."""

    def __init__(self, deployment: JobDeployment, folder: StateFolder, backups: LocalBackups | None = None) -> None:
        self._deployment = deployment
        self._folder = folder
        self._backups = backups
        self._tasks: dict[tuple[int, int], _KeptTask] = {}
        self._places: dict[tuple[int, int], TaskPlace] = {}
        self._writes = SnapshotWrites()
        self._late: list[_LateAck] = []

    def sleeps_through(self, command: EpochCommand, vertex: int, subtask: int) -> bool:
        """True if a subtask need not run in a plain epoch that brings it no rows; the epoch then counts as done."""
        kept = self._tasks.get((vertex, subtask))
        if (
            kept is None
            or kept.epoch != command.previous_epoch
            or kept.restorable_epoch != command.restorable_epoch
            or kept.is_due(command.now_ms)
        ):
            return False
        kept.epoch = command.epoch
        return True

    def run_task(self, command: EpochCommand, vertex: int, subtask: int, rows: Iterable[AnyRow]) -> Iterator[Row]:
        """Run one subtask's epoch: yields its output rows, then its acknowledgement, or a failure instead.

        If its snapshot is still being written, the acknowledgement comes later: see `late_acknowledgements`.
        """
        started_ms = wall_clock_ms()
        enter_task(self._place(vertex, subtask))
        kept = self._tasks.pop((vertex, subtask), None)  # Put back only if the epoch succeeds.
        try:
            order = command.orders.get((vertex, subtask), SubtaskOrder())
            kept = self._continued(command, kept, vertex, subtask, order)
            _notify(command, kept)
            stacks: dict[Stack, int] = {}
            if not command.processes_nothing:
                with sampling(stacks) if vertex in command.sampled_vertices else contextlib.nullcontext():
                    yield from kept.task.run_epoch(rows)
            ack = self._acknowledgement(command, kept, vertex, subtask, order, started_ms, stacks)
            if command.is_last:
                kept.drop()
            else:
                kept.epoch, kept.restorable_epoch = command.epoch, command.restorable_epoch
                self._tasks[(vertex, subtask)] = kept
            if ack is not None:
                yield _row_of(ack)
        except (Exception, SystemExit) as exc:  # Anything that a task raises is reported to the driver as its failure.
            yield self._failure(exc, kept, vertex, subtask)
        except GeneratorExit:  # The epoch was given up.
            if kept is not None:
                self._tasks[(vertex, subtask)] = kept  # So that it is closed with the others.
            raise
        finally:
            enter_task(None)

    def late_acknowledgements(self) -> Iterator[Row]:
        """The acknowledgements that wait for snapshots. Nothing follows after a failure.

        Call this when all subtasks of the epoch have run: it waits until the snapshots are written.
        """
        late, self._late = self._late, []
        for each in late:
            try:
                yield _row_of(self._completed(each))
            except Exception as exc:  # As in `run_task`.
                yield self._failure(exc, None, each.ack.vertex, each.ack.subtask)
                return

    def _place(self, vertex: int, subtask: int) -> TaskPlace:
        place = self._places.get((vertex, subtask))
        if place is None:
            described = self._deployment.job_graph.vertices[vertex]
            place = TaskPlace(described.name, subtask, described.parallelism, self._deployment.attempt)
            self._places[(vertex, subtask)] = place
        return place

    def close(self) -> None:
        """Close and drop all subtasks, because the run is over. Nothing is written afterwards."""
        self._writes.close()
        self._late.clear()
        while self._tasks:
            _, kept = self._tasks.popitem()
            # A function that fails to close can no longer change the run's result.
            with contextlib.suppress(Exception):
                kept.drop()

    def _continued(
        self, command: EpochCommand, kept: _KeptTask | None, vertex: int, subtask: int, order: SubtaskOrder
    ) -> _KeptTask:
        """The task as the previous epoch left it. In the first epoch of a run, it is built from its files."""
        if kept is not None and kept.epoch == command.previous_epoch:
            kept.clock.start(command.now_ms)
            return kept
        if kept is not None:
            kept.drop()
        if command.previous_epoch:  # Only the orders of the first epoch hold the state of the last checkpoint.
            raise LostTaskError(
                f"subtask {subtask} lost its state: the process that held it since checkpoint "
                f"{command.restorable_epoch} has ended"
                if command.restorable_epoch
                else f"subtask {subtask} lost its state: the process that held it has ended, and there was no "
                f"checkpoint yet; turn checkpointing on with env.enable_checkpointing(interval_ms) to survive this"
            )
        return self._build(command, vertex, subtask, order)

    def _build(self, command: EpochCommand, vertex: int, subtask: int, order: SubtaskOrder) -> _KeptTask:
        clock = EpochClock()
        clock.start(command.now_ms)
        task = StreamTask(self._deployment, vertex, subtask, clock)
        built = _KeptTask(task, clock, 0)
        try:
            if order.saved:
                others = partial(_saved_by_others, command, vertex, subtask)
                saved = self._nearest(order, vertex, subtask)
                task.restore(saved, command.restorable_epoch, order.is_exact, others, order.strays)
            if not task.is_closed:
                task.open()
        except Exception:
            with contextlib.suppress(Exception):  # Close what was opened; the first failure is reported.
                built.drop()
            raise
        built.finished_epoch = command.restorable_epoch if task.is_finished else None
        return built

    def _nearest(self, order: SubtaskOrder, vertex: int, subtask: int) -> tuple[SavedState, ...]:
        """The state to restore a subtask from, read from local copies where there are any."""
        backups = self._backups
        if backups is None:
            return order.saved
        chains = [each for each in order.saved if isinstance(each, FileChain)]
        if order.is_exact:
            backups.restored(vertex, subtask, tuple(handle for chain in chains for handle in chain.handles))
        return tuple(
            replace(each, folder=backups.first(each.folder)) if isinstance(each, FileChain) else each
            for each in order.saved
        )

    def _acknowledgement(
        self,
        command: EpochCommand,
        kept: _KeptTask,
        vertex: int,
        subtask: int,
        order: SubtaskOrder,
        started_ms: int,
        stacks: dict[Stack, int],
    ) -> TaskAck | None:
        """None if the acknowledgement must wait for the snapshot."""
        task = kept.task
        began_ms = monotonic_ms()
        committables = task.prepare_snapshot(command.epoch, order.extent) if command.is_checkpoint else None
        if task.is_finished and kept.finished_epoch is None:
            kept.finished_epoch = command.epoch
        if command.is_last or (task.is_finished and not task.waits_for_checkpoint()):
            task.close()
        snapshot: _Snapshot | None = None
        if committables is not None:
            extent = task.extent_of_snapshot(order.extent)
            snapshot = self._snapshot(command.epoch, task, vertex, subtask, extent, began_ms)
        ack = TaskAck(
            vertex,
            subtask,
            command.epoch,
            None,
            # After `close`, in which functions may still add to accumulators.
            task.outcome(has_metrics=not command.is_plain),
            started_ms,
            wall_clock_ms(),
            committables or {},
            None,
            monotonic_ms() - began_ms,
            platform.node(),
            os.getpid(),
            stacks,
        )
        wake_up_ms = ack.outcome.next_processing_time
        kept.wake_up = None if wake_up_ms is None else kept.clock.now().at(wake_up_ms)
        if snapshot is None:
            return ack
        late = _LateAck(ack, task, snapshot)
        if command.is_last:  # The task is dropped after this epoch, so it waits here.
            return self._completed(late)
        self._late.append(late)
        return None

    def _snapshot(
        self, epoch: int, task: StreamTask, vertex: int, subtask: int, extent: Extent, began_ms: int
    ) -> _Snapshot:
        # Spark may run a task twice: each run writes a file of its own, and only the acknowledged one counts.
        name = f"{SHARED}/v{vertex}-s{subtask}-e{epoch}-{secrets.token_hex(4)}"
        size, states, is_fixed = 0, frozenset[tuple[str, str, str]](), False

        def fill(out: BinaryIO) -> None:
            nonlocal size, states, is_fixed
            writer = StateFileWriter(out, self._deployment.compresses_snapshots)
            task.write_snapshot(writer, extent)
            writer.finish()
            size, states, is_fixed = writer.size, writer.states(), writer.has_fixed_keys

        written = self._writes.write(lambda: self._create(name), fill)
        return _Snapshot(StateHandle(name, epoch, size, extent, states, is_fixed), written, began_ms)

    def _completed(self, late: _LateAck) -> TaskAck:
        """Wait for the snapshot, and add its outcome to the acknowledgement."""
        ack, snapshot = late.ack, late.snapshot
        handle, failure, took_ms = snapshot.handle, None, ack.snapshot_ms
        try:
            took_ms = snapshot.written.result() - snapshot.began_ms
        except OSError as error:  # For example, the disk is full. The driver decides whether the job tolerates it.
            failure = f"{self._folder.path_of(handle.name)}: {error}"
        else:
            late.task.snapshot_written(handle.extent)
            if self._backups is not None:
                self._backups.wrote(ack.vertex, ack.subtask, handle)
        return replace(
            ack,
            handle=None if failure is not None else handle,
            snapshot_failure=failure,
            snapshot_ms=took_ms,
            # Without the time that was spent on other subtasks' snapshots.
            ended_ms=ack.ended_ms + max(0, took_ms - ack.snapshot_ms),
        )

    def _create(self, name: str) -> contextlib.AbstractContextManager[BinaryIO]:
        return self._folder.create(name) if self._backups is None else self._backups.create(self._folder, name)

    def _failure(self, exc: BaseException, kept: _KeptTask | None, vertex: int, subtask: int) -> Row:
        described = self._deployment.job_graph.vertices[vertex]
        failure = describe_failure(exc, vertex, described.name, subtask, described.parallelism)
        if kept is not None:
            with contextlib.suppress(Exception):  # Only the first failure is reported.
                kept.drop()
        return Row(FAILURE, subtask, 0, 0, 0, pickle.dumps(failure))


def _row_of(ack: TaskAck) -> Row:
    return Row(ACKNOWLEDGEMENT, ack.subtask, 0, 0, 0, ack.encode())


def _saved_by_others(command: EpochCommand, vertex: int, subtask: int) -> list[SavedState]:
    orders = [order for at, order in command.orders.items() if at[0] == vertex and at[1] != subtask]
    return [saved for order in orders for saved in order.saved]


def _notify(command: EpochCommand, kept: _KeptTask) -> None:
    for checkpoint in command.aborted_checkpoints:
        kept.task.notify_checkpoint_aborted(checkpoint)
    kept.task.notify_checkpoint_complete(command.completed_checkpoint)
    if kept.finished_epoch is not None and command.restorable_epoch >= kept.finished_epoch:
        kept.task.close()
