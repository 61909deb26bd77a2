"""Runs one pipelined region of a job: epoch after epoch, and again from its last checkpoint when it fails."""

from __future__ import annotations

import copy
import logging
import secrets
import threading
from pathlib import Path
from typing import Any, Protocol

from penstock.checkpoint.coordinator import CheckpointCoordinator, CheckpointFailedError
from penstock.checkpoint.job_checkpoints import JobCheckpoints
from penstock.checkpoint.options import CheckpointOptions
from penstock.checkpoint.restoring import RestoredJob
from penstock.checkpoint.store import TASK_OWNED
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import JobExecutionError, LeadershipLostError
from penstock.graph.descriptions import SourceDescription
from penstock.graph.execution_graph import ExecutionGraph, ExecutionState, ExecutionVertex
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.graph.regions import Region
from penstock.jobmaster.epoch_policy import EpochPolicy
from penstock.jobmaster.failure_history import error_of
from penstock.jobmaster.job_contents import hears_of_checkpoints, without_collections
from penstock.jobmaster.job_output import JobOutput, RegionOutput
from penstock.jobmaster.savepoint_requests import Request, SavepointRequest
from penstock.jobmaster.sink_commits import SinkCommits
from penstock.jobmaster.source_coordinator import SourceCoordinator, build_source_coordinator
from penstock.jobmaster.source_setup import SourceSetup
from penstock.jobmaster.stage_executor import EpochCancelledError, EpochResult, StageExecutor, run_whole_epoch
from penstock.jobmaster.watermark_alignment import AlignmentGroups
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.state.backends import backend_of
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, TaskAck, TaskHost, forget_run, wall_clock_ms

_log = logging.getLogger(__name__)


class Job(Protocol):
    """What a region needs to know of the job it belongs to, and whom it tells what happened."""

    job_graph: JobGraph
    execution_graph: ExecutionGraph
    options: CheckpointOptions
    output: JobOutput
    restored: RestoredJob | None
    config: Configuration
    restarts: int
    alignment_groups: AlignmentGroups

    @property
    def name(self) -> str: ...

    @property
    def id_text(self) -> str: ...

    @property
    def is_cancelled(self) -> bool: ...

    def suspend(self, reason: LeadershipLostError) -> None:
        """Another process leads: nothing of the job may go on here."""

    def wait_before_restart(self, failure: Exception, region: Region) -> None:
        """Decide about a failure: wait until the region may start again; raises if the job is to fail."""

    def acknowledged(self, ack: TaskAck) -> None:
        """A subtask's report on an epoch that is complete."""

    def checkpoint_completed(self, region: Region, requests: list[Request]) -> None:
        """The region has a new checkpoint, which these requests have asked for."""


