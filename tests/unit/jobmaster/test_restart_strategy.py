from __future__ import annotations

import sqlite3
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.checkpoint.coordinator import CheckpointFailedError
from penstock.common import Configuration
from penstock.common.exceptions import (
    CheckpointError,
    ConfigurationError,
    ConnectorError,
    EnvironmentSetupError,
    JobExecutionError,
    MissingInputError,
    UserFunctionError,
    WorkersLostError,
)
from penstock.jobmaster.restart_strategy import (
    ExponentialDelayRestart,
    FailedAttempt,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
    OnlyForLostWorkers,
    UnlessItRepeats,
    UnlessSomethingIsMissing,
    build_restart_strategy,
)


def build(has_checkpoints: bool = False, **settings: str):
    named = {f"restart-strategy.{key.replace('__', '.').replace('_', '-')}": value for key, value in settings.items()}
    return build_restart_strategy(Configuration.from_dict(named), has_checkpoints)


def steady(_: float, __: float) -> float:
    return 0.0


def test_no_restart_fails_at_once():
    assert NoRestart().on_failure(0) is None


def test_fixed_delay_restarts_so_many_times():
    strategy = FixedDelayRestart(2, 500)
    assert [strategy.on_failure(now) for now in (0, 10, 20, 30)] == [500, 500, None, None]


def test_failure_rate_allows_failures_that_lie_apart():
    strategy = FailureRateRestart(2, interval_ms=1000, delay_ms=10)
    assert [strategy.on_failure(now) for now in (0, 600, 1200, 1800)] == [10, 10, 10, 10]


def test_failure_rate_fails_at_one_more_than_allowed_within_the_interval():
    strategy = FailureRateRestart(2, interval_ms=1000, delay_ms=10)
    assert [strategy.on_failure(now) for now in (0, 100, 200)] == [10, 10, None]


@given(st.lists(st.integers(0, 400), max_size=20), st.integers(1, 4))
def test_failure_rate_counts_the_failures_of_the_interval(gaps, most):
    strategy, failures, now = FailureRateRestart(most, 1000, 10), [], 0
    for gap in gaps:
        now += gap
        failures.append(now)
        recent = [each for each in failures if now - each <= 1000]
        assert (strategy.on_failure(now) is None) == (len(recent) > most)


def test_exponential_delay_grows_up_to_its_limit():
    strategy = ExponentialDelayRestart(1000, 5000, 2.0, 60_000, 0.1, 100, random_between=steady)
    assert [strategy.on_failure(0) for _ in range(5)] == [1000, 2000, 4000, 5000, 5000]


def test_exponential_delay_starts_over_after_a_quiet_time():
    strategy = ExponentialDelayRestart(1000, 5000, 2.0, 60_000, 0.1, 100, random_between=steady)
    strategy.on_failure(0)
    strategy.on_failure(10)
    assert strategy.on_failure(70_000) == 1000


def test_exponential_delay_gives_up_when_its_attempts_are_used_up():
    strategy = ExponentialDelayRestart(10, 5000, 2.0, 60_000, 0.1, 2, random_between=steady)
    assert [strategy.on_failure(0) for _ in range(3)] == [10, 20, None]


@given(st.floats(0, 1), st.integers(1, 20))
def test_exponential_delay_stays_within_jitter_and_limit(jitter, failures):
    strategy = ExponentialDelayRestart(1000, 5000, 1.5, 60_000, jitter, 100)
    expected = 1000.0
    for _ in range(failures):
        delay = strategy.on_failure(0)
        assert int(expected * (1 - jitter)) <= delay <= min(5000, expected * (1 + jitter))
        expected = min(expected * 1.5, 5000)


def test_default_is_none_without_checkpoints_and_exponential_with_them():
    assert isinstance(build(), NoRestart)
    default = build(has_checkpoints=True)
    assert isinstance(default, UnlessSomethingIsMissing)
    assert 900 <= default.on_failure(0) <= 1100 <= default.on_failure(0) <= 1700
    assert isinstance(build(has_checkpoints=True, type="none"), NoRestart)
    assert isinstance(build(has_checkpoints=True, type="exponential-delay"), ExponentialDelayRestart)


