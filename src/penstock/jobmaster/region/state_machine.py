"""Decides what a region does next. Events go in, actions come out: no thread, no clock, no file.

```
              ┌───────────── WentBack ─────────────┐
              ▼                                    │
 begin ─▶ DEPLOYING ─ Deployed ─▶ RUNNING ─────▶ RESTARTING ─ RestartRefused ─▶ (leaves)
              │                   │  ▲  │            ▲
              │      ran for stop │  │  │            │ Failed, in any state; GoBackRequested;
              │                   ▼  │  │            │ a drained job without its savepoint
              │                 STOPPING┼────────────┘
              │ the savepoint is  │     │ the input has ended
              │ written already   ▼     ▼
              └────────────────▶ CLOSING ─ NoticeGiven ─▶ (leaves) ─ end ─▶ ENDED
```

Whatever happens between two decisions (requests, a cancelled job, a failure of another region) is noted and considered
at the next one.
"""

from __future__ import annotations

from enum import Enum, auto

from penstock.jobmaster.region.epoch_plan import EpochEnding, EpochPlan, Reading, plan_epoch
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
from penstock.jobmaster.savepoint_requests import Request, SavepointRequest


class RegionState(Enum):
    DEPLOYING = auto()
    """The tasks of an attempt are being made."""
    RUNNING = auto()
    """Epoch after epoch."""
    STOPPING = auto()
    """The epoch before a stop has run: the job ends with its savepoint, or continues without one."""
    RESTARTING = auto()
    """An attempt is over, and another one is to follow."""
    CLOSING = auto()
    """The last checkpoint or savepoint is complete: the tasks are notified and end."""
    ENDED = auto()


