"""The seam between the job master and what runs its stages: Spark, or this process."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.savepoints import Copy, one_after_the_other
from penstock.jobmaster.local_dependencies import LocalDependencies
from penstock.runtime.failure import TaskFailure
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, Row
from penstock.runtime.saved_state import StateHandle
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, TaskAck, TaskHost


class StageExecutor(Protocol):
    """Runs all stages of an epoch that do not run in the driver."""

    keeps_tasks_in_place: bool
    """True if a subtask goes on in the process that ran its last epoch, as long as nothing fails."""

    def executors(self) -> tuple[str, int]:
        """The name of the session that jobs share, and how many executors (in Flink: TaskManagers) it has now."""

    def sibling(self) -> StageExecutor:
        """Another one for another region of the same job: they run at the same time and fail alone."""

    def deploy(self, deployment: JobDeployment, folder: Folder) -> None:
        """Make the job known; called again after a restart."""

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        """Run the stages; returns the rows for the driver: its vertices' input, acknowledgements, failures."""

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        """Write the parts of a savepoint, from another thread, while epochs go on."""

    def cancel(self) -> None:
        """Stop a running epoch, from another thread; `run_epoch` then raises."""

    def close(self) -> None:
        """Let go of the job."""


@dataclass
class EpochResult:
    acks: list[TaskAck] = field(default_factory=list)
    failures: list[TaskFailure] = field(default_factory=list)


def run_whole_epoch(
    executor: StageExecutor, host: TaskHost, deployment: JobDeployment, command: EpochCommand, source_rows: list[Row]
) -> EpochResult:
    """The executor's stages, then the driver's own vertices on what came out."""
    result = EpochResult()
    waiting = sort_out(executor.run_epoch(command, source_rows), result)
    if result.failures:
        return result
    for vertex in deployment.driver_vertices():
        for subtask in range(vertex.parallelism):
            rows = [row for row in waiting if (row.vertex, row.subtask) == (vertex.id, subtask)]
            sort_out(host.run_task(vertex.id, subtask, rows), result)
    return result


def sort_out(rows: Iterable[Row], result: EpochResult) -> list[Row]:
    """Put acknowledgements and failures into `result`; returns the other rows."""
    others = []
    for row in rows:
        if row.vertex == ACKNOWLEDGEMENT:
            result.acks.append(pickle.loads(row.chunk))
        elif row.vertex == FAILURE:
            result.failures.append(pickle.loads(row.chunk))
        else:
            others.append(row)
    return others


class InlineExecutor:
    """All stages in this process, one subtask after the other: a debugger stops in user code."""

    keeps_tasks_in_place = True

    def __init__(self, dependencies: LocalDependencies | None = None) -> None:
        self._dependencies = dependencies
        self._deployment: JobDeployment | None = None
        self._folder: Folder | None = None
        self._is_cancelled = False

    def executors(self) -> tuple[str, int]:
        return "inline", 1

    def sibling(self) -> InlineExecutor:
        return InlineExecutor(self._dependencies)

    def deploy(self, deployment: JobDeployment, folder: Folder) -> None:
        cached_files = {} if self._dependencies is None else self._dependencies.files
        self._deployment, self._folder = replace(deployment, cached_files=cached_files), folder

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        assert self._deployment is not None and self._folder is not None
        host = TaskHost(self._deployment, self._folder, command)
        rows = source_rows
        for stage, vertices in enumerate(self._deployment.stages()):
            width = max(vertex.parallelism for vertex in vertices)
            by_slot: list[list[Row]] = [[] for _ in range(width)]
            for row in rows:
                by_slot[row.subtask % width].append(row)
            rows = [row for slot in range(width) for row in host.run(stage, slot, by_slot[slot])]
            if self._is_cancelled:
                raise EpochCancelledError
        return rows

    def run_copies(self, copies: Iterable[Copy]) -> list[tuple[StateHandle, ...]]:
        return one_after_the_other(copies)

    def cancel(self) -> None:
        self._is_cancelled = True

    def close(self) -> None:
        """The job master forgets the tasks of this process."""
        if self._dependencies is not None:
            self._dependencies.close()


class EpochCancelledError(Exception):
    """An epoch was stopped because its job was cancelled."""
