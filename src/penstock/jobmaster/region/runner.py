"""Runs one pipelined region of a job: epoch after epoch, and again from its last checkpoint when it fails."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock.checkpoint.coordinator import CheckpointCoordinator, CheckpointFailedError
from penstock.checkpoint.job_checkpoints import JobCheckpoints
from penstock.checkpoint.store import TASK_OWNED
from penstock.common.clocks import wall_clock_ms
from penstock.common.exceptions import AbandonedError, ClusterLostError, JobExecutionError, LeadershipLostError
from penstock.common.moment import Moment, wait_seconds
from penstock.graph.execution_graph import ExecutionState
from penstock.graph.regions import Region
from penstock.jobmaster.counted import Counted
from penstock.jobmaster.epoch_history import EpochReport
from penstock.jobmaster.execution.stage_executor import EpochCancelledError, StageExecutor
from penstock.jobmaster.failure_history import error_of
from penstock.jobmaster.job_contents import hears_of_checkpoints, tasks_hear_of_checkpoints
from penstock.jobmaster.region.attempt import RegionAttempt, deployment_of
from penstock.jobmaster.region.epoch_plan import EpochEnding, EpochPlan, Reading
from penstock.jobmaster.region.epoch_policy import epoch_policy
from penstock.jobmaster.region.events import (
    AbandonCheckpoint,
    Action,
    AnswerWithEnd,
    AskForRestart,
    AwaitSavepoint,
    CancelRequested,
    CheckpointProposed,
    ClusterLost,
    CompleteEpoch,
    Deploy,
    Deployed,
    EndAttempt,
    EpochCancelled,
    EpochCompleted,
    EpochPrepared,
    EpochRan,
    Event,
    Failed,
    FailRequests,
    GiveNotice,
    GoBack,
    GoBackRequested,
    LeadershipLost,
    Leave,
    NoticeGiven,
    Observe,
    Observed,
    PrepareEpoch,
    ProposeCheckpoint,
    ReportEnd,
    Requested,
    Rest,
    RestartAllowed,
    RestartRefused,
    ResumeSources,
    RunEpoch,
    SavepointSettled,
    Suspend,
    WentBack,
    Woken,
)
from penstock.jobmaster.region.graph import RegionGraph
from penstock.jobmaster.region.job import Job
from penstock.jobmaster.region.results import RegionResults, take_all_steps
from penstock.jobmaster.region.sources import Positions, RegionSources, source_setup
from penstock.jobmaster.region.state_machine import RegionState, RegionStateMachine
from penstock.jobmaster.savepoint_requests import Request, SavepointRequest
from penstock.jobmaster.sinks.job_output import RegionOutput
from penstock.jobmaster.sinks.sink_commits import SinkCommits
from penstock.runtime.protocol import TaskAck
from penstock.runtime.rows import Row


@dataclass(frozen=True)
class _RanEpoch:
    """What is known of an epoch that all subtasks have acknowledged."""

    epoch: int
    acks: list[TaskAck]
    positions: Positions
    """Of the sources, after it; empty unless it ends with a checkpoint."""
    began: Moment
    planning_ms: int
    ran_ms: int
    """From its beginning until all had acknowledged."""


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
        self._graph = RegionGraph(job.job_graph, job.execution_graph, region)
        self._is_batch = job.job_graph.is_batch
        self._takes_checkpoints = job.options.interval_ms is not None
        self._coordinator = CheckpointCoordinator(checkpoints, region, job.options)
        self._policy = epoch_policy(job.config, self._graph.vertices)
        commits = SinkCommits(job.job_graph, job.id_text, region=region, metrics=job.metrics)
        self._results = RegionResults(RegionOutput(job.output, holds_collected=self._takes_checkpoints), commits)
        self._ends_safely = (
            self._takes_checkpoints
            or commits.has_committers
            or (hears_of_checkpoints(self._graph.vertices) and not self._is_batch)
        )
        """True if the last epoch is a checkpoint: somebody commits what belongs to it."""
        self._hears = tasks_hear_of_checkpoints(self._graph.vertices)
        self._changed = threading.Condition()
        self._machine = RegionStateMachine(job.id_text)
        self._is_woken = False
        self._attempt: RegionAttempt | None = None
        self._sources = RegionSources()
        self._wake_ups: dict[tuple[int, int], Moment | None] = {}
        """By vertex and subtask: the processing-time timer that it reported last."""

    # --- from other threads ----------------------------------------------------------------------------------------

    def request(self, request: Request) -> bool:
        """Ask for a checkpoint; False if the region has ended."""
        with self._changed:
            if self._machine.state is RegionState.ENDED:
                return False
            self._machine.on_event(Requested(request))
            self.wake_up()
            return True

    def share_read(self) -> float | None:
        """How much of its input the region has read, from 0 to 1; None if that is not known."""
        return self._sources.share_read()

    @property
    def counted(self) -> Counted:
        """What the region's functions have counted so far."""
        return self._results.counted

    def wake_up(self) -> None:
        """Something has changed: look again."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def go_back(self) -> None:
        """Another region has failed, and all are to start again from their last checkpoint."""
        with self._changed:
            self._machine.on_event(GoBackRequested())
            self.wake_up()

    def abandon(self) -> None:
        """The job ends without waiting for `run`, which may not return for long: nobody may wait for its answers."""
        with self._changed:
            left = self._machine.end()
        for action in left:
            self._carry_out(action)
        self._sources.stop()

    # --- life ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run to the end; raises what makes the job fail."""
        try:
            self._start_sources()
            self._run_attempts()
            # A region that was cancelled has read what nobody has committed: it is not at its end.
            if self._machine.has_finished and not self._has_own_checkpoint():
                self._checkpoints.ended_without(self.region, self._sources.positions)
        finally:
            with self._changed:
                left = self._machine.end()
            for action in left:
                self._carry_out(action)
            take_all_steps(self._end_attempt, self._results.close, self._sources.stop, self.executor.end_region)

    def _run_attempts(self) -> None:
        with self._changed:
            self._note_cancelling()
            actions = self._machine.begin()
        while (event := self._carry_out_all(actions)) is not None:
            with self._changed:
                self._note_cancelling()
                actions = self._machine.on_event(event)
        match actions[-1]:
            case Leave(Exception() as failure):
                raise failure

    def _note_cancelling(self) -> None:
        if self._job.is_cancelled:
            self._machine.on_event(CancelRequested())

    def _carry_out_all(self, actions: list[Action]) -> Event | None:
        """What the last action leads to, or what went wrong on the way; None when the region has left."""
        event = None
        try:
            for action in actions:
                event = self._carry_out(action)
        except (AbandonedError, EpochCancelledError) as reason:
            return EpochCancelled(reason)
        except LeadershipLostError as reason:
            return LeadershipLost(reason)
        except Exception as failure:  # The restart strategy decides about every failure alike
            loss = self.executor.loss()
            return Failed(failure) if loss is None else ClusterLost(ClusterLostError(loss))
        return event

    def _carry_out(self, action: Action) -> Event | None:
        match action:
            case Deploy():
                return self._deploy()
            case Observe():
                return self._observe()
            case Rest(wait_ms):
                return self._rest(wait_ms)
            case PrepareEpoch():
                return self._prepare_epoch()
            case RunEpoch(plan):
                return self._run_epoch(plan)
            case CompleteEpoch(ending):
                return self._complete_epoch(ending)
            case ProposeCheckpoint(stop):
                return self._propose_checkpoint(stop)
            case AwaitSavepoint(stop):
                return self._await_savepoint(stop)
            case GiveNotice(is_last):
                return self._give_notice(is_last)
            case GoBack():
                return self._go_back()
            case AskForRestart(failure):
                return self._ask_for_restart(failure)
            case FailRequests(requests, reason):
                for request in requests:
                    request.fail(reason)
            case ReportEnd(requests):
                for request in requests:
                    if isinstance(request, SavepointRequest):
                        request.region_ended(self.region)
            case AnswerWithEnd(requests):
                for request in requests:
                    self._job.ended_before(self.region, request)
            case ResumeSources():
                self._sources.resume()
            case AbandonCheckpoint(reason):
                self._coordinator.epoch_failed(reason, wall_clock_ms())
            case EndAttempt():
                self._end_attempt()
            case Suspend(lost):
                self._job.suspend(lost)
            case Leave():
                pass
        return None

    def _start_sources(self) -> None:
        restored, storage = self._job.restored, self._checkpoints.store.folder.within(TASK_OWNED)
        setup_of = partial(source_setup, self._job, self._folder / "spool", storage, self.wake_up)
        self._sources.start(self._graph.vertices, setup_of, restored)
        if restored is not None:
            mine = self._graph.operator_ids
            self._results.restore({at: each for at, each in restored.committables.items() if at in mine})
        self._positions = self._sources.positions
        """Where the region goes back to."""
        self._checkpoints.begin_with(self._positions)

    # --- attempts --------------------------------------------------------------------------------------------------

    def _deploy(self) -> Deployed:
        self._results.settle(self._may_commit())
        self._note_committed()
        self._graph.transition(ExecutionState.DEPLOYING)
        self._wake_ups.clear()
        folder = self._checkpoints.store.folder
        deployment = deployment_of(self._job, self.region)
        self._attempt = RegionAttempt(self.executor, deployment, folder, self._coordinator)
        self._attempt.deploy(on_loss=self.wake_up)
        self._graph.transition(ExecutionState.INITIALIZING)
        if self._is_batch:  # All of it is one epoch, at whose end tasks report.
            self._graph.transition(ExecutionState.RUNNING)
        return Deployed()

    def _end_attempt(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.end()

    def _ask_for_restart(self, failure: Exception) -> RestartAllowed | RestartRefused:
        self._coordinator.epoch_failed(str(failure).partition("\n")[0], wall_clock_ms())
        try:
            self._job.wait_before_restart(failure, self.region)
        except Exception as refusal:  # What it raises is what the job fails with
            return RestartRefused(refusal)
        return RestartAllowed()

    def _go_back(self) -> WentBack:
        """Go back to the last complete checkpoint."""
        self._graph.start_over()
        self._coordinator.reset()
        self._sources.rewind(self._positions)
        self._results.go_back()
        return WentBack()

    # --- between epochs --------------------------------------------------------------------------------------------

    def _observe(self) -> Observed:
        with self._changed:
            self._is_woken = False  # What happens from here on ends the next rest at once.
        assert self._attempt is not None
        now = Moment.now()
        wait_ms, report_ms = self._wait_ms(self._attempt, now), self._attempt.report_wait_ms(now)
        has_news = report_ms == 0 or (self._hears and self._attempt.has_news)
        waits_ms = [each for each in (wait_ms, report_ms or None) if each is not None]
        return Observed(min(waits_ms, default=None), has_news)

    def _wait_ms(self, attempt: RegionAttempt, now: Moment) -> int | None:
        self.executor.check()
        self._sources.check()
        if self._must_save_first():
            return None if self._has_own_checkpoint() else 0
        # As in Flink, functions are opened before the first record. A batch job is one epoch, and waits for its input.
        is_to_open = attempt.is_unopened and not self._is_batch
        is_needed = self._machine.has_requests or self._sources.are_exhausted or is_to_open
        has_work = is_needed or self._sources.has_work()
        return self._policy.wait_ms(now, has_work, self._coordinator.policy.wake_up_tick_ms(now.tick_ms))

    def _rest(self, wait_ms: int | None) -> Woken:
        with self._changed:
            self._changed.wait_for(lambda: self._is_woken, wait_seconds(wait_ms))
        return Woken()

    def _must_save_first(self) -> bool:
        """True if the restored state of all regions must be saved before any continues.

        A checkpoint of the job has a part of every region, and what was restored is no part of it.
        """
        return self._takes_checkpoints and not self._graph.is_whole_job and not self._checkpoints.is_whole

    def _may_commit(self) -> bool:
        """True if results that belong to a checkpoint of the region can be committed.

        If the job takes checkpoints, the region waits for one of the whole job. If it takes none, such a checkpoint may
        never come, and the region must not end with results that nobody commits.
        """
        return self._checkpoints.is_whole or not self._takes_checkpoints

    def _note_committed(self) -> None:
        if self._results.is_committed:
            self._checkpoints.committed(self.region)

    def _has_own_checkpoint(self) -> bool:
        return self._coordinator.completed_id != self._checkpoints.restored_id

    # --- an epoch --------------------------------------------------------------------------------------------------

    def _prepare_epoch(self) -> EpochPrepared:
        self._epoch_began = now = Moment.now()
        self._policy.epoch_started(now)
        self._results.commit(self._may_commit())  # What had to wait for the other regions' checkpoints.
        self._note_committed()
        return EpochPrepared(self._must_save_first(), self._coordinator.policy.is_due(now.tick_ms))

    def _run_epoch(self, plan: EpochPlan) -> EpochRan:
        now, epoch = self._epoch_began, self._checkpoints.next_id()
        source_rows = self._sources.plan(plan, epoch)
        planning_ms = now.since()
        ending = plan.ending(self._sources.are_exhausted, self._ends_safely, self._hears)
        if ending.is_checkpoint:
            self._coordinator.start(epoch, now, ending.savepoint_format)
        acks = self._command_tasks(
            epoch,
            now,
            source_rows,
            is_checkpoint=ending.is_checkpoint,
            is_last=ending.is_last and not ending.hears_afterwards,
            # No timer may fire: what it emits could be committed before the other regions have saved their state.
            processes_nothing=plan.reading is Reading.NOTHING,
        )
        ran_ms = now.since()
        self._sources.epoch_complete(acks, ran_ms)
        if ending.is_checkpoint:
            self._coordinator.acknowledged(acks)
        positions = self._sources.positions if ending.is_checkpoint else {}
        self._ran = _RanEpoch(epoch, acks, positions, now, planning_ms, ran_ms)
        return EpochRan(ending)

    def _command_tasks(
        self,
        epoch: int,
        now: Moment,
        source_rows: list[Row],
        *,
        is_checkpoint: bool = False,
        is_last: bool = False,
        processes_nothing: bool = False,
    ) -> list[TaskAck]:
        """What all subtasks answer, in order."""
        assert self._attempt is not None
        result = self._attempt.run_epoch(
            epoch,
            now,
            source_rows,
            self._job.sampled_vertices(),
            is_checkpoint=is_checkpoint,
            is_last=is_last,
            processes_nothing=processes_nothing,
        )
        if result.failures:
            failure = result.failures[0]
            raise error_of(failure, self._job.id_text, self._job.name, self._graph.made_at(failure))
        expected = self._graph.subtask_count
        if result.is_whole and len(result.acks) != expected:
            raise JobExecutionError(
                f"epoch {epoch}: {len(result.acks)} of {expected} subtasks acknowledged",
                self._job.id_text,
                self._job.name,
            )
        return sorted(result.acks, key=lambda ack: (ack.vertex, ack.subtask))

    def _give_notice(self, is_last: bool) -> NoticeGiven:
        assert self._attempt is not None
        acks = self._command_tasks(self._attempt.last_epoch, Moment.now(), [], is_last=is_last, processes_nothing=True)
        if not is_last:
            self._sources.notice_given(acks)
        self._take(acks)
        self._results.epoch_completed(is_last)
        return NoticeGiven()

    def _take(self, acks: list[TaskAck]) -> None:
        self._job.acknowledged(acks)
        now = Moment.now()
        for ack in acks:
            self._results.take(ack)
            wake_up_ms = ack.outcome.next_processing_time
            self._wake_ups[(ack.vertex, ack.subtask)] = None if wake_up_ms is None else now.at(wake_up_ms)

    # --- its completion --------------------------------------------------------------------------------------------

    def _complete_epoch(self, ending: EpochEnding) -> EpochCompleted:
        ran = self._ran
        has_checkpoint = self._complete(ran.epoch, ran.acks, ending, ran.positions)
        self._job.epoch_completed(
            EpochReport(
                self.region,
                ran.began.wall_ms,
                planning_ms=ran.planning_ms,
                running_ms=ran.ran_ms - ran.planning_ms,
                completing_ms=ran.began.since() - ran.ran_ms,
                is_checkpoint=ending.is_checkpoint,
                acks=ran.acks,
                has_more=self._sources.have_more(ran.acks),
            )
        )
        return EpochCompleted(has_checkpoint)

    def _complete(self, epoch: int, acks: list[TaskAck], ending: EpochEnding, positions: Positions) -> bool:
        """All subtasks have done their part. True if that makes a checkpoint that is complete."""
        self._take(acks)
        wake_ups = [moment for moment in self._wake_ups.values() if moment is not None]
        self._policy.epoch_completed(wake_ups, Moment.now())
        self._coordinator.policy.epoch_completed()
        if not ending.is_checkpoint:
            self._results.epoch_completed(ending.is_last)
            return False
        completed = self._results.prepare_checkpoint()
        retry = self._wait_before_retry if _is_saved(ending) else None
        prepared = self._coordinator.complete_acknowledged(positions, Moment.now(), retry)
        if prepared is None:
            self._continue_without(epoch, ending)
            return False
        # State, positions and results move on together, and nothing here can fail. Whatever fails afterwards finds the
        # checkpoint complete: it is not repeated, and what belongs to it is kept until it is settled.
        moves_on, self._positions = positions != self._positions, positions
        completed(prepared)
        take_all_steps(
            partial(self._results.settle, self._may_commit()),
            self._note_committed,
            partial(self._sources.checkpoint_complete, positions),
            partial(self._job.checkpoint_completed, self.region, ending.requests, moves_on),
        )
        return True

    def _wait_before_retry(self, failure: Exception) -> None:
        """The savepoint with which the job ends is written, and other regions may have ended: this one must, too."""
        self._job.wait_before_restart(failure, self.region, is_alone=True)
        if self._job.is_cancelled:
            raise EpochCancelledError

    def _continue_without(self, epoch: int, ending: EpochEnding) -> None:
        """The checkpoint failed, which is tolerated unless it was the last one."""
        for request in ending.requests:
            request.fail(f"checkpoint {epoch} failed; the job continues")
        if ending.is_last:
            raise CheckpointFailedError(
                f"checkpoint {epoch} failed, and it was the last one: the job cannot end with it"
            )
        self._results.epoch_completed(is_last=False)

    # --- stopping --------------------------------------------------------------------------------------------------

    def _propose_checkpoint(self, stop: SavepointRequest) -> CheckpointProposed:
        failure = self._coordinator.propose(self._ran.positions, Moment.now())
        if failure is None:
            self._job.checkpoint_proposed(self.region, stop)
        return CheckpointProposed(failure)

    def _await_savepoint(self, stop: SavepointRequest) -> SavepointSettled:
        stop.written.add_done_callback(lambda _: self.wake_up())
        with self._changed:
            self._changed.wait_for(lambda: stop.written.done() or self._job.is_cancelled or self._machine.must_leave)
        return SavepointSettled(stop.is_written)


def _is_saved(ending: EpochEnding) -> bool:
    """True if the epoch has drained the job, and a savepoint holds what came of it."""
    drains = (each for each in ending.requests if isinstance(each, SavepointRequest) and each.drains)
    return any(each.is_written for each in drains)
