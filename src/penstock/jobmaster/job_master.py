"""Runs one job: plans epochs, has them run, and moves on only when every subtask has acknowledged."""

from __future__ import annotations

import dataclasses
import logging
import secrets
import tempfile
import threading
from pathlib import Path
from typing import Any

from penstock.checkpoint.handles import HandleBook
from penstock.checkpoint.storage import FolderStateStorage
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import JobExecutionError, UserFunctionError
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.graph.descriptions import CollectionSourceDescription, SourceDescription
from penstock.graph.execution_graph import ExecutionGraph, ExecutionState
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.jobmaster.epoch_policy import EpochPolicy
from penstock.jobmaster.job_metrics import JobMetrics
from penstock.jobmaster.job_output import JobOutput, OutputError
from penstock.jobmaster.restart_strategy import build_restart_strategy
from penstock.jobmaster.source_coordinator import SourceCoordinator, build_source_coordinator
from penstock.jobmaster.stage_executor import EpochCancelledError, EpochResult, StageExecutor, run_whole_epoch
from penstock.runtime.failure import TaskFailure
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, TaskAck, TaskHost, forget_run, wall_clock_ms

_log = logging.getLogger(__name__)


class JobMaster:
    """One job from submission to its end. `run` blocks; `cancel` comes from another thread."""

    def __init__(self, job_id: JobID, job_graph: JobGraph, config: Configuration, executor: StageExecutor) -> None:
        self.job_id = job_id
        self.job_graph = job_graph
        self.execution_graph = ExecutionGraph(job_graph)
        self.status = JobStatus.INITIALIZING
        self.output = JobOutput()
        self.accumulators: dict[str, Any] = {}
        self._metrics = JobMetrics()
        self.restarts = 0
        self._config = config
        self._executor = executor
        self._policy = EpochPolicy(config.get(keys.EPOCH_INTERVAL))
        self._restart_strategy = build_restart_strategy(
            config, has_checkpoints=config.get_optional(keys.CHECKPOINT_INTERVAL) is not None
        )
        self._changed = threading.Condition()
        self._is_cancelled = False
        self._epoch = 0
        self._completed = 0
        self._book = HandleBook()
        self._sources: dict[int, SourceCoordinator] = {}
        self._positions: dict[int, Any] = {}
        self._started_ms = wall_clock_ms()

    # --- life ------------------------------------------------------------------------------------------------------

    def run(self) -> JobExecutionResult:
        """Run to the end. Raises what ended the job, unless it finished by itself or was cancelled."""
        try:
            self.status = JobStatus.CREATED
            with self._working_folder() as folder:
                self._run_in(Path(folder))
        except BaseException as failure:
            self._fail(failure)
            raise
        finally:
            self._executor.close()
        return JobExecutionResult(
            self.job_id,
            wall_clock_ms() - self._started_ms,
            {name: accumulator.get_local_value() for name, accumulator in self.accumulators.items()},
        )

    def _run_in(self, folder: Path) -> None:
        self._storage = FolderStateStorage(str(folder / "state"))
        Path(self._storage.folder).mkdir()
        self._runs_folder = folder / "runs"
        self._runs_folder.mkdir()
        try:
            self._start_sources(folder)
            self._run_with_restarts()
        finally:
            for source in self._sources.values():
                source.stop()

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The values of all metrics, by operator id and name."""
        return self._metrics.by_operator()

    def cancel(self) -> None:
        with self._changed:
            if self.status.is_globally_terminal_state():
                return
            self._is_cancelled = True
            self.status = JobStatus.CANCELLING
            self._changed.notify_all()
        self._executor.cancel()

    def _fail(self, failure: BaseException) -> None:
        self.status = JobStatus.FAILED
        self.execution_graph.transition_all(ExecutionState.FAILED)
        self.output.end(failure)

    def _working_folder(self) -> tempfile.TemporaryDirectory[str]:
        """The job's files while it runs; gone at its end, also when the program ends before the job."""
        parent = self._config.get_optional(keys.WORKING_DIR)
        if parent is not None:
            Path(parent).mkdir(parents=True, exist_ok=True)
        prefix = f"penstock-{str(self.job_id)[:8]}-"
        return tempfile.TemporaryDirectory(prefix=prefix, dir=parent, ignore_cleanup_errors=True)

    def _start_sources(self, folder: Path) -> None:
        # A batch job is one epoch: its keyed operators begin when they have all their input.
        max_records = None if self.job_graph.is_batch else self._config.get(keys.EPOCH_MAX_RECORDS)
        for vertex in self.job_graph.vertices:
            operator = vertex.head.operator
            if isinstance(operator, SourceDescription):
                spool = folder / "spool" / vertex.head.operator_id
                coordinator = build_source_coordinator(
                    operator, vertex.parallelism, spool, self._notify, max_records
                )
                self._sources[vertex.id] = coordinator
                coordinator.start()
        self._positions = {vertex: source.position for vertex, source in self._sources.items()}

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # --- attempts --------------------------------------------------------------------------------------------------

    def _run_with_restarts(self) -> None:
        while True:
            try:
                self._run_attempt()
            except EpochCancelledError:
                pass
            except Exception as failure:  # The restart strategy decides about every failure alike
                if not self._is_cancelled:
                    self._prepare_restart(failure)
                    continue
            break
        with self._changed:
            if self._is_cancelled:
                self.execution_graph.cancel_all()
            self.status = JobStatus.CANCELED if self._is_cancelled else JobStatus.FINISHED
        self.output.end()

    def _prepare_restart(self, failure: Exception) -> None:
        """Wait as the strategy says and go back to the last complete epoch; raises if the job is to fail."""
        self.status = JobStatus.FAILING
        if isinstance(failure, OutputError):
            raise failure
        delay_ms = self._restart_strategy.on_failure(wall_clock_ms())
        if delay_ms is None:
            raise failure
        self.status = JobStatus.RESTARTING
        self.restarts += 1
        _log.warning(
            "job '%s': attempt %d failed (%s), restarting in %d ms",
            self.job_graph.job_name,
            self.restarts,
            str(failure).partition("\n")[0],
            delay_ms,
        )
        for vertex in self.execution_graph.vertices():
            if not vertex.state.is_terminal:
                vertex.current.transition_to(ExecutionState.FAILED)
            vertex.new_attempt()
        for vertex_id, source in self._sources.items():
            source.rewind(self._positions[vertex_id])
        for name in set(self._storage.names()) - self._book.names():
            self._storage.delete(name)
        with self._changed:
            self._changed.wait_for(lambda: self._is_cancelled, timeout=delay_ms / 1000)

    def _run_attempt(self) -> None:
        if self._is_cancelled:
            return
        run_id = secrets.token_hex(8)
        parameters = self._config.get(keys.GLOBAL_JOB_PARAMETERS)
        deployment = JobDeployment(
            str(self.job_id), _without_collections(self.job_graph), self.restarts, parameters or {}
        )
        self.execution_graph.transition_all(ExecutionState.SCHEDULED, ExecutionState.DEPLOYING)
        self._executor.deploy(deployment, self._storage)
        self.execution_graph.transition_all(ExecutionState.INITIALIZING)
        run_folder = self._runs_folder / run_id
        run_folder.mkdir()
        try:
            while self._wait_for_work():
                if self._run_epoch(run_folder, deployment):
                    return
        finally:
            run_folder.rmdir()
            forget_run(run_id)

    def _wait_for_work(self) -> bool:
        """False if the job was cancelled."""
        with self._changed:
            while not self._is_cancelled:
                for source in self._sources.values():
                    source.check()
                has_work = any(source.has_work() for source in self._sources.values())
                wait_ms = self._policy.wait_ms(wall_clock_ms(), has_work)
                if wait_ms == 0:
                    return True
                self._changed.wait(None if wait_ms is None else wait_ms / 1000)
        return False

    # --- an epoch --------------------------------------------------------------------------------------------------

    def _run_epoch(self, run_folder: Path, deployment: JobDeployment) -> bool:
        """True if the job ended with this epoch."""
        now_ms = wall_clock_ms()
        self._policy.epoch_started(now_ms)
        source_rows = self._plan_sources()
        is_last = all(source.is_exhausted for source in self._sources.values())
        self._epoch += 1
        command = EpochCommand(
            epoch=self._epoch,
            run_id=run_folder.name,
            run_folder=str(run_folder),
            orders=self._book.orders(),
            now_ms=now_ms,
            completed_epoch=self._completed,
            keeps_state=not is_last,
        )
        host = TaskHost(deployment, self._storage, command)
        result = run_whole_epoch(self._executor, host, deployment, command, source_rows)
        self._check(result)
        self._complete(result.acks)
        return is_last

    def _plan_sources(self) -> list[Row]:
        return [
            Row(vertex, subtask, FROM_DRIVER, 0, 0, assignment.encode())
            for vertex, source in self._sources.items()
            for subtask, assignment in source.plan().items()
        ]

    def _check(self, result: EpochResult) -> None:
        if result.failures:
            raise self._error_of(result.failures[0])
        expected = sum(vertex.parallelism for vertex in self.job_graph.vertices)
        if len(result.acks) != expected:
            raise JobExecutionError(
                f"epoch {self._epoch}: {len(result.acks)} of {expected} subtasks acknowledged",
                str(self.job_id),
                self.job_graph.job_name,
            )

    def _complete(self, acks: list[TaskAck]) -> None:
        # State and positions move on together; whatever fails afterwards finds the epoch complete.
        unused = self._book.complete(acks)
        self._positions = {vertex: source.position for vertex, source in self._sources.items()}
        self._completed = self._epoch
        for name in unused:
            self._storage.delete(name)
        for vertex, source in self._sources.items():
            source.checkpoint_complete(self._positions[vertex])
        for ack in sorted(acks, key=lambda ack: (ack.vertex, ack.subtask)):
            self._record(ack)
            self.output.show(ack.outcome)
        self.output.flush()
        self._policy.epoch_completed(
            [ack.outcome.next_processing_time for ack in acks if ack.outcome.next_processing_time is not None]
        )

    def _record(self, ack: TaskAck) -> None:
        execution = self.execution_graph.job_vertices[ack.vertex].subtasks[ack.subtask].current
        if execution.state is ExecutionState.INITIALIZING:
            execution.transition_to(ExecutionState.RUNNING)
            with self._changed:
                self.status = JobStatus.RUNNING if not self._is_cancelled else self.status
        if ack.outcome.is_finished and execution.state is ExecutionState.RUNNING:
            execution.transition_to(ExecutionState.FINISHED)
        for operator_id, reports in ack.outcome.metrics.items():
            self._metrics.add(operator_id, ack.subtask, reports)
        for name, accumulator in ack.outcome.accumulators.items():
            if name in self.accumulators:
                self.accumulators[name].merge(accumulator)
            else:
                self.accumulators[name] = accumulator

    def _error_of(self, failure: TaskFailure) -> JobExecutionError:
        where = f"operator '{failure.operator}', subtask {failure.subtask + 1}/{failure.parallelism}"
        record = "" if failure.record is None else f", at record {failure.record}"
        message = (
            f"job '{self.job_graph.job_name}' failed in {where}{record}: {failure.exception_type}: {failure.message}"
        )
        error = self._exception(failure, f"{message}\n\n{failure.user_traceback}")
        error.__cause__ = failure.exception()
        return error

    def _exception(self, failure: TaskFailure, message: str) -> JobExecutionError:
        job_id, job_name = str(self.job_id), self.job_graph.job_name
        if not failure.is_user_error:
            return JobExecutionError(message, job_id, job_name)
        return UserFunctionError(
            message,
            operator=failure.operator,
            subtask=failure.subtask,
            record=failure.record,
            user_traceback=failure.user_traceback,
            job_id=job_id,
            job_name=job_name,
        )


def _without_collections(graph: JobGraph) -> JobGraph:
    """The graph as it goes to the executors: the driver hands out the elements of collections itself."""

    def slim(vertex: JobVertex) -> JobVertex:
        if not isinstance(vertex.head.operator, CollectionSourceDescription):
            return vertex
        source = dataclasses.replace(vertex.head.operator, values=())
        head = dataclasses.replace(vertex.head, operator=source)
        return dataclasses.replace(vertex, nodes=(head, *vertex.nodes[1:]))

    return dataclasses.replace(graph, vertices=tuple(map(slim, graph.vertices)))
