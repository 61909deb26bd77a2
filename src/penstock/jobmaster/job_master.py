"""One job: its status, its regions, what may restart, and what others ask of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

from penstock.checkpoint.finding import OpenFolder, find_checkpoint, find_claimed
from penstock.checkpoint.folders import Folder, LocalFolder, folder_at
from penstock.checkpoint.job_checkpoints import JobCheckpoints
from penstock.checkpoint.leadership import JobLeadership
from penstock.checkpoint.metadata import CANONICAL
from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.restoring import FoundCheckpoint, RestoredJob, restore_job
from penstock.checkpoint.savepoints import check_format
from penstock.checkpoint.statistics import CheckpointStatsTracker, RestoredStats
from penstock.checkpoint.store import CompletedCheckpointStore
from penstock.common import config_keys as keys
from penstock.common.clocks import wall_clock_ms
from penstock.common.configuration import Configuration
from penstock.common.error_notes import add_note
from penstock.common.exceptions import (
    AbandonedError,
    CheckpointError,
    ClusterLostError,
    ConfigurationError,
    LeadershipLostError,
)
from penstock.common.job_execution_result import JobExecutionResult
from penstock.common.job_id import JobID
from penstock.common.job_status import JobStatus
from penstock.common.moment import Moment, wait_seconds
from penstock.files.locations import location_above
from penstock.graph.execution_graph import ExecutionGraph, ExecutionState
from penstock.graph.job_graph import JobGraph
from penstock.graph.regions import Region, pipelined_regions
from penstock.jobmaster.counted import Accumulators, Counted, merged
from penstock.jobmaster.epoch_history import EpochReport
from penstock.jobmaster.execution.side_by_side import Patience, run_side_by_side
from penstock.jobmaster.execution.slots import SlotPool, required_slots, slot_pool
from penstock.jobmaster.execution.stage_executor import StageExecutor
from penstock.jobmaster.failure_history import FailureHistory, FailureRecord, FailureReports
from penstock.jobmaster.job_log import JobLog
from penstock.jobmaster.job_requests import JobRequests
from penstock.jobmaster.job_times import JobTimes
from penstock.jobmaster.left_checkpoint import LeftCheckpoint
from penstock.jobmaster.region.runner import RegionRunner
from penstock.jobmaster.restart_strategy import NoRestart, RegionProgress, build_restart_strategy
from penstock.jobmaster.savepoint_requests import CheckpointRequest, Request, SavepointRequest, SavepointWriter
from penstock.jobmaster.sinks.job_output import JobOutput, OutputError
from penstock.jobmaster.sources.watermark_alignment import AlignmentGroups
from penstock.jobmaster.task_reports import TaskReports
from penstock.jobmaster.working_folder import working_folder
from penstock.runtime.latency import LatencyTracking
from penstock.runtime.protocol import TaskAck
from penstock.runtime.state.codec import use_script_classes
from penstock.runtime.thread_dump import ProcessThreads

_log = logging.getLogger(__name__)

_PATIENCE_MS = 10_000


class JobMaster:
    """One job from submission to its end. `run` blocks; `cancel` and requests come from other threads."""

    def __init__(
        self,
        job_id: JobID,
        job_graph: JobGraph,
        config: Configuration,
        executor: StageExecutor,
        open_folder: OpenFolder = folder_at,
        leadership: JobLeadership | None = None,
        is_watched: bool = False,
    ) -> None:
        self.job_id = job_id
        self._leadership = leadership or JobLeadership()
        self._open_folder = open_folder
        self.config = config
        self._executor = executor
        self._patience = Patience(_patience_ms(config))
        self.restart_strategy = build_restart_strategy(
            config, config.get_optional(keys.CHECKPOINT_INTERVAL) is not None, is_watched
        )
        self._progress = RegionProgress()
        self._restarts_everything = _restarts_everything(config)
        self.options = self._checkpoint_options(job_graph)
        self.restored = self._find_state(job_graph)
        self.job_graph = job_graph if self.restored is None else self.restored.job_graph
        self.execution_graph = ExecutionGraph(self.job_graph)
        self.alignment_groups = AlignmentGroups()
        self._times = JobTimes()
        self.output = JobOutput()
        self.log = JobLog(str(job_id), job_graph.job_name, config, self.output)
        executor.show_output(self.log.take)
        self.checkpoints = CheckpointStatsTracker(self.options.history)
        if self.restored is not None:
            self._note_restored(self.restored.found)
        self._failures = FailureHistory(config.get(keys.WEB_EXCEPTION_HISTORY))
        self.latency = LatencyTracking.of(config)
        self._reports = TaskReports(self.execution_graph)
        self.metrics, self.epochs = self._reports.metrics, self._reports.epochs
        self.flame_graphs = self._reports.flame_graphs
        self.restarts = 0
        self._failure_reports = FailureReports()
        self.stopped_with: str | None = None
        """The savepoint with which the job has ended."""
        self._changed = threading.Condition()
        self._runners: list[RegionRunner] = []
        self._requests = JobRequests(self.id_text)
        self._pool: SlotPool | None = None
        self._is_stopping = False
        """True if the job was cancelled, or one of its regions has failed for good."""
        self._suspended_by: LeadershipLostError | ClusterLostError | None = None
        self._is_settled = False
        self._left: LeftCheckpoint | None = None
        """At the job's end; None if it has no checkpoint."""
        self._claimed = self._find_claimed() if self.options.claims else None
        """What the job removes as soon as it has a checkpoint of its own."""

    def _checkpoint_options(self, job_graph: JobGraph) -> CheckpointOptions:
        options = CheckpointOptions.of(self.config)
        interval_ms = options.interval_ms
        if interval_ms is None and not isinstance(self.restart_strategy, NoRestart):
            interval_ms = 0  # To restart from somewhere.
        return options.with_interval(None if job_graph.is_batch else interval_ms)

    def _find_state(self, job_graph: JobGraph) -> RestoredJob | None:
        path = self._leadership.checkpoint or self.options.restore_path
        if path is None:
            return None
        use_script_classes(job_graph.script_classes)
        found = find_checkpoint(path, self._open_folder)
        return restore_job(job_graph, found, self.options.allows_non_restored)

    def _find_claimed(self) -> FoundCheckpoint | None:
        own, path = self._leadership.checkpoint, self.options.restore_path
        if own is None or path is None:
            return None if self.restored is None else self.restored.found
        try:  # The leader before may have had no time to remove it.
            claimed = find_claimed(path, self._open_folder)
        except (OSError, CheckpointError) as error:
            _log.warning("%s is no longer needed but cannot be removed: %s", path, error)
            return None
        # A checkpoint of the job's own goes with its others.
        return None if claimed is None or location_above(claimed.path) == location_above(own) else claimed

    def _note_restored(self, found: FoundCheckpoint) -> None:
        metadata = found.metadata
        self.checkpoints.restored_from(
            RestoredStats(metadata.checkpoint_id, wall_clock_ms(), metadata.is_savepoint, found.path)
        )
        self.log.note(f"Restored from {found.path}")

    def _enter(self, status: JobStatus) -> None:
        """Every change of the job's status is in its log, in Flink's words."""
        former = self._times.status
        self._times.enter(status)
        if status is not former:
            self.log.note(f"Job {self.name} ({self.job_id}) switched from state {former.name} to {status.name}.")

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
    def failures(self) -> list[FailureRecord]:
        """What failed, newest first."""
        return self._failures.newest_first()

    def share_done(self) -> float | None:
        """How much of its work a bounded job has done, from 0 to 1; None if that is not known."""
        runners = list(self._runners)
        if self.status.is_globally_terminal_state() or not runners:
            return None
        if self.job_graph.is_batch:
            tasks = list(self.execution_graph.vertices())
            return sum(each.current.facts.epochs > 0 for each in tasks) / len(tasks)
        known = [runner.share_read() for runner in runners]
        shares = [share for share in known if share is not None]
        return sum(shares) / len(shares) if len(shares) == len(known) else None

    def look_at_batch(self) -> None:
        """In batch mode, where all is one epoch: note what subtasks have done before it ends."""
        if not self.job_graph.is_batch:
            return
        for runner in list(self._runners):
            self._reports.note_done(runner.executor.tasks_done())

    @property
    def accumulators(self) -> Accumulators:
        """What the functions have counted so far, over all regions."""
        return merged(counted.of_all() for counted in self.counted())

    def counted(self) -> list[Counted]:
        """The same, region by region."""
        return [runner.counted for runner in list(self._runners)]

    def threads(self) -> list[ProcessThreads]:
        """What the threads of the job's other processes do."""
        return [each for runner in list(self._runners) for each in runner.executor.threads()]

    @property
    def name(self) -> str:
        return self.job_graph.job_name

    @property
    def id_text(self) -> str:
        return str(self.job_id)

    @property
    def is_suspended(self) -> bool:
        """True if the job can only be continued elsewhere: nothing of its end is decided here."""
        return self._suspended_by is not None

    @property
    def why_suspended(self) -> str:
        """After its end: why it was suspended, and how it can be continued."""
        if not isinstance(self._suspended_by, ClusterLostError):
            return "another process has taken it over"
        rest = "It has no checkpoint to continue from" if self._left is None else self._left.after_loss()
        return f"{self._suspended_by}. {rest}"

    @property
    def is_cancelled(self) -> bool:
        """True if nothing of the job may continue here: it was cancelled or suspended, or has failed."""
        return self._is_stopping or self.is_suspended

    def cancel(self) -> None:
        with self._changed:
            if self.status.is_terminal_state():
                return
            self._is_stopping = True
            self._enter(JobStatus.CANCELLING)
        self._stop_running()

    def suspend(self, reason: LeadershipLostError | ClusterLostError) -> None:
        """Stop as it is, without a commit and without removing anything: another process continues the job."""
        with self._changed:
            if self.is_suspended or self.status.is_globally_terminal_state():
                return
            self._suspended_by = reason
        _log.warning("job '%s' (%s) is suspended: %s", self.name, self.job_id, reason)
        self._stop_running()

    def _stop_running(self) -> None:
        with self._changed:
            self._changed.notify_all()
            runners = list(self._runners)
        self._patience.must_end()
        self._executor.cancel()
        if self._pool is not None:
            self._pool.wake_up()
        for runner in runners:
            runner.executor.cancel()
            runner.wake_up()

    def trigger_checkpoint(self) -> Future[int]:
        """Take a checkpoint now; the answer is its id."""
        request = CheckpointRequest(pipelined_regions(self.job_graph))
        self._ask(request)
        return request.answer

    def trigger_savepoint(self, directory: str | None, format_type: str = CANONICAL) -> Future[str]:
        """Write a savepoint while the job runs; the answer is its path."""
        return self._ask_for_savepoint(directory, format_type)

    def stop_with_savepoint(self, directory: str | None, drain: bool, format_type: str = CANONICAL) -> Future[str]:
        """Write a savepoint and end the job with it, as finished.

        With `drain` the input ends first: windows and timers of event time fire, and the job cannot be continued.
        """

        def note(written: Future[str]) -> None:
            if written.exception() is None:
                self.stopped_with = written.result()

        written = self._ask_for_savepoint(directory, format_type, stops_job=True, drains=drain)
        written.add_done_callback(note)
        return written

    def _ask_for_savepoint(
        self, directory: str | None, format_type: str, stops_job: bool = False, drains: bool = False
    ) -> Future[str]:
        check_format(format_type)
        chosen = directory or self.options.savepoint_directory
        if chosen is None:
            raise CheckpointError(
                f"there is no directory for the savepoint; name one, or configure {keys.SAVEPOINT_DIR.key}"
            )
        request = SavepointRequest(pipelined_regions(self.job_graph), chosen, format_type, stops_job, drains)
        self._ask(request)
        return request.answer

    def _ask(self, request: Request) -> None:
        if self.job_graph.is_batch:
            raise CheckpointError(
                f"job '{self.name}' runs in batch mode, which has no checkpoints and no savepoints; run it with "
                f"execution.runtime-mode STREAMING"
            )
        with self._changed:
            if self.status.is_terminal_state() or self.is_cancelled:
                raise CheckpointError(f"job {self.job_id} is {self.status.name} and no longer takes savepoints")
        self._requests.add(request)

    # --- life ------------------------------------------------------------------------------------------------------

    def run(self) -> JobExecutionResult:
        """Run to the end. Raises what ended the job, unless it finished by itself or was cancelled."""
        with self.log.worked_for():
            return self._run()

    def _run(self) -> JobExecutionResult:
        use_script_classes(self.job_graph.script_classes)
        try:
            self._enter(JobStatus.CREATED)
            with working_folder(self.id_text, self.config) as folder:
                self._run_in(folder)
        except BaseException as failure:
            self._fail(failure)
            if self._left is not None and not self.is_suspended:
                add_note(failure, self._left.after_failure())
            raise
        finally:
            self._requests.end()
            self._executor.close()
            self.log.close()
        return JobExecutionResult(
            self.job_id,
            wall_clock_ms() - self.started_ms,
            {name: accumulator.get_local_value() for name, accumulator in self.accumulators.items()},
        )

    def _run_in(self, folder: Path) -> None:
        try:
            self._checkpoints = self._patience.call(partial(self._open_checkpoints, folder))
        except AbandonedError:
            self._settle(JobStatus.CANCELED)
            self._end_as(JobStatus.SUSPENDED if self.is_suspended else JobStatus.CANCELED)
            return
        store = self._checkpoints.store
        self._savepoints = SavepointWriter(store.folder, self._executor.run_copies)
        status = JobStatus.FAILED
        self._note_running()
        try:
            with self._slots():
                self._run_regions(folder)
            status = JobStatus.CANCELED if self.is_cancelled else JobStatus.FINISHED
        finally:
            self._requests.end()
            self._await(self._savepoints.wait)
            self._savepoints.give_up()
            status = self._end(store, status)
        self._end_as(status)

    def _open_checkpoints(self, folder: Path) -> JobCheckpoints:
        store = CompletedCheckpointStore(self._checkpoint_folder(folder), self.options.retained, self._leadership)
        tracks_changes = self.options.interval_ms is not None
        return JobCheckpoints(self.id_text, self.job_graph, store, self.checkpoints, tracks_changes, self.restored)

    def _await(self, action: Callable[[], None]) -> None:
        """Wait for what belongs to the end of the job, unless it must end and that does not return."""
        with suppress(AbandonedError):  # It is in the log.
            self._patience.call(action)

    def _end_as(self, status: JobStatus) -> None:
        with self._changed:
            if self.is_cancelled:
                self.execution_graph.cancel_all(wall_clock_ms())
            self._enter(status)
        self.output.end()

    def _end(self, store: CompletedCheckpointStore, status: JobStatus) -> JobStatus:
        """Keep other processes from continuing the job; only then may its checkpoints be removed."""
        self._await(store.close)
        if (latest := self._checkpoints.latest) is not None:
            self._left = LeftCheckpoint(store.path_of(latest.checkpoint_id), self.options)
        is_kept = self.options.keeps_after(status.name)
        # Where a savepoint needs files of the folder, it is not left to another process to remove the folder.
        is_needed = self._savepoints.has_written and self._has_task_owned_files(store)
        self._settle(status, None if is_kept or is_needed else store.folder.uri)
        if self.is_suspended:
            return JobStatus.SUSPENDED
        if not is_kept:
            self._await(partial(store.remove_all, keeps_task_owned=is_needed))
        return status

    def _has_task_owned_files(self, store: CompletedCheckpointStore) -> bool:
        try:
            return self._patience.call(store.has_task_owned_files)
        except AbandonedError:
            return True  # Nobody knows.

    def _settle(self, status: JobStatus, unwanted: str | None = None) -> None:
        """The job is over for good, unless another process leads."""
        if self._is_settled or self.is_suspended:
            return
        try:
            self._leadership.end(status.name, unwanted)
        except LeadershipLostError as lost:
            self.suspend(lost)
        self._is_settled = True

    def _slots(self) -> AbstractContextManager[None]:
        """All slots that the job needs, before anything of it starts."""
        self.execution_graph.transition_all(ExecutionState.SCHEDULED, now_ms=wall_clock_ms())
        per_executor = self.config.get_optional(keys.TASK_SLOTS)
        if per_executor is None:
            return nullcontext()
        session, executors = self._executor.executors()
        self._pool = slot_pool(session, executors * per_executor)
        timeout_ms = self.config.get(keys.SLOT_TIMEOUT)
        return self._pool.held(required_slots(self.job_graph), timeout_ms, lambda: self.is_cancelled, self.name)

    def _run_regions(self, folder: Path) -> None:
        regions = pipelined_regions(self.job_graph)
        executors = [self._executor, *(self._executor.sibling() for _ in regions[1:])]
        with self._changed:
            self._runners = [
                RegionRunner(self, region, executor, self._checkpoints, folder / f"region-{number}")
                for number, (region, executor) in enumerate(zip(regions, executors, strict=True))
            ]
        self._requests.begin(self._runners, self._checkpoints, self._savepoints)
        runs = [runner.run for runner in self._runners]
        try:
            run_side_by_side(runs, self._stop_all, self._patience, self._abandon)
        finally:
            for executor in executors[1:]:
                executor.close()

    def _abandon(self, place: int) -> None:
        self._await(self._runners[place].abandon)

    def _checkpoint_folder(self, folder: Path) -> Folder:
        if self.options.directory is None:
            return LocalFolder(str(folder / "checkpoints"), is_durable=False)  # They go with this process.
        return self._open_folder(self.options.directory).within(self.id_text)

    def _fail(self, failure: BaseException) -> None:
        self.log.note(str(failure) or type(failure).__name__, logging.ERROR)
        self._settle(JobStatus.FAILED)  # Also if it failed before it had begun.
        self._enter(JobStatus.SUSPENDED if self.is_suspended else JobStatus.FAILED)
        self.execution_graph.transition_all(ExecutionState.FAILED, now_ms=wall_clock_ms())
        self._failures.add(failure, wall_clock_ms())
        self.output.end(failure)

    def _stop_all(self) -> None:
        """A region has failed for good: the others end, too."""
        with self._changed:
            self._is_stopping = True
        self._stop_running()

    # --- what regions report ---------------------------------------------------------------------------------------

    def wait_before_restart(self, failure: Exception, region: Region, is_alone: bool = False) -> None:
        """Wait as the restart strategy says; raises if the job is to fail."""
        if isinstance(failure, OutputError):
            raise failure
        with self._changed:
            attempt = self._progress.end_attempt(failure, region)
            delay_ms = self.restart_strategy.on_failure(Moment.now().tick_ms, attempt)
            self._enter(JobStatus.FAILING if delay_ms is None else JobStatus.RESTARTING)
        if delay_ms is None:
            if self.restart_strategy.refusal:
                add_note(failure, f"Not restarted: {self.restart_strategy.refusal}.")
            raise failure
        self._failures.add(failure, wall_clock_ms())
        self.restarts += 1
        _log.warning("%s", self._failure_reports.of(self.name, failure, self.restarts, delay_ms))
        if self._restarts_everything and not is_alone:
            for runner in self._runners:
                if runner.region != region:
                    runner.go_back()
        with self._changed:
            self._changed.wait_for(lambda: self.is_cancelled, timeout=wait_seconds(delay_ms))
        if not self.is_cancelled and not is_alone:
            self.log.note(self._where_it_continues())
        self._note_running()

    def _where_it_continues(self) -> str:
        latest, restored = self.checkpoints.latest_completed, self.checkpoints.restored
        if latest is not None:
            return f"Restored from {latest.external_path or f'checkpoint {latest.id}'}"
        return "Started again from the beginning" if restored is None else f"Restored from {restored.external_path}"

    def _note_running(self) -> None:
        """As in Flink a job is RUNNING as soon as it is scheduled, whatever its tasks do."""
        with self._changed:
            if not self.is_cancelled:
                self._enter(JobStatus.RUNNING)

    def acknowledged(self, acks: Sequence[TaskAck]) -> None:
        self._reports.acknowledged(acks, self._checkpoints.written_size)

    def epoch_completed(self, report: EpochReport) -> None:
        self._reports.epoch_completed(report)
        with self._changed:
            self._progress.with_epochs.add(report.region)

    def sampled_vertices(self) -> frozenset[int]:
        return self._reports.sampled_vertices()

    def checkpoint_completed(self, region: Region, requests: Iterable[Request], moves_on: bool) -> None:
        if moves_on:
            with self._changed:
                self._progress.with_checkpoints.add(region)
        if self._checkpoints.latest is not None:
            with self._changed:
                claimed, self._claimed = self._claimed, None
            if claimed is not None:
                self._checkpoints.store.remove_claimed(claimed)
        for request in requests:
            self._requests.region_done(request, region)
        for runner in self._runners:
            runner.wake_up()

    def checkpoint_proposed(self, region: Region, request: SavepointRequest) -> None:
        self._requests.region_done(request, region)

    def ended_before(self, region: Region, request: Request) -> None:
        self._requests.region_ended(request, region)


def _patience_ms(config: Configuration) -> int:
    """How long calls may take to return when the job must end; 0: for ever.

    Source functions have as much of it as their setting says, and the rest of the job half as much again.
    """
    timeout_ms = config.get_optional(keys.TASK_CANCELLATION_TIMEOUT)
    return (_PATIENCE_MS if timeout_ms is None else timeout_ms) * 3 // 2


def _restarts_everything(config: Configuration) -> bool:
    """Flink's failover strategies: `region`, the default, or `full`."""
    strategy = config.get(keys.FAILOVER_STRATEGY).lower()
    if strategy not in ("region", "full"):
        raise ConfigurationError(f"{keys.FAILOVER_STRATEGY.key}: {strategy!r} is not known; use region or full")
    return strategy == "full"
