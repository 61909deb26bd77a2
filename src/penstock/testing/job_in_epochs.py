"""A whole job in this process, epoch by epoch, with its checkpoints in the hands of the test."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from penstock.checkpoint.coordinator import CheckpointCoordinator
from penstock.checkpoint.folders import Folder
from penstock.checkpoint.job_checkpoints import JobCheckpoints
from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.restoring import FoundCheckpoint, restore_job
from penstock.checkpoint.statistics import CheckpointStatsTracker
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common.moment import Moment
from penstock.datastream.script_classes import definitions_of
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.jobmaster.execution.stage_executor import InlineExecutor, run_whole_epoch
from penstock.runtime.protocol import EpochCommand, JobDeployment, TaskAck
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.state.backends import HeapBackend, KeyedBackend
from penstock.runtime.task_host import TaskHost
from penstock.testing.memory_folder import MemoryFolder

_run_numbers = itertools.count()


class JobInEpochs:
    """Runs the job that `build` puts on a stream; the test hands the records of each epoch to the source.

    `restored` begins from a checkpoint of another job, whose parallelism and operators may differ. `rebuilds` throws
    the tasks away after every epoch and restores them for the next. `retained` checkpoints stay in the folder.

    >>> job = JobInEpochs(lambda stream: stream.key_by(lambda pair: pair[0]).sum(1))
    >>> job.epoch([("a", 1)]), job.epoch([("a", 2)])
    (["('a', 1)"], ["('a', 3)"])
    >>> job.close()
    """

    def __init__(
        self,
        build: Callable[[Any], Any],
        parallelism: int = 1,
        *,
        restored: FoundCheckpoint | None = None,
        allows_non_restored: bool = False,
        rebuilds: bool = False,
        folder: Folder | None = None,
        state_backend: KeyedBackend | None = None,
        retained: int = 1,
    ) -> None:
        graph = _graph_of(build, parallelism)
        fitted = None if restored is None else restore_job(graph, restored, allows_non_restored)
        self.graph = graph if fitted is None else fitted.job_graph
        self.folder: Folder = MemoryFolder() if folder is None else folder
        store = CompletedCheckpointStore(self.folder, retained)
        self.stats = CheckpointStatsTracker()
        self._checkpoints = JobCheckpoints("0" * 32, self.graph, store, self.stats, True, fitted)
        everything = frozenset(vertex.id for vertex in self.graph.vertices)
        self._coordinator = CheckpointCoordinator(self._checkpoints, everything, CheckpointOptions(interval_ms=0))
        self._deployment = JobDeployment("0" * 32, self.graph, state_backend=state_backend or HeapBackend())
        self._executor = InlineExecutor()
        self._rebuilds = rebuilds
        self._epoch = self._coordinator.completed_id
        self._previous = 0
        self._host: TaskHost | None = None
        self.acks: list[TaskAck] = []

    def epoch(
        self, records: list[Any], now_ms: int = 0, *, is_last: bool = False, is_checkpoint: bool = True
    ) -> list[str]:
        """Run an epoch on `records`; returns what came out, as text, sorted."""
        # In a context of its own: this thread may run other jobs, and tests of other things.
        return copy_context().run(self._run_epoch, records, now_ms, is_last, is_checkpoint)

    def _run_epoch(self, records: list[Any], now_ms: int, is_last: bool, is_checkpoint: bool) -> list[str]:
        if self._rebuilds or self._host is None:
            self._start_run()
        assert self._host is not None
        self._epoch += 1
        if is_checkpoint:
            self._coordinator.start(self._epoch, Moment(now_ms, now_ms))
        command = EpochCommand(
            self._epoch,
            now_ms,
            self._coordinator.orders(),
            previous_epoch=self._previous,
            restorable_epoch=self._coordinator.completed_id,
            is_checkpoint=is_checkpoint,
            completed_checkpoint=self._coordinator.completed_id,
            is_last=is_last,
        )
        rows = [Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment(records, is_last).encode())]
        result = run_whole_epoch(self._executor, self._host, self._deployment, command, rows)
        if result.failures:
            raise AssertionError(f"epoch {self._epoch} failed: {result.failures[0]}")
        self.acks, self._previous = result.acks, self._epoch
        if is_checkpoint:
            self._complete(now_ms)
        return sorted(repr(value) for ack in self.acks for part in ack.outcome.collected.values() for value in part)

    def _complete(self, now_ms: int) -> None:
        self._coordinator.acknowledged(self.acks)
        prepared = self._coordinator.complete_acknowledged({}, Moment(now_ms, now_ms))
        assert prepared is not None and self._checkpoints.latest is not None, "nothing fails to be written to memory"
        self._checkpoints.store.drain()
        self.committables = prepared
        self.checkpoint = FoundCheckpoint(self._checkpoints.latest, self.folder, "the test's checkpoint")

    def _start_run(self) -> None:
        self.replace_processes()
        self._previous = 0

    def replace_processes(self) -> None:
        """Replace the processes that hold the tasks by empty ones, without notice."""
        self.close()
        deployment = replace(self._deployment, run_id=f"epochs {next(_run_numbers)}")
        self._executor.deploy(deployment, self.folder, on_loss=lambda: None)
        self._host = TaskHost(deployment, self.folder)

    def fail(self) -> None:
        """Go back to the last checkpoint: what came after it is lost."""
        self._coordinator.reset()
        self._start_run()

    def close(self) -> None:
        """End the job's tasks, as at the end of a run."""
        self._executor.end_run()
        if self._host is not None:
            self._host.close()
            self._host = None


def _graph_of(build: Callable[[Any], Any], parallelism: int) -> JobGraph:
    from penstock.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    source = env.socket_text_stream("nowhere", 1)  # Any source will do: the test takes its place.
    build(source)._sink("collected", CollectSinkDescription("collected"))
    job_graph = build_job_graph(env.get_stream_graph())
    return replace(job_graph, script_classes=definitions_of(job_graph))
