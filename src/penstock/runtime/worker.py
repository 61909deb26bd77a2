"""A worker: several slots of a region in one process, and the stages of an epoch that they run.

Slot i is in worker i mod W. A worker runs one stage after the other, and in a stage its slots one after the other. It
is hosted in three ways: in the driver (one worker, nothing to exchange), in a Spark task that lasts as long as the
region runs, or, in batch mode, stage by stage in the tasks of a Spark job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.graph.job_graph import DRIVER_STAGE
from penstock.graph.partitioners import StreamPartitioner, connected_downstream
from penstock.runtime.exchange import Exchange, Inbox, Mark, NoExchange
from penstock.runtime.local_backups import LocalBackups
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.rows import FAILURE, Row
from penstock.runtime.saved_state import StateFolder
from penstock.runtime.task_host import TaskHost


@dataclass(frozen=True)
class WorkerStage:
    """A worker's part of a stage."""

    number: int
    tasks: tuple[tuple[int, int], ...]
    """Vertex and subtask, in the order in which they run."""
    awaits: frozenset[Mark]
    """The markers that must arrive before the stage begins: which workers have finished which stages."""
    notifies: tuple[int, ...]
    """The other workers that wait for this stage to end."""


def stages_of(deployment: JobDeployment, worker: int, workers: int) -> list[WorkerStage]:
    """The stages of one worker, out of `workers`."""
    graph = deployment.job_graph
    ours = {vertex.id: vertex for vertex in deployment.vertices() if vertex.stage != DRIVER_STAGE}
    awaits: dict[int, set[Mark]] = {}
    notifies: dict[int, set[int]] = {}
    for edge in graph.edges:
        if edge.source_vertex not in ours or edge.target_vertex not in ours:
            continue
        source, target = ours[edge.source_vertex], ours[edge.target_vertex]
        for sender in range(source.parallelism):
            for receiver in _receivers(edge.partitioner, sender, source.parallelism, target.parallelism, workers):
                if receiver == sender % workers:
                    continue
                if receiver == worker:
                    awaits.setdefault(target.stage, set()).add((sender % workers, source.stage))
                elif sender % workers == worker:
                    notifies.setdefault(source.stage, set()).add(receiver)
    return [
        WorkerStage(
            number,
            tuple(
                (vertex.id, slot)
                for slot in range(worker, max((vertex.parallelism for vertex in vertices), default=0), workers)
                for vertex in vertices
                if slot < vertex.parallelism
            ),
            frozenset(awaits.get(number, ())),
            tuple(sorted(notifies.get(number, ()))),
        )
        for number, vertices in enumerate(deployment.stages())
    ]


def _receivers(
    partitioner: StreamPartitioner, sender: int, senders: int, receivers: int, workers: int
) -> Iterable[int]:
    if not partitioner.is_pointwise:
        return range(min(workers, receivers))
    return {each % workers for each in connected_downstream(partitioner, sender, senders, receivers)}


class Worker:
    """Runs the part of its slots in each epoch of one run."""

    def __init__(
        self,
        deployment: JobDeployment,
        folder: StateFolder,
        index: int = 0,
        workers: int = 1,
        inbox: Inbox | None = None,
        exchange: Exchange | None = None,
        backups: LocalBackups | None = None,
    ) -> None:
        self._backups = backups
        self._index = index
        self._workers = workers
        self._inbox = inbox or Inbox()
        self._exchange = exchange or NoExchange()
        self._host = TaskHost(deployment, folder, backups)
        self._stages = stages_of(deployment, index, workers)
        self._in_driver = {vertex.id for vertex in deployment.driver_vertices()}

    def run_epoch(self, command: EpochCommand, source_rows: Iterable[Row]) -> Iterator[Row]:
        """Run an epoch; yields the rows for the driver: input for its own vertices, and acknowledgements.

        Nothing follows after a failure. Raises EpochAbandonedError if the driver has given up the epoch.
        """
        if self._backups is not None:
            self._backups.completed(command.restorable_epoch)
        for row in source_rows:
            self._inbox.put(command.epoch, row)
        is_plain = command.is_plain
        for stage in self._stages:
            if not command.processes_nothing:  # Workers send each other nothing then.
                self._inbox.wait_for(command.epoch, stage.awaits)
            for row in self._run_stage(command, stage, is_plain):
                yield row
                if row.vertex == FAILURE:
                    return
            if not command.processes_nothing:
                self._exchange.end_stage(command.epoch, stage.number, stage.notifies)
        yield from self._host.late_acknowledgements()
        self._inbox.end_epoch(command.epoch)

    def _run_stage(self, command: EpochCommand, stage: WorkerStage, is_plain: bool) -> Iterator[Row]:
        for vertex, subtask in stage.tasks:
            self._inbox.check()
            rows = self._inbox.take(command.epoch, vertex, subtask)
            if is_plain and not rows and self._host.sleeps_through(command, vertex, subtask):
                continue
            for row in self._host.run_task(command, vertex, subtask, rows):
                if row.vertex < 0 or row.vertex in self._in_driver:
                    yield row
                else:
                    self._send(command.epoch, row)

    def _send(self, epoch: int, row: Row) -> None:
        worker = row.subtask % self._workers
        if worker == self._index:
            self._inbox.put(epoch, row)
        else:
            self._exchange.send(epoch, worker, row)

    def close(self) -> None:
        """Close and drop the subtasks."""
        self._host.close()


def run_stage_alone(
    deployment: JobDeployment,
    folder: StateFolder,
    command: EpochCommand,
    stage: WorkerStage,
    received: Iterable[Row],
) -> Iterator[Row]:
    """Run one stage of a worker whose stages run in different processes, and whose subtasks end with their stage.

    Yields the rows for all receivers, including received rows for later stages. If a failure is among the received
    rows, no subtask runs, because the epoch is lost.
    """
    host, inbox = TaskHost(deployment, folder), Inbox()
    here = set(stage.tasks)
    has_failed = False
    for row in received:
        if (row.vertex, row.subtask) in here:
            inbox.put(command.epoch, row)
        else:
            has_failed = has_failed or row.vertex == FAILURE
            yield row
    if not has_failed:
        for vertex, subtask in stage.tasks:
            yield from host.run_task(command, vertex, subtask, inbox.take(command.epoch, vertex, subtask))
        yield from host.late_acknowledgements()
    host.close()
    inbox.end_epoch(command.epoch)
