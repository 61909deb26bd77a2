from __future__ import annotations

import functools

import pytest

from penstock.datastream.async_retry_predicates import (
    empty_result_predicate,
    exception_type_predicate,
    has_exception_predicate,
)
from penstock.datastream.async_retry_strategies import NO_RETRY_STRATEGY
from penstock.datastream.functions import AsyncRetryStrategy


def test_predicates():
    assert empty_result_predicate([]) and empty_result_predicate(None) and not empty_result_predicate([0])
    assert has_exception_predicate(ValueError()) and not has_exception_predicate(None)
    is_value_error = functools.partial(exception_type_predicate, expected_error_type=ValueError)
    assert is_value_error(UnicodeError()) and not is_value_error(KeyError())


def test_no_retry_never_retries():
    strategy = AsyncRetryStrategy.no_restart()
    assert strategy is NO_RETRY_STRATEGY and not strategy.can_retry(1)
    assert strategy.get_backoff_time_millis(1) == -1
    assert strategy.get_retry_predicate().result_predicate() is None


def test_fixed_delay_waits_the_same_each_time_and_gives_up():
    strategy = AsyncRetryStrategy.fixed_delay(3, 100, empty_result_predicate, has_exception_predicate)
    assert [strategy.can_retry(n) for n in (1, 3, 4)] == [True, True, False]
    assert [strategy.get_backoff_time_millis(n) for n in (1, 2, 3)] == [100, 100, 100]
    assert strategy.get_retry_predicate().result_predicate() is empty_result_predicate
    assert strategy.get_retry_predicate().exception_predicate() is has_exception_predicate


def test_exponential_backoff_grows_up_to_its_maximum():
    strategy = AsyncRetryStrategy.exponential_backoff(6, 100, 1000, 2.0, None, has_exception_predicate)
    assert [strategy.get_backoff_time_millis(n) for n in range(1, 7)] == [100, 200, 400, 800, 1000, 1000]
    assert strategy.can_retry(6) and not strategy.can_retry(7)


def test_backoff_depends_on_the_attempt_only_so_elements_can_share_a_strategy():
    strategy = AsyncRetryStrategy.exponential_backoff(9, 100, 1000, 1.5, None, None)
    assert strategy.get_backoff_time_millis(3) == strategy.get_backoff_time_millis(3) == 225


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AsyncRetryStrategy.fixed_delay(0, 1, None, None), "max_attempts must be positive, got 0"),
        (lambda: AsyncRetryStrategy.fixed_delay(1, 0, None, None), "backoff_time_millis must be positive, got 0"),
        (lambda: AsyncRetryStrategy.exponential_backoff(1, 1, 1, 0.0, None, None), "multiplier must be positive"),
    ],
)
def test_settings_must_be_positive(make, message):
    with pytest.raises(ValueError, match=message):
        make()
