from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.moment import SLACK_MS, Moment, wait_seconds
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.region.epoch_policy import PROMPT_MS, EpochPolicy, epoch_policy

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
    policy.epoch_completed([at(5000), at(3000), at(4000)], at(1005))
    assert policy.wait_ms(at(1010), has_work=False) == 1990
    assert policy.wait_ms(at(3000), has_work=False) == 0
    assert policy.wait_ms(at(1100), has_work=True) == 0


def test_timer_that_is_due_waits_for_the_distance_too():
    policy = EpochPolicy(50)
    policy.epoch_started(at(1000))
    policy.epoch_completed([at(900)], at(1005))
    assert policy.wait_ms(at(1020), has_work=False) == 30


def test_timers_of_the_last_epoch_replace_those_before():
    policy = EpochPolicy(50)
    policy.epoch_completed([at(3000)], at(1000))
    policy.epoch_completed([], at(1000))
    assert policy.wait_ms(at(1000), has_work=False) is None


@given(st.integers(0, 500), times, st.none() | times, st.booleans(), times)
def test_waiting_as_told_leads_to_an_epoch(interval, started, wake_up, has_work, now):
    policy = EpochPolicy(interval, started, None if wake_up is None else at(wake_up))
    wait = policy.wait_ms(at(now), has_work)
    if wait is None:
        assert not has_work and wake_up is None
    else:
        assert policy.wait_ms(at(now + wait), has_work) == 0
        assert now + wait >= started + interval


@given(st.integers(0, 20), st.integers(0, 20))
def test_eager_job_rests_about_as_long_as_an_epoch_took_and_never_longer_than_a_record_may_wait(duration, passed):
    policy = EpochPolicy(PROMPT_MS, is_eager=True)
    policy.epoch_started(at(1000))
    policy.epoch_completed([], at(1000 + duration))
    now = 1000 + duration + passed
    began = now + policy.wait_ms(at(now), has_work=True)
    assert began == max(now, 1000 + min(PROMPT_MS, 2 * max(1, duration)))


@given(st.integers(0, 500), times, times, st.booleans(), st.integers(-(10**9), 10**9))
def test_wall_clock_that_is_set_changes_no_interval(interval, started, now, has_work, step):
    policy = EpochPolicy(interval, started)
    expected = policy.wait_ms(at(now), has_work, checkpoint_tick_ms=started + 700)
    assert policy.wait_ms(Moment(now + step, now), has_work, checkpoint_tick_ms=started + 700) == expected


@given(times, st.integers(-(10**9), 10**9))
def test_timer_is_waited_for_no_longer_if_the_wall_clock_is_set_back(wait, step):
    policy = EpochPolicy(0)
    policy.epoch_completed([at(1000 + wait), at(20_000)], at(1000))
    assert policy.wait_ms(Moment(1000 + step, 1000), has_work=False) == max(0, min(wait - step, wait + SLACK_MS))


def test_timer_at_the_end_of_time_is_waited_for_in_pieces():
    policy = EpochPolicy(50)
    policy.epoch_completed([at(2**63 - 1)], at(1000))
    wait = policy.wait_ms(at(1000), has_work=False)
    assert wait == 2**63 - 1001
    assert wait_seconds(wait) == threading.TIMEOUT_MAX


@pytest.mark.parametrize(
    ("settings", "of_environment", "of_operators", "interval_ms"),
    [
        ({}, None, [], 5),
        ({}, 100, [], 100),
        ({}, 0, [], 0),
        ({}, -1, [], 100),
        ({"execution.buffer-timeout.interval": "20 ms"}, None, [], 20),
        ({"execution.buffer-timeout.interval": "-1"}, None, [], 100),
        ({"execution.buffer-timeout.enabled": "false"}, None, [], 100),
        ({}, 50, [10, 30], 10),
        ({}, 50, [1000], 50),
        ({"penstock.epoch.interval": "7 ms"}, 50, [1], 7),
    ],
)
def test_buffer_timeout_is_the_distance_of_epochs(settings, of_environment, of_operators, interval_ms):
    env = StreamExecutionEnvironment.get_execution_environment()
    for key, value in settings.items():
        env.get_configuration().set_string(key, value)
    if of_environment is not None:
        env.set_buffer_timeout(of_environment)
        assert env.get_buffer_timeout() == of_environment
    stream = env.from_collection([1])
    for timeout in of_operators:
        stream = stream.map(lambda number: number).set_buffer_timeout(timeout)
    stream.print()
    graph = build_job_graph(env.get_stream_graph())
    policy = epoch_policy(env.get_configuration(), graph.vertices)
    assert policy.interval_ms == interval_ms
    assert policy.is_eager == (not settings and of_environment is None)
