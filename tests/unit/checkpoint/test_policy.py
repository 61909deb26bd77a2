"""When an epoch ends with a checkpoint, and how many may fail."""

from __future__ import annotations

import pytest

from penstock.checkpoint.policy import CheckpointPolicy, FailurePolicy


def test_without_an_interval_none_is_ever_due():
    policy = CheckpointPolicy(None)
    policy.epoch_completed()
    assert not policy.is_due(10**9) and policy.wake_up_tick_ms(10**9) is None


def test_interval_of_zero_makes_every_epoch_one():
    policy = CheckpointPolicy(0)
    for now_ms in (5, 5, 6):
        assert policy.is_due(now_ms)
        policy.checkpoint_started(now_ms)
        policy.checkpoint_ended(now_ms, is_complete=True)


def test_first_one_is_due_an_interval_after_the_start():
    policy = CheckpointPolicy(100)
    assert not policy.is_due(1000)
    assert not policy.is_due(1099)
    assert policy.is_due(1100)


def test_next_one_is_due_an_interval_after_the_last_began():
    policy = CheckpointPolicy(100)
    policy.is_due(0)
    policy.checkpoint_started(100)
    policy.checkpoint_ended(150, is_complete=True)
    assert not policy.is_due(199) and policy.is_due(200)


def test_pause_counts_from_the_end_of_the_last():
    policy = CheckpointPolicy(100, min_pause_ms=80)
    policy.is_due(0)
    policy.checkpoint_started(100)
    policy.checkpoint_ended(150, is_complete=True)
    assert not policy.is_due(229) and policy.is_due(230)


def test_pause_counts_after_a_failed_one_too():
    policy = CheckpointPolicy(10, min_pause_ms=80)
    policy.is_due(0)
    policy.checkpoint_started(10)
    policy.checkpoint_ended(20, is_complete=False)
    assert not policy.is_due(99) and policy.is_due(100)


def test_job_wakes_up_for_one_only_if_something_has_happened_since_the_last():
    policy = CheckpointPolicy(100)
    policy.is_due(0)
    assert policy.wake_up_tick_ms(10) is None
    policy.epoch_completed()
    assert policy.wake_up_tick_ms(10) == 100
    policy.checkpoint_started(100)
    policy.checkpoint_ended(100, is_complete=True)
    assert policy.wake_up_tick_ms(110) is None


def test_job_wakes_up_again_for_one_that_failed():
    policy = CheckpointPolicy(100)
    policy.is_due(0)
    policy.epoch_completed()
    policy.checkpoint_started(100)
    policy.checkpoint_ended(100, is_complete=False)
    assert policy.wake_up_tick_ms(110) == 200


@pytest.mark.parametrize(
    ("tolerable", "verdicts"),
    [(0, [True]), (2, [False, False, True]), (-1, [False] * 20)],
)
def test_job_fails_at_one_failure_more_than_tolerable(tolerable, verdicts):
    policy = FailurePolicy(tolerable)
    assert [policy.on_failure() for _ in verdicts] == verdicts


def test_only_failures_in_a_row_count():
    policy = FailurePolicy(1)
    for _ in range(5):
        assert not policy.on_failure()
        policy.start_over()
