from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from penstock.common.moment import Moment, wait_seconds
from penstock.jobmaster.epoch_policy import EpochPolicy

times = st.integers(0, 10_000)


def at(time_ms: int) -> Moment:
    """A moment at which both clocks show the same."""
    return Moment(time_ms, time_ms)


def test_first_epoch_with_work_runs_at_once():
    assert EpochPolicy(50).wait_ms(at(1000), has_work=True) == 0


def test_without_work_and_timers_the_job_sleeps():
    assert EpochPolicy(50).wait_ms(at(1000), has_work=False) is None


def test_epochs_keep_their_distance():
    policy = EpochPolicy(50)
    policy.epoch_started(at(1000))
    assert policy.wait_ms(at(1010), has_work=True) == 40
    assert policy.wait_ms(at(1050), has_work=True) == 0
    assert policy.wait_ms(at(9000), has_work=True) == 0


def test_earliest_timer_wakes_the_job():
    policy = EpochPolicy(50)
    policy.epoch_started(at(1000))
    policy.epoch_completed([5000, 3000, 4000])
    assert policy.wait_ms(at(1010), has_work=False) == 1990
    assert policy.wait_ms(at(3000), has_work=False) == 0
    assert policy.wait_ms(at(1100), has_work=True) == 0


def test_timer_that_is_due_waits_for_the_distance_too():
    policy = EpochPolicy(50)
    policy.epoch_started(at(1000))
    policy.epoch_completed([900])
    assert policy.wait_ms(at(1020), has_work=False) == 30


def test_timers_of_the_last_epoch_replace_those_before():
    policy = EpochPolicy(50)
    policy.epoch_completed([3000])
    policy.epoch_completed([])
    assert policy.wait_ms(at(1000), has_work=False) is None


@given(st.integers(0, 500), times, st.none() | times, st.booleans(), times)
def test_waiting_as_told_leads_to_an_epoch(interval, started, wake_up, has_work, now):
    policy = EpochPolicy(interval, started, wake_up)
    wait = policy.wait_ms(at(now), has_work)
    if wait is None:
        assert not has_work and wake_up is None
    else:
        assert policy.wait_ms(at(now + wait), has_work) == 0
        assert now + wait >= started + interval


@given(st.integers(0, 500), times, times, st.booleans(), st.integers(-(10**9), 10**9))
def test_wall_clock_that_is_set_changes_no_interval(interval, started, now, has_work, step):
    policy = EpochPolicy(interval, started)
    expected = policy.wait_ms(at(now), has_work, checkpoint_tick_ms=started + 700)
    assert policy.wait_ms(Moment(now + step, now), has_work, checkpoint_tick_ms=started + 700) == expected


def test_timer_at_the_end_of_time_is_waited_for_in_pieces():
    policy = EpochPolicy(50)
    policy.epoch_completed([2**63 - 1])
    wait = policy.wait_ms(at(1000), has_work=False)
    assert wait == 2**63 - 1001
    assert wait_seconds(wait) == threading.TIMEOUT_MAX
