"""What a region decides, event by event: no thread, no clock, no file."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.metadata import CANONICAL
from penstock.common.exceptions import LeadershipLostError
from penstock.jobmaster.region.epoch_plan import EpochEnding, Reading
from penstock.jobmaster.region.events import (
    AbandonCheckpoint,
    AskForRestart,
    AwaitSavepoint,
    CancelRequested,
    CheckpointProposed,
    CompleteEpoch,
    Deploy,
    Deployed,
    EndAttempt,
    EpochCancelled,
    EpochCompleted,
    EpochPrepared,
    EpochRan,
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
from penstock.jobmaster.region.state_machine import RegionState, RegionStateMachine
from penstock.jobmaster.savepoint_requests import CheckpointRequest, SavepointRequest

REGION = frozenset({0})
DUE_NOW = Observed(0, False)
PREPARED = EpochPrepared(is_saving_first=False, is_checkpoint_due=False)
GOES_ON = EpochEnding(is_last=False, is_checkpoint=True, hears_afterwards=False, requests=())


def stopping(drains=False):
    return SavepointRequest({REGION}, "somewhere", CANONICAL, stops_job=True, drains=drains)


def running(*requests):
    machine = RegionStateMachine("the-job")
    assert machine.begin() == [Deploy()]
    assert machine.on_event(Deployed()) == [Observe()]
    for request in requests:
        machine.on_event(Requested(request))
    return machine


def feed(machine, *events):
    """The answer to the last event."""
    return [machine.on_event(event) for event in events][-1]


def planned(machine):
    (action,) = feed(machine, DUE_NOW, PREPARED)
    assert isinstance(action, RunEpoch)
    return action.plan


# --- running ---------------------------------------------------------------------------------------------------------


def test_region_rests_until_there_is_something_to_do():
    machine = running()
    assert machine.on_event(Observed(70, False)) == [Rest(70)]
    assert machine.on_event(Woken()) == [Observe()]
    assert machine.on_event(Observed(70, True)) == [GiveNotice(is_last=False)]
    assert machine.on_event(NoticeGiven()) == [Observe()]
    assert machine.on_event(Observed(0, True)) == [PrepareEpoch()]


def test_request_gets_a_checkpoint_in_the_next_epoch():
    request = CheckpointRequest({REGION})
    machine = running(request)
    plan = planned(machine)
    assert (plan.is_checkpoint, plan.requests) == (True, (request,))
    assert feed(machine, EpochRan(GOES_ON), EpochCompleted(True)) == [Observe()]
    assert not machine.has_requests


@pytest.mark.parametrize("hears", [True, False])
def test_region_ends_with_its_input(hears):
    machine = running()
    planned(machine)
    ending = EpochEnding(is_last=True, is_checkpoint=True, hears_afterwards=hears, requests=())
    answer = feed(machine, EpochRan(ending), EpochCompleted(True))
    if hears:
        assert (answer, machine.state) == ([GiveNotice(is_last=True)], RegionState.CLOSING)
        answer = machine.on_event(NoticeGiven())
    assert answer == [ReportEnd(()), EndAttempt(), Leave()]


def test_who_asks_to_drain_a_job_that_ends_by_itself_is_answered_by_its_end_and_not_failed():
    drain = stopping(drains=True)
    machine = running(drain)
    plan = planned(machine)
    ending = plan.ending(has_ended_input=True, ends_safely=True, hears=False)
    answer = feed(machine, EpochRan(ending), EpochCompleted(True))
    assert answer == [ReportEnd((drain,)), EndAttempt(), Leave()]
    assert all(not action.requests for action in machine.end())  # Its savepoint may still be on its way.


# --- stopping --------------------------------------------------------------------------------------------------------


def stopped(drains, is_written):
    """A job that was asked to stop, and the answer to its savepoint."""
    stop = stopping(drains)
    machine = running(stop)
    if drains:
        assert planned(machine).drains_next is stop
        feed(machine, EpochRan(GOES_ON), EpochCompleted(True))
        assert planned(machine).reading is Reading.TO_THE_END
        ending = EpochEnding(is_last=True, is_checkpoint=True, hears_afterwards=True, requests=(stop,))
        assert feed(machine, EpochRan(ending)) == [ProposeCheckpoint(stop)]
        assert feed(machine, CheckpointProposed(None)) == [AwaitSavepoint(stop)]
    else:
        assert planned(machine).reading is Reading.WHAT_WAS_TAKEN
        assert feed(machine, EpochRan(GOES_ON), EpochCompleted(True)) == [AwaitSavepoint(stop)]
    assert machine.state is RegionState.STOPPING
    return stop, machine, machine.on_event(SavepointSettled(is_written))


def test_job_stops_with_its_savepoint():
    stop, machine, answer = stopped(drains=False, is_written=True)
    assert answer == [GiveNotice(is_last=True)]
    assert machine.on_event(NoticeGiven()) == [ReportEnd((stop,)), EndAttempt(), Leave()]


def test_drained_epoch_completes_only_with_its_savepoint():
    stop, machine, (complete,) = stopped(drains=True, is_written=True)
    assert isinstance(complete, CompleteEpoch)
    assert feed(machine, EpochCompleted(True)) == [GiveNotice(is_last=True)]
    assert machine.on_event(NoticeGiven()) == [ReportEnd((stop,)), EndAttempt(), Leave()]


def test_job_without_its_savepoint_continues_reading():
    stop, _, answer = stopped(drains=False, is_written=False)
    assert answer == [
        FailRequests((stop,), "job the-job goes back to an earlier checkpoint"),
        ResumeSources(),
        Observe(),
    ]


def test_all_who_asked_for_the_same_stop_hear_that_there_is_none():
    first, second, other = stopping(), stopping(), CheckpointRequest({REGION})
    machine = running(first, second, other)
    planned(machine)
    feed(machine, EpochRan(GOES_ON), EpochCompleted(True))
    failed, *_ = machine.on_event(SavepointSettled(False))
    assert failed.requests == (first, second)


def test_drained_job_without_its_savepoint_goes_back():
    _, machine, (_, *rest) = stopped(drains=True, is_written=False)
    assert rest == [AbandonCheckpoint("the savepoint was not written"), EndAttempt(), GoBack()]
    assert machine.on_event(WentBack()) == [Deploy()]


def test_drained_state_that_cannot_be_proposed_is_not_waited_for():
    stop = stopping(drains=True)
    machine = running(stop)
    planned(machine)
    feed(machine, EpochRan(GOES_ON), EpochCompleted(True))
    planned(machine)
    feed(machine, EpochRan(GOES_ON))
    failed, *rest = machine.on_event(CheckpointProposed("disk full"))
    assert failed == FailRequests((stop,), "disk full; the job continues")
    assert rest == [AbandonCheckpoint("the savepoint was not written"), EndAttempt(), GoBack()]


def test_job_is_not_drained_without_a_checkpoint_to_come_back_to():
    stop = stopping(drains=True)
    machine = running(stop)
    planned(machine)
    answer = feed(machine, EpochRan(GOES_ON), EpochCompleted(False))
    assert answer == [FailRequests((stop,), "the checkpoint before it failed; the job continues"), Observe()]


def test_cancelled_job_leaves_a_savepoint_on_its_way_alone():
    stop = stopping()
    machine = running(stop)
    planned(machine)
    feed(machine, EpochRan(GOES_ON), EpochCompleted(True), CancelRequested())
    assert machine.must_leave
    answer = machine.on_event(SavepointSettled(False))
    assert answer == [ReportEnd((stop,)), ResumeSources(), EndAttempt(), Leave()]


def test_job_whose_savepoint_is_written_ends_whatever_fails_afterwards():
    stop, machine, _ = stopped(drains=False, is_written=True)
    error = OSError("a worker is lost")
    assert machine.on_event(Failed(error)) == [EndAttempt(), AskForRestart(error)]
    assert feed(machine, RestartAllowed(), WentBack()) == [Deploy()]
    assert machine.on_event(Deployed()) == [GiveNotice(is_last=True)]
    assert machine.on_event(NoticeGiven()) == [ReportEnd((stop,)), EndAttempt(), Leave()]


# --- failures --------------------------------------------------------------------------------------------------------


def test_failure_fails_those_the_epoch_was_for_and_asks_for_a_restart():
    request, error = CheckpointRequest({REGION}), ValueError("bad element")
    machine = running(request)
    planned(machine)
    assert machine.on_event(Failed(error)) == [
        FailRequests((request,), "the job failed: bad element"),
        EndAttempt(),
        AskForRestart(error),
    ]
    assert machine.state is RegionState.RESTARTING
    assert machine.on_event(RestartAllowed()) == [GoBack()]


@pytest.mark.parametrize("is_written", ["before the failure", "when it is failed", "never"])
def test_region_ends_with_a_savepoint_with_which_the_others_end(is_written):
    """Its part was complete, and what came after that has failed: a commit, for instance."""
    stop, error = stopping(), OSError("a commit failed")
    machine = running(stop)
    planned(machine)
    machine.on_event(EpochRan(GOES_ON))
    if is_written == "before the failure":
        stop.succeed("there")
    answer = machine.on_event(Failed(error))
    fails = [FailRequests((stop,), "the job failed: a commit failed")]
    assert answer == [*([] if is_written == "before the failure" else fails), EndAttempt(), AskForRestart(error)]
    if is_written == "when it is failed":
        stop.succeed("there")
    answer = feed(machine, RestartAllowed(), WentBack(), Deployed())
    if is_written == "never":
        assert answer == [Observe()]
        return
    assert answer == [GiveNotice(is_last=True)]
    assert machine.on_event(NoticeGiven()) == [ReportEnd((stop,)), EndAttempt(), Leave()]


def test_failure_before_the_plan_keeps_requests_for_the_next_attempt():
    request = CheckpointRequest({REGION})
    machine = running(request)
    feed(machine, DUE_NOW, Failed(OSError("a commit failed")), RestartAllowed(), WentBack(), Deployed())
    assert planned(machine).requests == (request,)


def test_refused_restart_fails_the_job_and_everybody_who_waits():
    request, error = CheckpointRequest({REGION}), ValueError("bad element")
    machine = running(request)
    assert feed(machine, Failed(error), RestartRefused(error)) == [Leave(error)]
    assert machine.end()[0] == FailRequests((request,), "job the-job has ended before")
    assert machine.state is RegionState.ENDED


def test_region_that_is_told_to_goes_back_once():
    machine = running()
    machine.on_event(GoBackRequested())
    assert machine.on_event(DUE_NOW) == [EndAttempt(), GoBack()]
    assert feed(machine, WentBack(), Deployed()) == [Observe()]
    assert machine.on_event(DUE_NOW) == [PrepareEpoch()]


def test_failure_of_a_cancelled_job_asks_nobody():
    machine = running()
    assert feed(machine, CancelRequested(), Failed(ValueError("gone"))) == [EndAttempt(), Leave()]


def test_job_that_is_cancelled_before_it_begins_does_nothing():
    machine = RegionStateMachine("the-job")
    machine.on_event(CancelRequested())
    assert machine.begin() == [EndAttempt(), Leave()]


def test_lost_leadership_suspends_the_job_and_leaves():
    lost = LeadershipLostError("another leads")
    machine = running()
    planned(machine)
    assert machine.on_event(LeadershipLost(lost)) == [EndAttempt(), Suspend(lost), Leave()]


def test_event_that_cannot_happen_is_refused():
    with pytest.raises(AssertionError, match=r"WentBack.*RUNNING"):
        running().on_event(WentBack())


# --- any sequence ----------------------------------------------------------------------------------------------------

WITHOUT_EVENT = (FailRequests, ReportEnd, ResumeSources, AbandonCheckpoint, EndAttempt, Suspend)
FAILURE = Failed(ValueError("something"))
REQUESTS = ("checkpoint", "savepoint", "stop", "drain")
OUTSIDE = (None,) * 8 + REQUESTS * 2 + (GoBackRequested(),)


def request_of(kind):
    if kind == "checkpoint":
        return CheckpointRequest({REGION})
    return SavepointRequest({REGION}, "somewhere", CANONICAL, kind in ("stop", "drain"), kind == "drain")


class World:
    """Carries out actions by chance, and holds the machine to what must be so at every step."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.machine = RegionStateMachine("the-job")
        self.asked, self.settled = [], set()
        self.has_attempt = False
        self.must_go_back = self.was_stopped = self.was_cancelled = False

    def run(self, steps):
        actions = self.machine.begin()
        for step in range(steps + 10):
            event = self.carry_out(actions)
            if event is None:
                return self.end()
            for happened in self.random.choices(OUTSIDE, k=3):
                self.happens(happened)
            if step >= steps or self.random.random() < 0.02:  # Also a long walk has an end.
                self.happens(CancelRequested())
            actions = self.machine.on_event(event)
        raise AssertionError("a cancelled region did not leave")

    def happens(self, event):
        if isinstance(event, str):
            request = request_of(event)
            self.asked.append(request)
            event = Requested(request)
        self.was_cancelled |= isinstance(event, CancelRequested)
        if event is not None:
            assert self.machine.on_event(event) == []

    def end(self):
        assert not self.has_attempt
        for action in self.machine.end():
            self.settled.update(action.requests)
        assert set(self.asked) == self.settled, "a request is never answered"

    def carry_out(self, actions):
        """The event behind the last action; None when the region has left."""
        for action in actions[:-1]:
            assert isinstance(
                action, FailRequests | ReportEnd | ResumeSources | AbandonCheckpoint | EndAttempt | Suspend
            )
            if isinstance(action, FailRequests | ReportEnd):
                self.settled.update(action.requests)
            if isinstance(action, EndAttempt):
                self.has_attempt = False
            if isinstance(action, AbandonCheckpoint):
                self.must_go_back = True
        last = actions[-1]
        if isinstance(last, Leave):
            return None
        if isinstance(last, Deploy):
            assert not self.has_attempt and not self.must_go_back
            self.has_attempt = True
        elif isinstance(last, GoBack | AskForRestart):
            assert not self.has_attempt
        else:
            assert self.has_attempt
        if isinstance(last, PrepareEpoch):
            assert not self.must_go_back and not self.was_cancelled
        if isinstance(last, RunEpoch):
            assert not self.was_stopped, "the job ends with its savepoint"
        return self.outcome(last)

    def outcome(self, action):
        chance = self.random.randrange(10)
        if chance == 0 and not isinstance(action, AskForRestart):
            return FAILURE
        if chance == 1 and isinstance(action, RunEpoch):
            return EpochCancelled(RuntimeError("cancelled")) if self.was_cancelled else FAILURE
        match action:
            case Deploy():
                return Deployed()
            case Observe():
                return Observed(self.random.choice([0, 0, 5, None]), chance == 2)
            case Rest():
                return Woken()
            case PrepareEpoch():
                return EpochPrepared(is_saving_first=chance == 2, is_checkpoint_due=chance == 3)
            case RunEpoch(plan):
                has_ended = chance == 4 or plan.reading is Reading.TO_THE_END
                self.ending = plan.ending(has_ended, ends_safely=chance % 2 == 0, hears=chance % 3 == 0)
                return EpochRan(self.ending)
            case CompleteEpoch(ending):
                assert ending is self.ending
                is_complete = ending.is_checkpoint and (chance > 2 or ending.is_last)
                # The job has answered, or has failed, all that the checkpoint was for, except those that stop the job.
                self.settled.update(
                    each for each in ending.requests if not getattr(each, "stops_job", False) or not is_complete
                )
                return EpochCompleted(is_complete)
            case ProposeCheckpoint():
                return CheckpointProposed("disk full" if chance == 2 else None)
            case AwaitSavepoint(stop):
                is_written = chance > 4 and not self.was_cancelled
                # One that drains has completed nothing yet: it may still fail, and then everything may happen again.
                self.was_stopped |= is_written and not stop.drains
                return SavepointSettled(is_written)
            case GiveNotice(is_last):
                assert is_last == (self.machine.state is RegionState.CLOSING)
                return NoticeGiven()
            case GoBack():
                self.must_go_back = False
                return WentBack()
            case AskForRestart(failure):
                self.must_go_back = True
                return RestartAllowed() if chance else RestartRefused(failure)
        raise AssertionError(action)


@settings(max_examples=500, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_a_region_keeps_its_promises(seed):
    """One attempt at a time, everybody is answered, a stopped job runs no more epochs, and a cancelled one leaves."""
    World(seed).run(steps=60)
