"""What an epoch is for: facts go in, a plan comes out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.jobmaster.region.epoch_plan import EpochPlan, Reading, plan_epoch
from penstock.jobmaster.savepoint_requests import CheckpointRequest, Request, SavepointRequest

REGION = frozenset({0})


def savepoint(stops: bool = False, drains: bool = False, format_type: str = "canonical") -> SavepointRequest:
    return SavepointRequest([REGION], "there", format_type, stops, drains)


def planned(
    *asked: Request,
    may_drain: SavepointRequest | None = None,
    is_saving_first: bool = False,
    is_due: bool = False,
) -> EpochPlan:
    return plan_epoch(asked, may_drain=may_drain, is_saving_first=is_saving_first, is_due=is_due)


def test_epoch_that_nobody_asked_for_reads_what_is_there():
    assert planned() == EpochPlan(Reading.WHAT_IS_THERE, is_checkpoint=False)
    assert planned(is_due=True) == EpochPlan(Reading.WHAT_IS_THERE, is_checkpoint=True)


def test_restored_state_is_saved_before_anything_is_read_or_answered():
    assert planned(CheckpointRequest([REGION]), is_saving_first=True) == EpochPlan(Reading.NOTHING, True)


def test_request_makes_the_epoch_a_checkpoint():
    request = CheckpointRequest([REGION])
    assert planned(request) == EpochPlan(Reading.WHAT_IS_THERE, True, (request,))


def test_stop_reads_only_what_was_taken():
    stop, other = savepoint(stops=True), CheckpointRequest([REGION])
    assert planned(other, stop) == EpochPlan(Reading.WHAT_WAS_TAKEN, True, (other, stop), stop)


def test_job_is_drained_behind_a_checkpoint_that_it_can_come_back_to():
    stop, other = savepoint(stops=True, drains=True), savepoint()
    before = planned(other, stop)
    assert before == EpochPlan(Reading.WHAT_IS_THERE, True, (other,), drains_next=stop)
    assert planned(other, stop, may_drain=stop) == EpochPlan(Reading.TO_THE_END, True, (stop,), stop)
    assert planned(stop, may_drain=savepoint(stops=True, drains=True)).drains_next is stop


def test_input_that_ends_by_itself_needs_no_draining():
    stop = savepoint(stops=True, drains=True)
    ending = planned(stop).ending(has_ended_input=True, ends_safely=False, hears=False)
    assert (ending.is_last, ending.is_checkpoint, ending.requests) == (True, True, (stop,))
    assert planned(stop).ending(has_ended_input=False, ends_safely=False, hears=False).requests == ()


def test_last_epoch_is_a_checkpoint_only_if_somebody_commits_it():
    assert not planned().ending(has_ended_input=True, ends_safely=False, hears=True).is_checkpoint
    ending = planned().ending(has_ended_input=True, ends_safely=True, hears=True)
    assert ending.is_checkpoint and ending.hears_afterwards


def test_checkpoint_is_reported_with_the_format_of_its_savepoint():
    plan = planned(CheckpointRequest([REGION]), savepoint(format_type="native"))
    assert plan.ending(False, False, False).savepoint_format == "native"
    assert planned(CheckpointRequest([REGION])).ending(False, False, False).savepoint_format is None


requests = st.lists(
    st.one_of(
        st.builds(lambda: CheckpointRequest([REGION])),
        st.builds(lambda stops, drains: savepoint(stops, stops and drains), st.booleans(), st.booleans()),
    ),
    max_size=5,
)


@given(requests, st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_every_plan_holds_together(asked, is_saving_first, is_due, has_ended, ends_safely, hears):
    plan = plan_epoch(asked, is_saving_first=is_saving_first, is_due=is_due)
    ending = plan.ending(has_ended, ends_safely, hears)
    assert set(ending.requests) <= set(asked)
    assert ending.is_checkpoint or not ending.requests, "who asks for a checkpoint gets one"
    assert not ending.hears_afterwards or (ending.is_last and ending.is_checkpoint)
    assert plan.stop is None or plan.stop in plan.requests
    assert not (plan.stop and plan.drains_next)
    assert not any(isinstance(each, SavepointRequest) and each.drains for each in plan.requests)
    if plan.reading is Reading.NOTHING:
        assert not ending.is_last and not ending.requests


@given(requests)
def test_every_request_has_its_turn(asked):
    """Whatever is asked for at the same time: a few epochs answer it, or the job has ended before."""
    waiting, may_drain = list(asked), None
    for _ in range(2 * len(asked) + 1):
        plan = plan_epoch(waiting, may_drain=may_drain, is_saving_first=False, is_due=False)
        waiting = [each for each in waiting if each not in plan.requests]
        may_drain = plan.drains_next
        if plan.stop is not None:
            return
    assert not waiting
