"""Runs one job: plans epochs, has them run, and moves on only when every subtask has acknowledged."""

from __future__ import annotations

import copy
import logging
import secrets
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from penstock.checkpoint.coordinator import CheckpointCoordinator
from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.folders import Folder, LocalFolder, folder_at
from penstock.checkpoint.metadata import CANONICAL
from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.restoring import FoundCheckpoint, RestoredJob, restore_job
from penstock.checkpoint.savepoints import check_format
from penstock.checkpoint.statistics import CheckpointStatsTracker
from penstock.checkpoint.store import CompletedCheckpointStore, remove_claimed
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import CheckpointError, JobExecutionError
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.graph.descriptions import SourceDescription
from penstock.graph.execution_graph import ExecutionGraph, ExecutionState
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.epoch_policy import EpochPolicy
from penstock.jobmaster.failure_history import FailureHistory, FailureRecord, error_of
from penstock.jobmaster.job_contents import hears_of_checkpoints, without_collections
from penstock.jobmaster.job_metrics import JobMetrics
from penstock.jobmaster.job_output import JobOutput, OutputError
from penstock.jobmaster.job_times import JobTimes
from penstock.jobmaster.restart_strategy import NoRestart, build_restart_strategy
from penstock.jobmaster.savepoint_requests import CheckpointRequest, Request, SavepointRequest, SavepointWriter
from penstock.jobmaster.sink_commits import SinkCommits
from penstock.jobmaster.source_coordinator import SourceCoordinator, build_source_coordinator
from penstock.jobmaster.stage_executor import EpochCancelledError, EpochResult, StageExecutor, run_whole_epoch
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.state.backends import HeapBackend
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, TaskAck, TaskHost, forget_run, wall_clock_ms

_log = logging.getLogger(__name__)