class RegionRunner:
    """`run` blocks until the region has finished; `wake_up` and `request` come from other threads."""

    def __init__(
        self, job: Job, region: Region, executor: StageExecutor, checkpoints: JobCheckpoints, folder: Path
    ) -> None:
        self._job = job
        self.region = region
        self.executor = executor
        self._checkpoints = checkpoints
        self._folder = folder
        self._graph = job.job_graph
        self._coordinator = CheckpointCoordinator(checkpoints, region, job.options)
        self._policy = EpochPolicy(job.config.get(keys.EPOCH_INTERVAL))
        self._commits = SinkCommits(self._graph, job.id_text, region=region)
        self._output = RegionOutput(job.output, holds_collected=bool(job.options.interval_ms))
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._is_told_to_go_back = False
        self._uncommitted: dict[str, list[Any]] = {}
        """What belongs to the checkpoint that the job was restored from."""
        self._prepared: dict[str, list[Any]] = {}
        """What belongs to the region's own checkpoint."""
        self._sources: dict[int, SourceCoordinator] = {}
        self.accumulators: dict[str, Any] = {}
        self.has_ended = False

    # --- from other threads ----------------------------------------------------------------------------------------

    def request(self, request: Request) -> bool:
        """Ask for a checkpoint; False if the region has ended."""
        with self._changed:
            if not self.has_ended:
                self._requests.append(request)
                self._changed.notify_all()
            return not self.has_ended

    def wake_up(self) -> None:
        """Something has changed: look again."""
        with self._changed:
            self._changed.notify_all()

    def go_back(self) -> None:
        """Another region has failed, and all are to start again from their last checkpoint."""
        with self._changed:
            self._is_told_to_go_back = True
            self._changed.notify_all()

    # --- life ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end; raises what makes the job fail."""
        try:
            self._start_sources()
            self._run_with_restarts()
            if not self._has_own_checkpoint():
                # Others may still take savepoints, which then know that this region has come to its end.
                self._checkpoints.begin_with(self._by_operator(self._current_positions()))
        finally:
            with self._changed:
                self.has_ended = True
                requests, self._requests = self._requests, []
            for request in requests:
                request.fail(f"job {self._job.id_text} has ended before")
            self._commits.close()
            for source in self._sources.values():
                source.stop()

    def _vertices(self) -> list[JobVertex]:
        return [vertex for vertex in self._graph.vertices if vertex.id in self.region]

    def _executions(self) -> list[ExecutionVertex]:
        return [
            subtask
            for vertex in self._job.execution_graph.job_vertices
            if vertex.job_vertex.id in self.region
            for subtask in vertex.subtasks
        ]

    def _start_sources(self) -> None:
        restored = self._job.restored
        for vertex in self._vertices():
            head = vertex.head
            if isinstance(head.operator, SourceDescription):
                coordinator = build_source_coordinator(head.operator, self._source_setup(vertex))
                self._sources[vertex.id] = coordinator
                if restored is not None and head.operator_id in restored.positions:
                    coordinator.restore(restored.positions[head.operator_id], restored.is_exact)
                coordinator.start()
        if restored is not None:
            operators = {node.operator_id for vertex in self._vertices() for node in vertex.nodes}
            self._uncommitted = {at: each for at, each in restored.committables.items() if at in operators}
        self._positions = self._current_positions()
        self._checkpoints.begin_with(self._by_operator(self._positions))
        self._accumulators_then = copy.deepcopy(self.accumulators)

    def _source_setup(self, vertex: JobVertex) -> SourceSetup:
        head, job = vertex.head, self._job
        parameters = job.config.get(keys.GLOBAL_JOB_PARAMETERS)
        return SourceSetup(
            vertex=vertex.id,
            operator_id=head.operator_id,
            name=head.name,
            parallelism=vertex.parallelism,
            max_parallelism=vertex.max_parallelism,
            folder=self._folder / "spool" / head.operator_id,
            storage=self._checkpoints.store.folder.within(TASK_OWNED).within(head.operator_id).uri,
            on_change=self.wake_up,
            is_cancelled=lambda: job.is_cancelled,
            job_id=job.id_text,
            job_name=job.name,
            job_parameters=parameters or {},
            # A batch job is one epoch: its keyed operators begin when they have all their input.
            is_batch=self._graph.is_batch,
            can_restart=self._graph.is_batch or job.options.interval_ms is not None,
            config=job.config,
            alignment_groups=job.alignment_groups,
        )

    def _current_positions(self) -> dict[int, Any]:
        return {vertex: source.position for vertex, source in self._sources.items()}

    def _by_operator(self, positions: dict[int, Any]) -> dict[str, Any]:
        return {self._graph.vertices[vertex].head.operator_id: at for vertex, at in positions.items()}

    # --- attempts --------------------------------------------------------------------------------------------------

    def _run_with_restarts(self) -> None:
        is_first = True
        while not self._job.is_cancelled:
            try:
                if not is_first:
                    self._prepare_attempt()
                is_first = False
                if self._run_attempt():
                    return
            except EpochCancelledError:
                return
            except LeadershipLostError as lost:
                self._job.suspend(lost)
                return
            except Exception as failure:  # The restart strategy decides about every failure alike
                if self._job.is_cancelled:
                    return
                self._coordinator.epoch_failed(str(failure).partition("\n")[0], wall_clock_ms())
                self._job.wait_before_restart(failure, self.region)

    def _prepare_attempt(self) -> None:
        """Go back to the last complete checkpoint."""
        for vertex in self._executions():
            if not vertex.state.is_terminal:
                vertex.current.transition_to(ExecutionState.FAILED, wall_clock_ms())
            vertex.new_attempt().transition_to(ExecutionState.SCHEDULED, wall_clock_ms())
        self._coordinator.reset()
        for vertex_id, source in self._sources.items():
            source.rewind(self._positions[vertex_id])
        self.accumulators = copy.deepcopy(self._accumulators_then)
        self._output.drop_held()

    def _run_attempt(self) -> bool:
        """True if the region has ended; False if it is to go back."""
        with self._changed:
            self._is_told_to_go_back = False
        self._commit()
        self._transition(ExecutionState.DEPLOYING)
        deployment = self._deployment()
        self.executor.deploy(deployment, self._checkpoints.store.folder)
        self._transition(ExecutionState.INITIALIZING)
        run_folder = self._folder / "runs" / secrets.token_hex(8)
        run_folder.mkdir(parents=True)
        self._previous_epoch = 0
        try:
            while self._wait_for_work():
                if self._run_epoch(run_folder, deployment):
                    return True
            return self._job.is_cancelled
        finally:
            run_folder.rmdir()
            forget_run(run_folder.name)

    def _transition(self, *states: ExecutionState) -> None:
        for vertex in self._executions():
            for state in states:
                if not vertex.state.is_terminal:
                    vertex.current.transition_to(state, wall_clock_ms())

    def _deployment(self) -> JobDeployment:
        parameters = self._job.config.get(keys.GLOBAL_JOB_PARAMETERS)
        return JobDeployment(
            self._job.id_text,
            without_collections(self._graph),
            self._job.restarts,
            parameters or {},
            state_backend=backend_of(self._job.config, tracks_changes=self._job.options.interval_ms is not None),
            region=self.region,
        )

    def _wait_for_work(self) -> bool:
        """False if the job was cancelled, or the region is to go back."""
        with self._changed:
            while not self._job.is_cancelled and not self._is_told_to_go_back:
                wait_ms = self._wait_ms(wall_clock_ms())
                if wait_ms == 0:
                    return True
                self._changed.wait(None if wait_ms is None else wait_ms / 1000)
        return False

    def _wait_ms(self, now_ms: int) -> int | None:
        for source in self._sources.values():
            source.check()
        if self._must_save_first():
            return None if self._has_own_checkpoint() else 0
        is_needed = bool(self._requests) or self._has_ended_input() or self._has_state_to_open()
        has_work = is_needed or any(source.has_work() for source in self._sources.values())
        return self._policy.wait_ms(now_ms, has_work, self._coordinator.policy.wake_up_ms(now_ms))

    def _has_ended_input(self) -> bool:
        """True if nothing will come any more: a job that was restored after its end has only to end."""
        return all(source.is_exhausted for source in self._sources.values())

    def _has_state_to_open(self) -> bool:
        """True if tasks are to be restored: what they wait for, such as a timer, is not known before."""
        return self._previous_epoch == 0 and self._coordinator.completed_id > 0

    def _must_save_first(self) -> bool:
        """True if the restored state of all regions must be saved before any goes on.

        A checkpoint of the job has a part of every region, and what was restored is no part of it.
        """
        is_alone = len(self.region) == len(self._graph.vertices)
        return not is_alone and self._job.options.interval_ms is not None and not self._checkpoints.is_whole

    def _has_own_checkpoint(self) -> bool:
        return self._coordinator.completed_id != self._checkpoints.restored_id

    # --- an epoch --------------------------------------------------------------------------------------------------

    def _run_epoch(self, run_folder: Path, deployment: JobDeployment) -> bool:
        """True if the region ended with this epoch."""
        now_ms = wall_clock_ms()
        self._policy.epoch_started(now_ms)
        is_saving_first = self._must_save_first()
        with self._changed:
            requests = [] if is_saving_first else self._requests
            self._requests = self._requests[len(requests) :]
        try:
            return self._run_requested_epoch(run_folder, deployment, requests, is_saving_first, now_ms)
        except BaseException as failure:
            for request in requests:
                request.fail(f"the job failed: {failure}")
            raise

    def _run_requested_epoch(
        self, run_folder: Path, deployment: JobDeployment, requests: list[Request], is_saving_first: bool, now_ms: int
    ) -> bool:
        savepoints = [request for request in requests if isinstance(request, SavepointRequest)]
        stop = next((request for request in savepoints if request.stops_job), None)
        is_due = is_saving_first or self._coordinator.policy.is_due(now_ms)
        epoch = self._checkpoints.next_id()
        source_rows = [] if is_saving_first else self._plan_sources(stop, epoch, bool(requests) or is_due)
        is_last = not is_saving_first and self._has_ended_input()
        is_checkpoint = bool(requests) or is_due or (is_last and self._ends_safely())
        has_closing = is_checkpoint and is_last and hears_of_checkpoints(self._vertices())
        if is_checkpoint:
            self._coordinator.start(epoch, now_ms, savepoints[0].format_type if savepoints else None)
        command = self._command(epoch, run_folder, now_ms, is_checkpoint, is_last and not has_closing)
        result = self._run_command(command, deployment, source_rows)
        self._tell_sources(result.acks, wall_clock_ms() - now_ms)
        self._complete(epoch, result.acks, requests if is_checkpoint else None)
        if is_last and is_checkpoint and self._coordinator.completed_id != epoch:
            raise CheckpointFailedError(
                f"checkpoint {epoch} failed, and it was the last one: the job cannot end with it"
            )
        is_stopping = not is_last and stop is not None and self._is_saved(stop)
        if has_closing or is_stopping:
            closing = self._command(self._checkpoints.next_id(), run_folder, wall_clock_ms(), is_closing=True)
            self._run_command(closing, deployment, [])
        return is_last or is_stopping

    def _is_saved(self, stop: SavepointRequest) -> bool:
        """Wait for the savepoint with which the job is to stop; False if there is none, and the job goes on."""
        stop.answer.add_done_callback(lambda _: self.wake_up())
        with self._changed:
            self._changed.wait_for(lambda: stop.answer.done() or self._job.is_cancelled or self._is_told_to_go_back)
        return stop.answer.done() and stop.answer.exception() is None

    def _ends_safely(self) -> bool:
        """True if the last epoch is a checkpoint: somebody commits what belongs to it."""
        return (
            self._job.options.interval_ms is not None
            or self._commits.has_committers
            or (hears_of_checkpoints(self._vertices()) and not self._graph.is_batch)
        )

    def _command(
        self,
        epoch: int,
        run_folder: Path,
        now_ms: int,
        is_checkpoint: bool = False,
        is_last: bool = False,
        is_closing: bool = False,
    ) -> EpochCommand:
        aborted, self._coordinator.aborted = self._coordinator.aborted, []
        return EpochCommand(
            epoch=epoch,
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
        host = TaskHost(deployment, self._checkpoints.store.folder, command)
        result = run_whole_epoch(self.executor, host, deployment, command, source_rows)
        if result.failures:
            raise error_of(result.failures[0], self._job.id_text, self._job.name)
        expected = sum(vertex.parallelism for vertex in self._vertices())
        if len(result.acks) != expected:
            raise JobExecutionError(
                f"epoch {command.epoch}: {len(result.acks)} of {expected} subtasks acknowledged",
                self._job.id_text,
                self._job.name,
            )
        return result

    def _plan_sources(self, stop: SavepointRequest | None, epoch: int, is_checkpoint: bool) -> list[Row]:
        def planned(source: SourceCoordinator) -> dict[int, SourceAssignment]:
            if stop is None:
                return source.plan(epoch, is_checkpoint)
            return source.end(epoch) if stop.drains else source.suspend(epoch)

        return [
            Row(vertex, subtask, FROM_DRIVER, 0, 0, assignment.encode())
            for vertex, source in self._sources.items()
            for subtask, assignment in planned(source).items()
        ]

    def _tell_sources(self, acks: list[TaskAck], duration_ms: int) -> None:
        for vertex, source in self._sources.items():
            reports = {ack.subtask: ack.outcome.source_report for ack in acks if ack.vertex == vertex}
            told = {subtask: report for subtask, report in sorted(reports.items()) if report is not None}
            source.epoch_complete(told, duration_ms)

    def _complete(self, epoch: int, acks: list[TaskAck], requests: list[Request] | None) -> None:
        """The epoch is complete; `requests`: and it is a checkpoint, which these have asked for."""
        self._previous_epoch = epoch
        for ack in sorted(acks, key=lambda ack: (ack.vertex, ack.subtask)):
            self._job.acknowledged(ack)
            self._add_up(ack.outcome.accumulators)
            self._output.take(ack.outcome)
        self._coordinator.policy.epoch_completed()
        if requests is not None:
            self._complete_checkpoint(epoch, acks, requests)
        self._output.show()
        self._policy.epoch_completed(
            [ack.outcome.next_processing_time for ack in acks if ack.outcome.next_processing_time is not None]
        )

    def _add_up(self, accumulators: dict[str, Any]) -> None:
        for name, accumulator in accumulators.items():
            if name in self.accumulators:
                self.accumulators[name].merge(accumulator)
            else:
                self.accumulators[name] = accumulator

    def _complete_checkpoint(self, epoch: int, acks: list[TaskAck], requests: list[Request]) -> None:
        positions = self._current_positions()
        prepared = self._coordinator.complete(acks, self._by_operator(positions), wall_clock_ms())
        if prepared is None:
            for request in requests:
                request.fail(f"checkpoint {epoch} failed; the job goes on")
            return
        # State, positions and accumulators move on together; whatever fails afterwards finds the checkpoint complete.
        self._positions = positions
        self._accumulators_then = copy.deepcopy(self.accumulators)
        self._output.release_held()
        for vertex, source in self._sources.items():
            source.checkpoint_complete(positions[vertex])
        for operator_id, committables in prepared.items():
            self._prepared.setdefault(operator_id, []).extend(committables)
        self._commit()
        self._job.checkpoint_completed(self.region, requests)

    def _commit(self) -> None:
        """Commit what belongs to the last complete checkpoint; after a failure it is tried again.

        A region's own checkpoint counts as soon as there is one of the whole job to restore it from.
        """
        self._commits.commit(self._uncommitted)
        self._uncommitted = {}
        if self._checkpoints.is_whole:
            self._commits.commit(self._prepared)
            self._prepared = {}
