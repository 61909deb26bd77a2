"""When asynchronous calls are tried again. Attempts count from 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.datastream.functions.asynchronous import AsyncRetryPredicate, AsyncRetryStrategy

__all__ = [
    "NO_RETRY_STRATEGY",
    "ExponentialBackoffDelayRetryStrategy",
    "FixedDelayRetryStrategy",
    "NoRetryStrategy",
    "RetryPredicate",
]

OUT = TypeVar("OUT")


class RetryPredicate(AsyncRetryPredicate[OUT]):
    """The two predicates a strategy was given."""

    def __init__(
        self,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        return self._result_predicate

    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """Never tries again."""

    def __repr__(self) -> str:
        return "NoRetryStrategy()"

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


@dataclass(frozen=True)
class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Tries again up to `max_attempts` times, each after `backoff_time_millis`."""

    max_attempts: int
    backoff_time_millis: int
    result_predicate: Callable[[list[OUT]], bool] | None
    exception_predicate: Callable[[Exception], bool] | None

    def __post_init__(self) -> None:
        _check_positive(self, "max_attempts", "backoff_time_millis")

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self.backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(self.result_predicate, self.exception_predicate)


@dataclass(frozen=True)
class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT], Generic[OUT]):
    """Tries again up to `max_attempts` times, each after `multiplier` times the delay before, up to a maximum.

    The delay follows from the attempt's number alone, so that many elements can share one strategy.
    """

    max_attempts: int
    initial_delay: int
    max_retry_delay: int
    multiplier: float
    result_predicate: Callable[[list[OUT]], bool] | None
    exception_predicate: Callable[[Exception], bool] | None

    def __post_init__(self) -> None:
        _check_positive(self, "max_attempts", "initial_delay", "max_retry_delay", "multiplier")

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self.max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        delay = self.initial_delay
        for _ in range(1, current_attempts):
            grown = int(min(delay * self.multiplier, self.max_retry_delay))
            if grown == delay:
                break
            delay = grown
        return delay

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(self.result_predicate, self.exception_predicate)


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


def _check_positive(strategy: AsyncRetryStrategy[Any], *names: str) -> None:
    for name in names:
        value = getattr(strategy, name)
        if value <= 0:
            raise ValueError(f"{type(strategy).__name__}: {name} must be positive, got {value}")