@pytest.mark.parametrize("cause", [MissingInputError("no /data"), EnvironmentSetupError("no Java")])
def test_what_is_missing_is_an_error_at_once_unless_a_strategy_is_set(cause):
    attempt = FailedAttempt(failed(None, cause))
    default = build(has_checkpoints=True)
    assert default.on_failure(0, FailedAttempt(failed(None))) is not None
    assert "at once" not in default.refusal
    assert default.on_failure(0, attempt) is None
    assert default.refusal == "what is missing at the start is an error at once, unless restart-strategy.type is set"
    assert build(has_checkpoints=True, type="exponential-delay").on_failure(0, attempt) is not None


def failed(record: str | None, cause: Exception | None = None, message: str = "boom") -> UserFunctionError:
    failure = UserFunctionError(message, "map", 0, record)
    failure.__cause__ = cause or ValueError(message)
    return failure


def lost(process: int) -> WorkersLostError:
    return WorkersLostError(f"worker 1 (process {process} on vm) is gone")


def delays(strategy, attempts: list[FailedAttempt]) -> list[int | None]:
    return [strategy.on_failure(0, attempt) for attempt in attempts]


def repeats() -> UnlessItRepeats:
    return UnlessItRepeats(FixedDelayRestart(1000, 5), attempts=3)


SAME = {
    "at a record": [failed("7")] * 5,
    "no record": [failed(None)] * 5,
    "no function": [JobExecutionError("cannot be restored\nat 7"), JobExecutionError("cannot be restored\nat 8")] * 3,
    "a file is missing": [failed(None, FileNotFoundError("state"))] * 5,
    "a raw error": [FileNotFoundError("state")] * 5,
    "lost workers": [lost(process) for process in range(5)],
}


@pytest.mark.parametrize("failures", SAME.values(), ids=SAME)
def test_the_same_failure_without_progress_is_given_up(failures):
    strategy = repeats()
    assert delays(strategy, [FailedAttempt(each) for each in failures[:5]]) == [5, 5, 5, None, None]
    assert "4 times in the same way, and penstock.restart.repeated-failure-attempts is 3" in strategy.refusal


def test_progress_does_not_help_a_function_that_fails_at_the_same_record():
    attempt = FailedAttempt(failed("7"), has_done_epochs=True, has_moved_on=True)
    assert delays(repeats(), [attempt] * 4) == [5, 5, 5, None]


def test_epochs_do_not_help_a_process_that_dies_before_its_next_checkpoint():
    attempts = [FailedAttempt(lost(process), has_done_epochs=True) for process in range(4)]
    assert delays(repeats(), attempts) == [5, 5, 5, None]


def test_regions_that_fail_in_turn_are_given_up():
    first, second = FailedAttempt(failed(None), frozenset({1})), FailedAttempt(failed("7"), frozenset({2}))
    assert delays(repeats(), [first, second] * 4) == [5] * 6 + [None] * 2


ALTERNATING = {
    "records": [failed("7"), failed("8")],
    "kinds": [CheckpointError("no file"), lost(1)],
    "with one that passes": [failed("7"), ConnectionRefusedError("away")],
    "many records": [failed(str(number)) for number in range(20)],
}


@pytest.mark.parametrize("failures", ALTERNATING.values(), ids=ALTERNATING)
def test_failures_that_alternate_are_given_up(failures):
    given_up = len(failures) * 3  # Then the first one fails for the fourth time.
    attempts = [FailedAttempt(each) for each in failures * 4][: given_up + 1]
    strategy = repeats()
    assert delays(strategy, attempts) == [5] * given_up + [None]
    assert "4 times in the same way" in strategy.refusal


def test_bad_records_that_alternate_are_given_up_although_others_are_read():
    attempts = [FailedAttempt(failed(record), has_done_epochs=True, has_moved_on=True) for record in "7878787"]
    assert delays(repeats(), attempts) == [5] * 6 + [None]


def test_a_record_that_has_long_been_read_counts_anew():
    others = [FailedAttempt(failed(str(number)), has_moved_on=True) for number in range(4)]
    attempts = [FailedAttempt(failed("7"), has_moved_on=True)] * 3
    assert delays(repeats(), [*attempts, *others, *attempts]) == [5] * 10


def test_ways_to_fail_that_never_come_again_do_not_add_up():
    strategy = UnlessItRepeats(FixedDelayRestart(5_000, 5), attempts=3)
    delays(strategy, [FailedAttempt(failed(str(number))) for number in range(3_000)])
    (ways,) = strategy._ways.values()
    assert len(ways._times) == len(ways._others) == 1_000
    assert delays(strategy, [FailedAttempt(failed("2999"))] * 3) == [5, 5, None]


