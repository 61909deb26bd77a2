from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.jobmaster.epoch_policy import EpochPolicy

times = st.integers(0, 10_000)


def test_first_epoch_with_work_runs_at_once():
    assert EpochPolicy(50).wait_ms(1000, has_work=True) == 0


def test_without_work_and_timers_the_job_sleeps():
    assert EpochPolicy(50).wait_ms(1000, has_work=False) is None


def test_epochs_keep_their_distance():
    policy = EpochPolicy(50)
    policy.epoch_started(1000)
    assert policy.wait_ms(1010, has_work=True) == 40
    assert policy.wait_ms(1050, has_work=True) == 0
    assert policy.wait_ms(9000, has_work=True) == 0


def test_earliest_timer_wakes_the_job():
    policy = EpochPolicy(50)
    policy.epoch_started(1000)
    policy.epoch_completed([5000, 3000, 4000])
    assert policy.wait_ms(1010, has_work=False) == 1990
    assert policy.wait_ms(3000, has_work=False) == 0
    assert policy.wait_ms(1100, has_work=True) == 0


def test_timer_that_is_due_waits_for_the_distance_too():
    policy = EpochPolicy(50)
    policy.epoch_started(1000)
    policy.epoch_completed([900])
    assert policy.wait_ms(1020, has_work=False) == 30


def test_timers_of_the_last_epoch_replace_those_before():
    policy = EpochPolicy(50)
    policy.epoch_completed([3000])
    policy.epoch_completed([])
    assert policy.wait_ms(1000, has_work=False) is None


@given(st.integers(0, 500), times, st.none() | times, st.booleans(), times)
def test_waiting_as_told_leads_to_an_epoch(interval, started, wake_up, has_work, now):
    policy = EpochPolicy(interval, started, wake_up)
    wait = policy.wait_ms(now, has_work)
    if wait is None:
        assert not has_work and wake_up is None
    else:
        assert policy.wait_ms(now + wait, has_work) == 0
        assert now + wait >= started + interval
