"""Runs one pipelined region of a job: epoch after epoch, and again from its last checkpoint when it fails."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
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
from penstock.common.moment import Moment, wait_seconds
from penstock.graph.execution_graph import ExecutionGraph, ExecutionState, ExecutionVertex
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.graph.regions import Region
from penstock.jobmaster.epoch_history import EpochReport
from penstock.jobmaster.execution.stage_executor import EpochCancelledError, StageExecutor, run_whole_epoch
from penstock.jobmaster.failure_history import error_of
from penstock.jobmaster.job_contents import hears_of_checkpoints, tasks_hear_of_checkpoints, without_collections
from penstock.jobmaster.region.epoch_plan import EpochEnding, EpochPlan, Reading, plan_epoch
from penstock.jobmaster.region.epoch_policy import EpochPolicy, epoch_interval_ms
from penstock.jobmaster.region.results import RegionResults, take_all_steps
from penstock.jobmaster.region.sources import Positions, RegionSources
from penstock.jobmaster.savepoint_requests import Request, SavepointRequest
from penstock.jobmaster.sinks.job_output import JobOutput, RegionOutput
from penstock.jobmaster.sinks.sink_commits import SinkCommits
from penstock.jobmaster.sources.source_setup import SourceSetup
from penstock.jobmaster.sources.watermark_alignment import AlignmentGroups
from penstock.runtime.clocks import wall_clock_ms
from penstock.runtime.protocol import EpochCommand, TaskAck
from penstock.runtime.rows import Row
from penstock.runtime.state.backends import backend_of
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import TaskHost

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

    def checkpoint_completed(self, region: Region, requests: Iterable[Request]) -> None:
        """The region has a new checkpoint, which these requests have asked for."""

    def checkpoint_proposed(self, region: Region, request: SavepointRequest) -> None:
        """The region has done its part of a savepoint, and makes it its checkpoint when that is written."""

    def epoch_completed(self, report: EpochReport) -> None:
        """The region has done an epoch, whose acknowledgements were told before."""

    def sampled_vertices(self) -> frozenset[int]:
        """Those whose stacks somebody wants to see."""


@dataclass(frozen=True)
class _Run:
    """One attempt, with the tasks that belong to it."""

    deployment: JobDeployment
    host: TaskHost
    """Of those that live in the driver."""
    origin: int
    """The checkpoint that it began with; 0 for none."""


class _Next(Enum):
    """What a region does when it has nothing more to wait for."""

    EPOCH = auto()
    NOTICE = auto()
    """Tell the tasks of a checkpoint, and nothing else."""
    LEAVE = auto()
    """The job was cancelled, or the region is to go back."""


class _Verdict(Enum):
    """How an epoch has left the region."""

    GOES_ON = auto()
    HAS_ENDED = auto()
    GOES_BACK = auto()


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
        self._policy = EpochPolicy(epoch_interval_ms(job.config, self._vertices()))
        commits = SinkCommits(self._graph, job.id_text, region=region)
        self._has_committers = commits.has_committers
        output = RegionOutput(job.output, holds_collected=job.options.interval_ms is not None)
        self._results = RegionResults(output, commits)
        self._hears = tasks_hear_of_checkpoints(self._vertices())
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._may_drain: SavepointRequest | None = None
        """A request to drain the job, for which there is a checkpoint that the region can come back to."""
        self._stopped_by: tuple[Request, ...] = ()
        """Those that were answered with the end of the job. Its savepoint is written: it ends, whatever fails now."""
        self._is_told_to_go_back = False
        self._sources = RegionSources()
        self.has_ended = False

    # --- from other threads ----------------------------------------------------------------------------------------

    def request(self, request: Request) -> bool:
        """Ask for a checkpoint; False if the region has ended."""
        with self._changed:
            if not self.has_ended:
                self._requests.append(request)
                self._changed.notify_all()
            return not self.has_ended

    @property
    def accumulators(self) -> dict[str, Any]:
        """What the region's functions have counted so far, by name."""
        return self._results.accumulators

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
                self._checkpoints.begin_with(self._sources.positions)
        finally:
            with self._changed:
                self.has_ended = True
                requests, self._requests = self._requests, []
            for request in requests:
                request.fail(f"job {self._job.id_text} has ended before")
            for request in self._stopped_by:
                request.fail(f"job {self._job.id_text} has failed")
            take_all_steps(self._results.close, self._sources.stop)

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
        self._sources.start(self._vertices(), self._source_setup, restored)
        if restored is not None:
            operators = {node.operator_id for vertex in self._vertices() for node in vertex.nodes}
            self._results.restore({at: each for at, each in restored.committables.items() if at in operators})
        self._positions = self._sources.positions
        """Where the region goes back to."""
        self._checkpoints.begin_with(self._positions)

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
        self._sources.rewind(self._positions)
        self._results.go_back()

    def _run_attempt(self) -> bool:
        """True if the region has ended; False if it is to go back."""
        with self._changed:
            self._is_told_to_go_back = False
        self._results.settle(self._checkpoints.is_whole)
        self._transition(ExecutionState.DEPLOYING)
        deployment, folder = self._deployment(), self._checkpoints.store.folder
        run = _Run(deployment, TaskHost(deployment, folder), self._coordinator.completed_id)
        self._previous_epoch = 0
        self._told_checkpoint = run.origin
        try:
            self.executor.deploy(deployment, folder, on_loss=self.wake_up)
            self._transition(ExecutionState.INITIALIZING)
            return self._run_epochs(run)
        finally:
            self.executor.end_run()
            run.host.close()

    def _run_epochs(self, run: _Run) -> bool:
        if self._stopped_by:
            self._end_stopped(run)
            return True
        while (step := self._wait_for_work()) is not _Next.LEAVE:
            if step is _Next.NOTICE:
                self._give_notice(run)
                continue
            verdict = self._run_epoch(run)
            if verdict is not _Verdict.GOES_ON:
                return verdict is _Verdict.HAS_ENDED
        return self._job.is_cancelled

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
            run_id=secrets.token_hex(8),
        )

    def _wait_for_work(self) -> _Next:
        with self._changed:
            while not self._job.is_cancelled and not self._is_told_to_go_back:
                wait_ms = self._wait_ms(Moment.now())
                if wait_ms == 0:
                    return _Next.EPOCH
                if self._has_news_for_tasks():
                    return _Next.NOTICE  # The next epoch would tell them, but nobody knows when it comes.
                self._changed.wait(wait_seconds(wait_ms))
        return _Next.LEAVE

    def _wait_ms(self, now: Moment) -> int | None:
        self.executor.check()
        self._sources.check()
        if self._must_save_first():
            return None if self._has_own_checkpoint() else 0
        is_needed = bool(self._requests) or self._sources.are_exhausted or self._has_state_to_open()
        has_work = is_needed or self._sources.has_work()
        return self._policy.wait_ms(now, has_work, self._coordinator.policy.wake_up_tick_ms(now.tick_ms))

    def _has_news_for_tasks(self) -> bool:
        """True if functions wait to hear of a checkpoint that has completed or failed."""
        is_new = self._coordinator.completed_id > self._told_checkpoint or bool(self._coordinator.aborted)
        return is_new and self._hears

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

    def _run_epoch(self, run: _Run) -> _Verdict:
        now = Moment.now()
        self._policy.epoch_started(now)
        self._results.commit(self._checkpoints.is_whole)  # What had to wait for the other regions' checkpoints.
        with self._changed:
            self._requests = [request for request in self._requests if not request.is_answered]
            plan = plan_epoch(
                self._requests,
                may_drain=self._may_drain,
                is_saving_first=self._must_save_first(),
                is_due=self._coordinator.policy.is_due(now.tick_ms),
            )
            self._requests = [request for request in self._requests if request not in plan.requests]
        try:
            return self._run_planned(plan, run, now)
        except BaseException as failure:
            for request in plan.requests:
                if request not in self._stopped_by:
                    request.fail(f"the job failed: {failure}")
            raise

    def _run_planned(self, plan: EpochPlan, run: _Run, now: Moment) -> _Verdict:
        epoch = self._checkpoints.next_id()
        source_rows = self._sources.plan(plan, epoch)
        planning_ms = now.since()
        ending = plan.ending(self._sources.are_exhausted, self._ends_safely(), self._hears)
        if ending.is_checkpoint:
            self._coordinator.start(epoch, now, ending.savepoint_format)
        is_last = ending.is_last and not ending.hears_afterwards
        command = self._command(run, epoch, now, is_checkpoint=ending.is_checkpoint, is_last=is_last)
        acks = self._run_command(command, run, source_rows)
        ran_ms = now.since()
        self._previous_epoch = epoch
        self._sources.epoch_complete(acks, ran_ms)
        positions = self._sources.positions
        if ending.is_checkpoint:
            self._coordinator.acknowledged(acks)
        if plan.reading is Reading.TO_THE_END and plan.stop is not None and not self._is_drained(plan.stop, positions):
            return _Verdict.GOES_BACK
        is_complete = self._complete(epoch, acks, ending, positions)
        self._job.epoch_completed(
            EpochReport(
                self.region,
                now.wall_ms,
                planning_ms=planning_ms,
                running_ms=ran_ms - planning_ms,
                completing_ms=now.since() - ran_ms,
                is_checkpoint=ending.is_checkpoint,
                acks=acks,
            )
        )
        if ending.is_last:
            if ending.hears_afterwards:
                self._give_notice(run, is_last=True)
            self._tell_of_end(ending.requests)
            return _Verdict.HAS_ENDED
        if plan.drains_next is not None:
            self._prepare_to_drain(plan.drains_next, is_complete)
        if plan.stop is not None and self._is_saved(plan.stop):
            self._stopped_by = plan.requests
            self._end_stopped(run)
            return _Verdict.HAS_ENDED
        if plan.stop is not None:
            self._sources.resume()
        return _Verdict.GOES_ON

    def _ends_safely(self) -> bool:
        """True if the last epoch is a checkpoint: somebody commits what belongs to it."""
        return (
            self._job.options.interval_ms is not None
            or self._has_committers
            or (hears_of_checkpoints(self._vertices()) and not self._graph.is_batch)
        )

    def _command(
        self,
        run: _Run,
        epoch: int,
        now: Moment,
        *,
        is_checkpoint: bool = False,
        is_last: bool = False,
        is_notice: bool = False,
    ) -> EpochCommand:
        aborted, self._coordinator.aborted = self._coordinator.aborted, []
        completed = self._coordinator.completed_id
        return EpochCommand(
            epoch=epoch,
            orders=self._coordinator.orders() if is_checkpoint or is_notice or not self._previous_epoch else {},
            now_ms=now.wall_ms,
            previous_epoch=self._previous_epoch,
            restorable_epoch=completed,
            is_checkpoint=is_checkpoint,
            # Tasks are not told of what they were restored from, as in Flink.
            completed_checkpoint=completed if completed > run.origin else 0,
            aborted_checkpoints=tuple(aborted),
            is_last=is_last,
            is_notice=is_notice,
            sampled_vertices=self._job.sampled_vertices(),
        )

    def _run_command(self, command: EpochCommand, run: _Run, source_rows: list[Row]) -> list[TaskAck]:
        result = run_whole_epoch(self.executor, run.host, run.deployment, command, source_rows)
        if result.failures:
            raise error_of(result.failures[0], self._job.id_text, self._job.name)
        expected = sum(vertex.parallelism for vertex in self._vertices())
        if len(result.acks) != expected:
            raise JobExecutionError(
                f"epoch {command.epoch}: {len(result.acks)} of {expected} subtasks acknowledged",
                self._job.id_text,
                self._job.name,
            )
        self._told_checkpoint = command.restorable_epoch
        return sorted(result.acks, key=lambda ack: (ack.vertex, ack.subtask))

    def _give_notice(self, run: _Run, is_last: bool = False) -> None:
        """Let the tasks hear of the last checkpoint; `is_last`: and end."""
        command = self._command(run, self._previous_epoch, Moment.now(), is_last=is_last, is_notice=True)
        acks = self._run_command(command, run, [])
        if not is_last:
            self._sources.notice_given(acks)
        self._take(acks)
        self._results.epoch_completed(is_last)

    def _take(self, acks: list[TaskAck]) -> None:
        for ack in acks:
            self._job.acknowledged(ack)
            self._results.take(ack.outcome)

    # --- its completion --------------------------------------------------------------------------------------------

    def _complete(self, epoch: int, acks: list[TaskAck], ending: EpochEnding, positions: Positions) -> bool:
        """All subtasks have done their part. True if that makes a checkpoint that is complete."""
        self._take(acks)
        times = [ack.outcome.next_processing_time for ack in acks]
        self._policy.epoch_completed([time for time in times if time is not None])
        self._coordinator.policy.epoch_completed()
        if not ending.is_checkpoint:
            self._results.epoch_completed(ending.is_last)
            return False
        completed = self._results.prepare_checkpoint()
        prepared = self._coordinator.complete_acknowledged(positions, Moment.now())
        if prepared is None:
            self._go_on_without(epoch, ending)
            return False
        # State, positions and results move on together, and nothing here can fail. Whatever fails afterwards finds the
        # checkpoint complete: it is not repeated, and what belongs to it is kept until it is settled.
        self._positions = positions
        completed(prepared)
        take_all_steps(
            partial(self._results.settle, self._checkpoints.is_whole),
            partial(self._sources.checkpoint_complete, positions),
            partial(self._job.checkpoint_completed, self.region, ending.requests),
        )
        return True

    def _go_on_without(self, epoch: int, ending: EpochEnding) -> None:
        """The checkpoint failed, which is tolerated unless it was the last one."""
        for request in ending.requests:
            request.fail(f"checkpoint {epoch} failed; the job goes on")
        if ending.is_last:
            raise CheckpointFailedError(
                f"checkpoint {epoch} failed, and it was the last one: the job cannot end with it"
            )
        self._results.epoch_completed(is_last=False)

    # --- stopping --------------------------------------------------------------------------------------------------

    def _prepare_to_drain(self, stop: SavepointRequest, has_checkpoint: bool) -> None:
        if has_checkpoint:
            self._may_drain = stop
            return
        stop.fail("the checkpoint before it failed; the job goes on")

    def _is_drained(self, stop: SavepointRequest, positions: Positions) -> bool:
        """Wait for the savepoint of the drained job; if there is none, the region goes back to before it was drained.

        Only then a checkpoint is made of it: the job could not go on from that, and its commits cannot be taken back.
        """
        self._may_drain = None
        failure = self._coordinator.propose(positions, Moment.now())
        if failure is not None:
            stop.fail(f"{failure}; the job goes on")
        else:
            self._job.checkpoint_proposed(self.region, stop)
        if self._is_saved(stop):
            return True
        self._coordinator.epoch_failed("the savepoint was not written", Moment.now().wall_ms)
        return False

    def _is_saved(self, stop: SavepointRequest) -> bool:
        """Wait for the savepoint with which the job is to stop; False if there is none, and the job goes on."""
        stop.written.add_done_callback(lambda _: self.wake_up())
        with self._changed:
            self._changed.wait_for(lambda: stop.written.done() or self._job.is_cancelled or self._is_told_to_go_back)
        if stop.is_written:
            return True
        if self._job.is_cancelled:
            stop.region_ended(self.region)  # A savepoint that is on its way can still be had.
        else:
            stop.fail(f"job {self._job.id_text} goes back to an earlier checkpoint")  # Unless it has its answer.
        return False

    def _end_stopped(self, run: _Run) -> None:
        """The job's state is in its savepoint: let the tasks hear of it, and end."""
        self._give_notice(run, is_last=True)
        self._tell_of_end(self._stopped_by)
        self._stopped_by = ()

    def _tell_of_end(self, requests: Iterable[Request]) -> None:
        for request in requests:
            if isinstance(request, SavepointRequest):
                request.region_ended(self.region)