@pytest.mark.parametrize(
    "failures",
    [
        [failed(str(number)) for number in range(9)],
        [failed("7", message=str(number)) for number in range(9)],
        [failed("7", ConnectionError("away"))] * 9,
        [failed(None, TimeoutError("away"))] * 9,
        [failed(None, ConnectorError("away"))] * 9,
        [failed(None, sqlite3.OperationalError("database is locked"))] * 9,
        [ConnectionRefusedError("away")] * 9,
        [CheckpointFailedError("the storage is away")] * 9,
    ],
    ids=["other records", "other errors", "connection", "timeout", "connector", "database", "raw", "storage"],
)
def test_what_changes_or_comes_and_goes_is_not_given_up(failures):
    assert delays(repeats(), [FailedAttempt(each) for each in failures]) == [5] * len(failures)


@pytest.mark.parametrize(
    "attempt",
    [
        FailedAttempt(failed(None), has_done_epochs=True),
        FailedAttempt(RuntimeError("a timer"), has_done_epochs=True),
        FailedAttempt(lost(1), has_done_epochs=True, has_moved_on=True),
    ],
    ids=["no record", "no function", "lost workers"],
)
def test_failures_with_progress_between_them_are_not_given_up(attempt):
    assert delays(repeats(), [attempt] * 9) == [5] * 9


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30), st.integers(1, 4))
def test_failures_are_counted_since_progress(history, most):
    strategy, counts = UnlessItRepeats(FixedDelayRestart(1000, 5), most), Counter[str]()
    for message, has_done_epochs in history:
        if has_done_epochs:
            counts.clear()
        counts[message] += 1
        attempt = FailedAttempt(failed(None, message=message), has_done_epochs=has_done_epochs)
        assert (strategy.on_failure(0, attempt) is None) == (counts[message] > most)


def test_a_job_that_somebody_waits_for_restarts_when_workers_are_lost_only():
    strategy = build_restart_strategy(Configuration(), has_checkpoints=True, is_watched=True)
    assert isinstance(strategy, OnlyForLostWorkers)
    assert strategy.on_failure(0, FailedAttempt(lost(1))) is not None
    assert strategy.on_failure(0, FailedAttempt(failed("7"))) is None
    assert "fails at the first error, unless restart-strategy.type is set" in strategy.refusal


def test_a_job_that_somebody_waits_for_does_not_lose_workers_for_ever():
    settings = Configuration.from_dict({"penstock.restart.repeated-failure-attempts": "2"})
    strategy = build_restart_strategy(settings, has_checkpoints=True, is_watched=True)
    allowed = [each is not None for each in delays(strategy, [FailedAttempt(lost(n)) for n in range(3)])]
    assert allowed == [True, True, False]
    assert "penstock.restart.repeated-failure-attempts is 2" in strategy.refusal


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"type": "none"}, "restart-strategy.type is none"),
        ({}, "it takes no checkpoints; execution.checkpointing.interval turns"),
        ({"type": "fixed-delay", "fixed_delay__attempts": "0"}, "restart-strategy.fixed-delay.attempts is 0"),
        ({"type": "failure-rate"}, "restart-strategy.failure-rate.max-failures-per-interval is 1, within 60000 ms"),
    ],
)
def test_a_strategy_says_which_key_ends_the_job(settings, refusal):
    assert refusal in build(**settings).refusal


@pytest.mark.parametrize("name", ["none", "off", "disable", "NONE"])
def test_names_for_no_restart(name):
    assert isinstance(build(type=name), NoRestart)


@pytest.mark.parametrize("name", ["fixed-delay", "fixeddelay", "FIXED_DELAY"])
def test_fixed_delay_is_read_from_the_configuration(name):
    strategy = build(type=name, fixed_delay__attempts="3", fixed_delay__delay="2 s")
    assert [strategy.on_failure(0) for _ in range(4)] == [2000, 2000, 2000, None]


def test_failure_rate_is_read_from_the_configuration():
    strategy = build(
        type="failure-rate",
        failure_rate__max_failures_per_interval="1",
        failure_rate__failure_rate_interval="1 min",
        failure_rate__delay="5 ms",
    )
    assert [strategy.on_failure(now) for now in (0, 1000)] == [5, None]


def test_unknown_strategy_is_refused():
    with pytest.raises(
        ConfigurationError, match="'sometimes' is not known; use none, fixed-delay, exponential-delay or failure-rate"
    ):
        build(type="sometimes")
