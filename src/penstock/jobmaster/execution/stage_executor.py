"""The seam between the job master and what runs its stages: Spark, or this process."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.savepoints import Copy, one_after_the_other
from penstock.jobmaster.dependencies.local_dependencies import LocalDependencies
from penstock.runtime.failure import TaskFailure
from penstock.runtime.protocol import EpochCommand, JobDeployment, TaskAck
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, Row
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.task_host import TaskHost
from penstock.runtime.thread_dump import ProcessThreads
from penstock.runtime.worker import Worker

TakeOutput = Callable[[bytes, Callable[[], bool]], None]
"""Takes what workers have written, and a function that says whether that is still wanted."""


@dataclass(frozen=True)
class TaskDone:
    """What a subtask did in the epoch that runs."""

    vertex: int
    subtask: int
    records_in: int
    records_out: int

    @staticmethod
    def of(ack: TaskAck) -> TaskDone:
        return TaskDone(ack.vertex, ack.subtask, ack.outcome.records_in, ack.outcome.records_out)


class StageExecutor(Protocol):
    """Runs all stages of a region that do not run in the driver."""

    def executors(self) -> tuple[str, int]:
        """The name of the session that jobs share, and how many executors (in Flink: TaskManagers) it has now."""

    def sibling(self) -> StageExecutor:
        """Another one for another region of the same job: they run at the same time and fail alone."""

    def deploy(self, deployment: JobDeployment, folder: Folder, on_loss: Callable[[], None]) -> None:
        """Begin a run of the region, its first or one after a failure.

        `on_loss` is called, from another thread, when what runs the region is lost; `check` then says so.
        """

    def show_output(self, take: TakeOutput) -> None:
        """Choose who gets what functions print and log in other processes, also for siblings."""

    def check(self) -> None:
        """Raise if what runs the region is lost."""

    def loss(self) -> str | None:
        """After a failure: why nothing can run here any more; None if another attempt can be made."""

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        """Run the stages; returns the rows for the driver: its vertices' input, acknowledgements, failures."""

    def tasks_done(self) -> list[TaskDone]:
        """Which subtasks have done their part of the epoch that runs, as far as that is known before its end."""

    def threads(self) -> list[ProcessThreads]:
        """What the threads of the region's other processes are doing; called from another thread."""

    def end_run(self) -> None:
        """Close and drop the subtasks of the run, even if it failed in the middle of an epoch."""

    def end_region(self) -> None:
        """After the last run: give back what the region held, while others may continue. Only `close` follows."""

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        """Write the parts of a savepoint, from another thread, while epochs run."""

    def cancel(self) -> None:
        """Stop a running epoch, from another thread; `run_epoch` then raises."""

    def close(self) -> None:
        """Let go of the job."""


@dataclass
class EpochResult:
    acks: list[TaskAck] = field(default_factory=list)
    failures: list[TaskFailure] = field(default_factory=list)
    is_whole: bool = True
    """True if all subtasks acknowledge; in a plain epoch only those do that had something to do."""


def run_whole_epoch(
    executor: StageExecutor, host: TaskHost, deployment: JobDeployment, command: EpochCommand, source_rows: list[Row]
) -> EpochResult:
    """The executor's stages, then the driver's own vertices on what came out."""
    is_plain = command.is_plain
    result = EpochResult(is_whole=not is_plain)
    waiting = sort_out(executor.run_epoch(command, source_rows), result)
    if result.failures:
        return result
    for vertex in deployment.driver_vertices():
        for subtask in range(vertex.parallelism):
            rows = waiting.get((vertex.id, subtask), [])
            if is_plain and not rows and host.sleeps_through(command, vertex.id, subtask):
                continue
            sort_out(host.run_task(command, vertex.id, subtask, rows), result)
    sort_out(host.late_acknowledgements(), result)
    return result


def sort_out(rows: Iterable[Row], result: EpochResult) -> dict[tuple[int, int], list[Row]]:
    """Put acknowledgements and failures into `result`; returns the other rows, by vertex and subtask."""
    others: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        if row.vertex == ACKNOWLEDGEMENT:
            result.acks.append(TaskAck.decode(row.chunk))
        elif row.vertex == FAILURE:
            result.failures.append(pickle.loads(row.chunk))
        else:
            others.setdefault((row.vertex, row.subtask), []).append(row)
    return others


class InlineExecutor:
    """All stages in this process, one subtask after the other: a debugger stops in user code."""

    def __init__(self, dependencies: LocalDependencies | None = None) -> None:
        self._dependencies = dependencies
        self._worker: Worker | None = None
        self._is_cancelled = False
        self._done: list[TaskDone] = []

    def executors(self) -> tuple[str, int]:
        return "inline", 1

    def sibling(self) -> InlineExecutor:
        return InlineExecutor(self._dependencies)

    def deploy(self, deployment: JobDeployment, folder: Folder, on_loss: Callable[[], None]) -> None:
        cached_files = {} if self._dependencies is None else self._dependencies.files
        self._worker = Worker(replace(deployment, cached_files=cached_files), folder)
        self._is_batch = deployment.job_graph.is_batch

    def show_output(self, take: TakeOutput) -> None:
        """Functions write where the program does."""

    def check(self) -> None:
        """It can only be lost together with the driver."""

    def loss(self) -> str | None:
        return None

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        assert self._worker is not None
        rows = []
        self._done = []
        for row in self._worker.run_epoch(command, source_rows):
            if self._is_cancelled:
                raise EpochCancelledError
            rows.append(row)
            if self._is_batch and row.vertex == ACKNOWLEDGEMENT:
                self._done.append(TaskDone.of(TaskAck.decode(row.chunk)))
        return rows

    def tasks_done(self) -> list[TaskDone]:
        return list(self._done)

    def threads(self) -> list[ProcessThreads]:
        return []

    def end_run(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def end_region(self) -> None:
        """The dependencies, which it shares with the others, go with the job."""

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        return one_after_the_other(copies)

    def cancel(self) -> None:
        self._is_cancelled = True

    def close(self) -> None:
        if self._dependencies is not None:
            self._dependencies.close()


class EpochCancelledError(Exception):
    """An epoch was stopped because its job was cancelled."""
