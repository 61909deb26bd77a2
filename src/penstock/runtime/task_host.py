"""Runs the subtasks of one stage in one slot for one epoch, and keeps them for the next one."""

from __future__ import annotations

import contextlib
import pickle
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock.runtime.chunk import encode
from penstock.runtime.failure import describe_failure
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, Row
from penstock.runtime.stream_task import EpochOutcome, JobDeployment, StreamTask


class StateStorage(Protocol):
    """Where subtasks leave their snapshots."""

    def write(self, name: str, content: bytes) -> None: ...

    def read(self, name: str) -> bytes: ...


@dataclass(frozen=True)
class StateHandle:
    """One snapshot file of one subtask."""

    name: str
    epoch: int
    size: int
    is_full: bool


@dataclass(frozen=True)
class SubtaskOrder:
    """What a subtask starts from in this epoch, and whether its snapshot is to be a full one."""

    handles: tuple[StateHandle, ...] = ()
    wants_full: bool = False


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
    completed_epoch: int = 0
    """The last epoch that all subtasks have acknowledged; 0 for none."""
    keeps_state: bool = True
    """False if the job ends with this epoch: no state is written."""


@dataclass(frozen=True)
class TaskAck:
    """A subtask's report that it is done with the epoch."""

    vertex: int
    subtask: int
    epoch: int
    handle: StateHandle | None
    """The new snapshot; None if the state did not change."""
    outcome: EpochOutcome
    started_ms: int
    ended_ms: int


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
    handles: tuple[StateHandle, ...]


# Python workers live longer than one epoch: the tasks they ran, by (run id, vertex, subtask).
_kept_tasks: dict[tuple[str, int, int], _KeptTask] = {}


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class TaskHost:
    """One slot of one stage."""

    def __init__(self, deployment: JobDeployment, storage: StateStorage, command: EpochCommand) -> None:
        self._deployment = deployment
        self._storage = storage
        self._command = command

    def run(self, stage: int, slot: int, rows: Iterable[Row]) -> Iterator[Row]:
        """Run every vertex of `stage` that has a subtask `slot`; rows for others pass through.

        Nothing is done after a row that carries a failure: the epoch is lost.
        """
        vertices = {v.id for v in self._deployment.job_graph.vertices if v.stage == stage and slot < v.parallelism}
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
            if kept is None or kept.handles != order.handles:
                if kept is not None:
                    kept.task.close()
                kept = self._build(vertex, subtask, order)
            else:
                kept.clock.start(self._command.now_ms)
            kept.task.notify_checkpoint_complete(self._command.completed_epoch)
            yield from kept.task.run_epoch(rows)
            handle = self._save(kept.task, vertex, subtask, order)
            if kept.task.is_finished or not self._command.keeps_state:
                kept.task.close()
            outcome = kept.task.outcome()  # After `close`, where functions may still add to accumulators.
            if self._command.keeps_state:
                kept.handles = following_handles(order.handles, handle)
                _kept_tasks[key] = kept
            ack = TaskAck(vertex, subtask, self._command.epoch, handle, outcome, started_ms, wall_clock_ms())
            yield Row(ACKNOWLEDGEMENT, subtask, 0, 0, 0, encode(ack))
        except (Exception, SystemExit) as exc:  # Whatever a task raises is reported to the driver as its failure.
            yield self._failure(exc, kept, vertex, subtask)

    def _build(self, vertex: int, subtask: int, order: SubtaskOrder) -> _KeptTask:
        clock = EpochClock()
        clock.start(self._command.now_ms)
        task = StreamTask(self._deployment, vertex, subtask, clock)
        for handle in order.handles:
            task.restore(self._storage.read(handle.name))
        try:
            if not task.is_finished:
                task.open()
        except Exception:
            with contextlib.suppress(Exception):  # Close what was opened; the first failure is the one that is told.
                task.close()
            raise
        return _KeptTask(task, clock, order.handles)

    def _save(self, task: StreamTask, vertex: int, subtask: int, order: SubtaskOrder) -> StateHandle | None:
        if not self._command.keeps_state:
            return None
        snapshot = task.snapshot(self._command.epoch, order.wants_full)
        if snapshot is None:
            return None
        # Spark may run a task twice: each run writes a file of its own, and only the acknowledged one counts.
        name = f"v{vertex}-s{subtask}-e{self._command.epoch}-{secrets.token_hex(4)}"
        self._storage.write(name, snapshot)
        is_full = order.wants_full or not order.handles
        return StateHandle(name, self._command.epoch, len(snapshot), is_full)

    def _failure(self, exc: BaseException, kept: _KeptTask | None, vertex: int, subtask: int) -> Row:
        described = self._deployment.job_graph.vertices[vertex]
        failure = describe_failure(exc, vertex, described.name, subtask, described.parallelism)
        if kept is not None:
            with contextlib.suppress(Exception):  # The first failure is the one that is told.
                kept.task.close()
        return Row(FAILURE, subtask, 0, 0, 0, pickle.dumps(failure))


def following_handles(handles: tuple[StateHandle, ...], new: StateHandle | None) -> tuple[StateHandle, ...]:
    """What a subtask is restored from after a snapshot: a full one replaces all before it."""
    if new is None:
        return handles
    return (new,) if new.is_full else (*handles, new)


def forget_run(run_id: str) -> None:
    """Close and drop the tasks of a run in this process."""
    for key in [key for key in list(_kept_tasks) if key[0] == run_id]:
        kept = _kept_tasks.pop(key)
        if not kept.task.is_finished:
            # The run is over: what a function fails to close cannot change its result any more.
            with contextlib.suppress(Exception):
                kept.task.close()
