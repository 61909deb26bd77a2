from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError, UserFunctionError
from penstock.jobmaster.restart_strategy import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
    UnlessItRepeats,
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
    assert isinstance(default, UnlessItRepeats) and isinstance(default.strategy, ExponentialDelayRestart)
    assert isinstance(build(has_checkpoints=True, type="none"), NoRestart)
    assert isinstance(build(has_checkpoints=True, type="exponential-delay"), ExponentialDelayRestart)


def failed(record: str | None, cause: Exception | None = None, message: str = "boom") -> UserFunctionError:
    failure = UserFunctionError(message, "map", 0, record)
    failure.__cause__ = cause or ValueError(message)
    return failure


def test_the_same_failure_at_the_same_record_is_given_up():
    strategy = UnlessItRepeats(FixedDelayRestart(1000, 5), attempts=3)
    assert [strategy.on_failure(0, failed("7")) for _ in range(5)] == [5, 5, 5, None, None]


@pytest.mark.parametrize(
    "failures",
    [
        [failed(str(number)) for number in range(9)],
        [failed("7", message=str(number)) for number in range(9)],
        [failed("7", ConnectionError("away"))] * 9,
        [failed(None)] * 9,
        [RuntimeError("a worker is gone")] * 9,
        [failed("7"), failed("8")] * 5,
    ],
    ids=["other records", "other errors", "connection", "no record", "no function", "in turn"],
)
def test_what_changes_or_comes_and_goes_is_not_given_up(failures):
    strategy = UnlessItRepeats(FixedDelayRestart(1000, 5), attempts=3)
    assert [strategy.on_failure(0, failure) for failure in failures] == [5] * len(failures)


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