class JobMaster:
    """One job from submission to its end. `run` blocks; `cancel` and requests for savepoints come from other threads."""

    def __init__(self, job_id: JobID, job_graph: JobGraph, config: Configuration, executor: StageExecutor) -> None:
        self.job_id = job_id
        self._config = config
        self._executor = executor
        self._restart_strategy = build_restart_strategy(
            config, has_checkpoints=config.get_optional(keys.CHECKPOINT_INTERVAL) is not None
        )
        self.options = self._checkpoint_options(job_graph)
        self._restored = self._find_state(job_graph)
        self.job_graph = job_graph if self._restored is None else self._restored.job_graph
        self.execution_graph = ExecutionGraph(self.job_graph)
        self._times = JobTimes()
        self.output = JobOutput(holds_collected=bool(self.options.interval_ms))
        self.accumulators: dict[str, Any] = {}
        self.checkpoints = CheckpointStatsTracker(self.options.history)
        self._failures = FailureHistory(config.get(keys.WEB_EXCEPTION_HISTORY))
        self._metrics = JobMetrics()
        self.restarts = 0
        self._commits = SinkCommits(self.job_graph)
        self._policy = EpochPolicy(config.get(keys.EPOCH_INTERVAL))
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._is_cancelled = False
        self._epoch = 0 if self._restored is None else self._restored.found.metadata.checkpoint_id
        self._claimed = None if self._restored is None else self._restored.found
        self._uncommitted: dict[str, list[Any]] = {}
        self._sources: dict[int, SourceCoordinator] = {}

    def _checkpoint_options(self, job_graph: JobGraph) -> CheckpointOptions:
        options = CheckpointOptions.of(self._config)
        interval_ms = options.interval_ms
        if interval_ms is None and not isinstance(self._restart_strategy, NoRestart):
            interval_ms = 0  # To restart from somewhere.
        if not self._executor.keeps_tasks_in_place:
            interval_ms = 0  # A task that goes on elsewhere takes its state from its files.
        return options.with_interval(None if job_graph.is_batch else interval_ms)

    def _find_state(self, job_graph: JobGraph) -> RestoredJob | None:
        if self.options.restore_path is None:
            return None
        found = find_checkpoint(self.options.restore_path)
        return restore_job(job_graph, found, self.options.allows_non_restored)

    # --- what others ask -------------------------------------------------------------------------------------------

    @property
    def status(self) -> JobStatus:
        return self._times.status

    @property
    def timestamps(self) -> dict[str, int]:
        """When the job entered each status, by its name; 0 for never."""
        return self._times.entered_ms()

    @property
    def started_ms(self) -> int:
        return self._times.started_ms

    @property
    def ended_ms(self) -> int | None:
        return self._times.ended_ms

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The values of all metrics, by operator id and name."""
        return self._metrics.by_operator()

    @property
    def failures(self) -> list[FailureRecord]:
        """What failed, newest first."""
        return self._failures.newest_first()

    def cancel(self) -> None:
        with self._changed:
            if self.status.is_globally_terminal_state():
                return
            self._is_cancelled = True
            self._times.enter(JobStatus.CANCELLING)
            self._changed.notify_all()
        self._executor.cancel()

    def trigger_checkpoint(self) -> Future[int]:
        """Take a checkpoint now; its id."""
        request = CheckpointRequest()
        self._ask(request)
        return request.answer

    def trigger_savepoint(self, directory: str | None, format_type: str = CANONICAL) -> Future[str]:
        """Write a savepoint while the job goes on; its path."""
        request = SavepointRequest(self._savepoint_directory(directory), format_type)
        self._ask(request)
        return request.answer

    def stop_with_savepoint(self, directory: str | None, drain: bool, format_type: str = CANONICAL) -> Future[str]:
        """Write a savepoint and end the job with it, as finished.

        With `drain` the input ends first: windows and timers of event time fire, and the job cannot be continued.
        """
        request = SavepointRequest(self._savepoint_directory(directory), format_type, stops_job=True, drains=drain)
        self._ask(request)
        return request.answer

    def _savepoint_directory(self, directory: str | None) -> str:
        chosen = directory or self.options.savepoint_directory
        if chosen is None:
            raise CheckpointError(
                f"where shall the savepoint go? Name a directory, or set {keys.SAVEPOINT_DIR.key} in the configuration"
            )
        return chosen

    def _ask(self, request: Request) -> None:
        if isinstance(request, SavepointRequest):
            check_format(request.format_type)
        if self.job_graph.is_batch:
            raise CheckpointError(
                f"job '{self.job_graph.job_name}' runs in batch mode, which has no checkpoints and no savepoints; run "
                f"it with execution.runtime-mode STREAMING"
            )
        with self._changed:
            if self.status.is_terminal_state() or self._is_cancelled:
                raise CheckpointError(f"job {self.job_id} is {self.status.name} and takes no savepoint any more")
            self._requests.append(request)
            self._changed.notify_all()

    # --- life ------------------------------------------------------------------------------------------------------

    def run(self) -> JobExecutionResult:
        """Run to the end. Raises what ended the job, unless it finished by itself or was cancelled."""
        try:
            self._times.enter(JobStatus.CREATED)
            with self._working_folder() as folder:
                self._run_in(Path(folder))
        except BaseException as failure:
            self._fail(failure)
            raise
        finally:
            self._executor.close()
        return JobExecutionResult(
            self.job_id,
            wall_clock_ms() - self.started_ms,
            {name: accumulator.get_local_value() for name, accumulator in self.accumulators.items()},
        )

    def _run_in(self, folder: Path) -> None:
        self._runs_folder = folder / "runs"
        self._runs_folder.mkdir()
        store = CompletedCheckpointStore(self._checkpoint_folder(folder), self.options.retained)
        self._coordinator = CheckpointCoordinator(
            str(self.job_id), self.job_graph, store, self.options, self.checkpoints, self._restored
        )
        self._folder = store.folder
        self._savepoints = SavepointWriter(store, self._executor.run_copies)
        try:
            self._start_sources(folder)
            self._run_with_restarts()
        except BaseException:
            self._end_checkpoints(store, JobStatus.FAILED)
            raise
        else:
            self._end_checkpoints(store, self.status)
        finally:
            self._refuse_requests()
            self._commits.close()
            for source in self._sources.values():
                source.stop()

    def _checkpoint_folder(self, folder: Path) -> Folder:
        if self.options.directory is None:
            return LocalFolder(str(folder / "checkpoints"))
        return folder_at(self.options.directory).within(str(self.job_id))

    def _end_checkpoints(self, store: CompletedCheckpointStore, status: JobStatus) -> None:
        self._savepoints.wait()
        if not self.options.keeps_after(status.name):
            store.remove_all()

    def _fail(self, failure: BaseException) -> None:
        self._times.enter(JobStatus.FAILED)
        self.execution_graph.transition_all(ExecutionState.FAILED)
        self._failures.add(failure, wall_clock_ms())
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
        restored = {} if self._restored is None else self._restored.positions
        for vertex in self.job_graph.vertices:
            operator = vertex.head.operator
            if isinstance(operator, SourceDescription):
                spool = folder / "spool" / vertex.head.operator_id
                coordinator = build_source_coordinator(
                    operator, vertex.parallelism, spool, self._notify, max_records
                )
                self._sources[vertex.id] = coordinator
                if vertex.head.operator_id in restored and self._restored is not None:
                    coordinator.restore(restored[vertex.head.operator_id], self._restored.is_exact)
                coordinator.start()
        self._positions = self._current_positions()
        self._accumulators_then = copy.deepcopy(self.accumulators)

    def _current_positions(self) -> dict[int, Any]:
        return {vertex: source.position for vertex, source in self._sources.items()}

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # --- attempts --------------------------------------------------------------------------------------------------

    def _run_with_restarts(self) -> None:
        if self._restored is not None:
            self._coordinator.restored_from(self._restored, wall_clock_ms())
            self._uncommitted = self._restored.committables
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
            self._times.enter(JobStatus.CANCELED if self._is_cancelled else JobStatus.FINISHED)
        self.output.end()

    def _prepare_restart(self, failure: Exception) -> None:
        """Wait as the strategy says and go back to the last complete checkpoint; raises if the job is to fail."""
        self._times.enter(JobStatus.FAILING)
        self._coordinator.epoch_failed(str(failure).partition("\n")[0], wall_clock_ms())
        if isinstance(failure, OutputError):
            raise failure
        delay_ms = self._restart_strategy.on_failure(wall_clock_ms())
        if delay_ms is None:
            raise failure
        self._times.enter(JobStatus.RESTARTING)
        self._failures.add(failure, wall_clock_ms())
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
        self._go_back()
        with self._changed:
            self._changed.wait_for(lambda: self._is_cancelled, timeout=delay_ms / 1000)

    def _go_back(self) -> None:
        self._coordinator.reset()
        for vertex_id, source in self._sources.items():
            source.rewind(self._positions[vertex_id])
        self.accumulators = copy.deepcopy(self._accumulators_then)
        self.output.drop_held()

    def _run_attempt(self) -> None:
        if self._is_cancelled:
            return
        self._commit()
        run_id = secrets.token_hex(8)
        self.execution_graph.transition_all(ExecutionState.SCHEDULED, ExecutionState.DEPLOYING)
        deployment = self._deployment()
        self._executor.deploy(deployment, self._folder)
        self.execution_graph.transition_all(ExecutionState.INITIALIZING)
        run_folder = self._runs_folder / run_id
        run_folder.mkdir()
        self._previous_epoch = 0
        try:
            while self._wait_for_work():
                if self._run_epoch(run_folder, deployment):
                    return
        finally:
            run_folder.rmdir()
            forget_run(run_id)

    def _deployment(self) -> JobDeployment:
        return JobDeployment(
            str(self.job_id),
            without_collections(self.job_graph),
            self.restarts,
            self._config.get(keys.GLOBAL_JOB_PARAMETERS) or {},
            state_backend=HeapBackend(tracks_changes=self.options.interval_ms is not None),
        )

    def _wait_for_work(self) -> bool:
        """False if the job was cancelled."""
        with self._changed:
            while not self._is_cancelled:
                for source in self._sources.values():
                    source.check()
                now_ms = wall_clock_ms()
                has_work = bool(self._requests) or any(source.has_work() for source in self._sources.values())
                wait_ms = self._policy.wait_ms(now_ms, has_work, self._coordinator.policy.wake_up_ms(now_ms))
                if wait_ms == 0:
                    return True
                self._changed.wait(None if wait_ms is None else wait_ms / 1000)
        return False

    # --- an epoch --------------------------------------------------------------------------------------------------

    def _run_epoch(self, run_folder: Path, deployment: JobDeployment) -> bool:
        """True if the job ended with this epoch."""
        now_ms = wall_clock_ms()
        self._policy.epoch_started(now_ms)
        with self._changed:
            requests, self._requests = self._requests, []
        try:
            return self._run_requested_epoch(run_folder, deployment, requests, now_ms)
        except BaseException as failure:
            for request in requests:
                if not request.answer.done():
                    request.answer.set_exception(CheckpointError(f"the job failed before it was taken: {failure}"))
            raise

    def _run_requested_epoch(
        self, run_folder: Path, deployment: JobDeployment, requests: list[Request], now_ms: int
    ) -> bool:
        savepoints = [request for request in requests if isinstance(request, SavepointRequest)]
        stop = next((request for request in savepoints if request.stops_job), None)
        source_rows = self._plan_sources(stop)
        is_last = stop is not None or all(source.is_exhausted for source in self._sources.values())
        is_checkpoint = bool(requests) or self._coordinator.policy.is_due(now_ms) or (is_last and self._ends_safely())
        has_closing = is_checkpoint and is_last and hears_of_checkpoints(self.job_graph)
        self._epoch += 1
        if is_checkpoint:
            self._coordinator.start(self._epoch, now_ms, savepoints[0].format_type if savepoints else None)
        command = self._command(run_folder, now_ms, is_checkpoint, is_last and not has_closing)
        result = self._run_command(command, deployment, source_rows)
        self._complete(result.acks, requests if is_checkpoint else None)
        if has_closing:
            self._epoch += 1
            self._run_command(self._command(run_folder, wall_clock_ms(), is_closing=True), deployment, [])
        return is_last

    def _ends_safely(self) -> bool:
        """True if the last epoch is a checkpoint: somebody commits what belongs to it."""
        return (
            self.options.interval_ms is not None
            or self._commits.has_committers
            or (hears_of_checkpoints(self.job_graph) and not self.job_graph.is_batch)
        )

    def _command(
        self,
        run_folder: Path,
        now_ms: int,
        is_checkpoint: bool = False,
        is_last: bool = False,
        is_closing: bool = False,
    ) -> EpochCommand:
        aborted, self._coordinator.aborted = self._coordinator.aborted, []
        return EpochCommand(
            epoch=self._epoch,
            run_id=run_folder.name,
            run_folder=str(run_folder),
            orders=self._coordinator.orders(),
            now_ms=now_ms,
            previous_epoch=self._previous_epoch,
            restorable_epoch=self._coordinator.completed_id,
            is_checkpoint=is_checkpoint,
            completed_checkpoint=self._coordinator.completed_id,
            aborted_checkpoints=tuple(aborted),
            is_last=is_last or is_closing,
            is_closing=is_closing,
        )

    def _run_command(self, command: EpochCommand, deployment: JobDeployment, source_rows: list[Row]) -> EpochResult:
        host = TaskHost(deployment, self._folder, command)
        result = run_whole_epoch(self._executor, host, deployment, command, source_rows)
        self._check(result)
        return result

    def _plan_sources(self, stop: SavepointRequest | None) -> list[Row]:
        def planned(source: SourceCoordinator) -> dict[int, SourceAssignment]:
            if stop is None:
                return source.plan()
            return source.end() if stop.drains else {}

        return [
            Row(vertex, subtask, FROM_DRIVER, 0, 0, assignment.encode())
            for vertex, source in self._sources.items()
            for subtask, assignment in planned(source).items()
        ]

    def _check(self, result: EpochResult) -> None:
        if result.failures:
            raise error_of(result.failures[0], str(self.job_id), self.job_graph.job_name)
        expected = sum(vertex.parallelism for vertex in self.job_graph.vertices)
        if len(result.acks) != expected:
            raise JobExecutionError(
                f"epoch {self._epoch}: {len(result.acks)} of {expected} subtasks acknowledged",
                str(self.job_id),
                self.job_graph.job_name,
            )

    def _complete(self, acks: list[TaskAck], requests: list[Request] | None) -> None:
        """The epoch is complete; `requests`: and it is a checkpoint, which these have asked for."""
        self._previous_epoch = self._epoch
        for ack in sorted(acks, key=lambda ack: (ack.vertex, ack.subtask)):
            self._record(ack)
            self.output.take(ack.outcome)
        self._coordinator.policy.epoch_completed()
        if requests is not None:
            self._complete_checkpoint(acks, requests)
        self.output.show()
        self._policy.epoch_completed(
            [ack.outcome.next_processing_time for ack in acks if ack.outcome.next_processing_time is not None]
        )

    def _complete_checkpoint(self, acks: list[TaskAck], requests: list[Request]) -> None:
        positions = self._current_positions()
        by_operator = {self.job_graph.vertices[vertex].head.operator_id: at for vertex, at in positions.items()}
        completed = self._coordinator.complete(acks, by_operator, wall_clock_ms())
        if completed is None:
            for request in requests:
                request.answer.set_exception(CheckpointError(f"checkpoint {self._epoch} failed; the job goes on"))
            return
        # State, positions and accumulators move on together; whatever fails afterwards finds the checkpoint complete.
        metadata, committables = completed
        self._positions = positions
        self._accumulators_then = copy.deepcopy(self.accumulators)
        self.output.release_held()
        for vertex, source in self._sources.items():
            source.checkpoint_complete(positions[vertex])
        self._uncommitted = committables
        self._commit()
        self._drop_claimed()
        for request in requests:
            if isinstance(request, CheckpointRequest):
                request.answer.set_result(metadata.checkpoint_id)
            else:
                self._savepoints.write(request, FoundCheckpoint(metadata, self._folder, self._folder.uri))

    def _commit(self) -> None:
        """Commit what belongs to the last complete checkpoint; after a failure it is tried again."""
        self._commits.commit(self._uncommitted)
        self._uncommitted = {}

    def _drop_claimed(self) -> None:
        if self.options.claims and self._claimed is not None:
            remove_claimed(self._claimed)
            self._claimed = None

    def _refuse_requests(self) -> None:
        with self._changed:
            requests, self._requests = self._requests, []
        for request in requests:
            request.answer.set_exception(CheckpointError(f"job {self.job_id} has ended before it was taken"))

    def _record(self, ack: TaskAck) -> None:
        execution = self.execution_graph.job_vertices[ack.vertex].subtasks[ack.subtask].current
        if execution.state is ExecutionState.INITIALIZING:
            execution.transition_to(ExecutionState.RUNNING)
            with self._changed:
                if not self._is_cancelled:
                    self._times.enter(JobStatus.RUNNING)
        if ack.outcome.is_finished and execution.state is ExecutionState.RUNNING:
            execution.transition_to(ExecutionState.FINISHED)
        for operator_id, reports in ack.outcome.metrics.items():
            self._metrics.add(operator_id, ack.subtask, reports)
        for name, accumulator in ack.outcome.accumulators.items():
            if name in self.accumulators:
                self.accumulators[name].merge(accumulator)
            else:
                self.accumulators[name] = accumulator