class RegionStateMachine:
    """Gets an event, answers with actions. The last action of an answer is the only one that leads to an event."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self.state = RegionState.DEPLOYING
        self._asked: list[Request] = []
        self._plan: EpochPlan | None = None
        """Of the epoch that is under way, until all that it was for is settled."""
        self._ending: EpochEnding | None = None
        """Of the same epoch, from the time when it has run until it is complete."""
        self._may_drain: SavepointRequest | None = None
        """A request to drain the job, for which there is a checkpoint that the region can come back to."""
        self._stopped_by: tuple[Request, ...] = ()
        """Those that were answered with the end of the job. Its savepoint is written: it ends, whatever fails now."""
        self._given_up: SavepointRequest | None = None
        """A stop that this region was about to fail. If its savepoint is written anyway, the others end with it."""
        self._at_end: tuple[Request, ...] = ()
        """Those that the end of the input has answered. If it fails, it comes again."""
        self.has_finished = False
        """True if the region has come to its end, by itself or with a savepoint: not if it was cancelled or failed."""
        self._is_cancelled = False
        self._must_go_back = False

    @property
    def has_requests(self) -> bool:
        return bool(self._asked)

    @property
    def must_leave(self) -> bool:
        """True if this attempt must come to its end without its savepoint."""
        return self._is_cancelled or self._must_go_back

    def begin(self) -> list[Action]:
        return self._leave() if self._is_cancelled else self._deploy()

    def end(self) -> list[Action]:
        """The region has left, for whatever reason: no request may be left waiting."""
        self.state = RegionState.ENDED
        asked, self._asked = tuple(self._asked), []
        late: Action = FailRequests(asked, f"job {self._job_id} has ended before")
        if self.has_finished:  # The job may go on with other regions.
            late = AnswerWithEnd(asked)
        interrupted = self._fail_epoch("it was interrupted")
        stopped, self._stopped_by = self._stopped_by, ()
        return [
            *interrupted,
            late,
            FailRequests(stopped, f"job {self._job_id} has failed"),
        ]

    def on_event(self, event: Event) -> list[Action]:
        match event:
            case Requested(request):
                self._asked.append(request)
                return []
            case GoBackRequested():
                self._must_go_back = True
                return []
            case CancelRequested():
                self._is_cancelled = True
                return []
            case Failed(failure):
                return self._on_failure(failure)
            case EpochCancelled(reason):
                return [*self._fail_epoch(reason), *self._leave()]
            case ClusterLost(reason) if self._is_cancelled:
                return [*self._fail_epoch(reason), *self._leave()]
            case LeadershipLost(reason) | ClusterLost(reason):
                return [*self._fail_epoch(reason), EndAttempt(), Suspend(reason), Leave()]
            case _:
                return self._on_answer(event)

    def _on_answer(self, event: Event) -> list[Action]:
        match self.state, event:
            case RegionState.DEPLOYING, Deployed():
                self._end_with_others()
                return self._close() if self._stopped_by else self._continue_running()
            case RegionState.RUNNING, Woken() | NoticeGiven():
                return self._continue_running()
            case RegionState.RUNNING, Observed(wait_ms, has_news):
                return self._on_observed(wait_ms, has_news)
            case RegionState.RUNNING, EpochPrepared(is_saving_first, is_due):
                return [RunEpoch(self._next_plan(is_saving_first, is_due))]
            case RegionState.RUNNING, EpochRan(ending):
                return self._on_ran(ending)
            case RegionState.RUNNING, EpochCompleted(has_checkpoint):
                return self._on_completed(has_checkpoint)
            case RegionState.STOPPING, CheckpointProposed(failure):
                return self._on_proposed(failure)
            case RegionState.STOPPING, SavepointSettled(is_written):
                return self._on_settled(is_written)
            case RegionState.CLOSING, NoticeGiven():
                return self._end_well()
            case RegionState.RESTARTING, RestartAllowed():
                return self._leave() if self._is_cancelled else [GoBack()]
            case RegionState.RESTARTING, RestartRefused(failure):
                return [Leave(failure)]
            case RegionState.RESTARTING, WentBack():
                self._must_go_back = False
                return self._deploy()
        raise AssertionError(f"{event} cannot happen to a region that is {self.state.name}")

    # --- running ---------------------------------------------------------------------------------------------------

    def _deploy(self) -> list[Action]:
        self.state, self.has_finished = RegionState.DEPLOYING, False
        return [Deploy()]

    def _continue_running(self) -> list[Action]:
        self.state, self._plan, self._ending = RegionState.RUNNING, None, None
        return self._go_back() if self.must_leave else [Observe()]

    def _on_observed(self, wait_ms: int | None, has_news: bool) -> list[Action]:
        if self.must_leave:
            return self._go_back()
        if wait_ms == 0:
            return [PrepareEpoch()]
        # The next epoch would notify the tasks, too, but it is not known when it comes.
        return [GiveNotice(is_last=False)] if has_news else [Rest(wait_ms)]

    def _next_plan(self, is_saving_first: bool, is_due: bool) -> EpochPlan:
        self._asked = [request for request in self._asked if not request.is_answered]
        plan = plan_epoch(self._asked, may_drain=self._may_drain, is_saving_first=is_saving_first, is_due=is_due)
        self._asked = [request for request in self._asked if request not in plan.requests]
        self._plan = plan
        return plan

    def _on_ran(self, ending: EpochEnding) -> list[Action]:
        assert self._plan is not None
        self._ending = ending
        if self._plan.reading is Reading.TO_THE_END and self._plan.stop is not None:
            # The epoch counts only with its savepoint: the job cannot continue from a checkpoint of drained tasks, and
            # what is committed with it cannot be taken back.
            self.state, self._may_drain = RegionState.STOPPING, None
            return [ProposeCheckpoint(self._plan.stop)]
        return [CompleteEpoch(ending)]

    def _on_completed(self, has_checkpoint: bool) -> list[Action]:
        plan, ending = self._plan, self._ending
        assert plan is not None and ending is not None
        self._ending = None
        if ending.is_last:
            self._at_end = ending.requests
            return self._close() if ending.hears_afterwards else self._end_well()
        if plan.stop is not None:
            self.state = RegionState.STOPPING
            return [AwaitSavepoint(plan.stop)]
        if plan.drains_next is None:
            return self._continue_running()
        if has_checkpoint:
            self._may_drain = plan.drains_next
            return self._continue_running()
        reason = "the checkpoint before it failed; the job continues"
        return [FailRequests((plan.drains_next,), reason), *self._continue_running()]

    # --- stopping --------------------------------------------------------------------------------------------------

    def _on_proposed(self, failure: str | None) -> list[Action]:
        assert self._plan is not None and self._plan.stop is not None
        stop = self._plan.stop
        if failure is None:
            return [AwaitSavepoint(stop)]
        return [FailRequests((stop,), f"{failure}; the job continues"), *self._continue_undrained()]

    def _on_settled(self, is_written: bool) -> list[Action]:
        assert self._plan is not None
        if not is_written:
            return self._continue_unsaved(self._plan)
        if self._ending is not None:
            self.state = RegionState.RUNNING
            return [CompleteEpoch(self._ending)]
        self._stopped_by = self._plan.requests
        return self._close()

    def _continue_unsaved(self, plan: EpochPlan) -> list[Action]:
        self._give_up(plan)
        stops = tuple(each for each in plan.requests if isinstance(each, SavepointRequest) and each.stops_job)
        answer: Action = FailRequests(stops, f"job {self._job_id} goes back to an earlier checkpoint")
        if self._is_cancelled:
            answer = ReportEnd(stops)  # A savepoint that is on its way can still be had.
        if self._ending is not None:
            return [answer, *self._continue_undrained()]
        return [answer, ResumeSources(), *self._continue_running()]

    def _give_up(self, plan: EpochPlan | None) -> None:
        """Remember a stop that may still succeed. A drained region goes back to before its savepoint, and continues."""
        if plan is not None and plan.stop is not None and not plan.stop.drains:
            self._given_up = plan.stop

    def _end_with_others(self) -> None:
        """The savepoint has this region's part, which is its last checkpoint. The others see it written, and end."""
        given_up, self._given_up = self._given_up, None
        if given_up is not None and given_up.is_written and not self._stopped_by:
            self._stopped_by = (given_up,)

    def _continue_undrained(self) -> list[Action]:
        return [AbandonCheckpoint("the savepoint was not written"), *self._go_back()]

    # --- the end of an attempt -------------------------------------------------------------------------------------

    def _close(self) -> list[Action]:
        self.state = RegionState.CLOSING
        return [GiveNotice(is_last=True)]

    def _end_well(self) -> list[Action]:
        requests = self._stopped_by or self._at_end
        self._stopped_by, self._plan, self.has_finished = (), None, True
        # One that was to drain the job is among those that wait until there is nothing left to drain.
        self._asked = [request for request in self._asked if request not in requests]
        return [ReportEnd(requests), *self._leave()]

    def _go_back(self) -> list[Action]:
        self._plan = self._ending = None
        if self._is_cancelled:
            return self._leave()
        self.state = RegionState.RESTARTING
        return [EndAttempt(), GoBack()]

    def _leave(self) -> list[Action]:
        return [EndAttempt(), Leave()]

    def _on_failure(self, failure: Exception) -> list[Action]:
        plan = self._plan
        if plan is not None and plan.stop is not None and not plan.stop.drains and plan.stop.is_written:
            self._stopped_by = plan.requests
        self._give_up(plan)
        failed = self._fail_epoch(failure)
        if self._is_cancelled:
            return [*failed, *self._leave()]
        self.state = RegionState.RESTARTING
        return [*failed, EndAttempt(), AskForRestart(failure)]

    def _fail_epoch(self, failure: Exception | str) -> list[Action]:
        requests = () if self._plan is None else self._plan.requests
        self._plan = self._ending = None
        failed = tuple(request for request in requests if request not in self._stopped_by)
        return [FailRequests(failed, f"the job failed: {failure}")] if failed else []
