"""Functions that wait for other systems without holding up the stream, and their retries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.datastream.functions.base import Function

if TYPE_CHECKING:
    from penstock.common.time import Time

IN = TypeVar("IN")
OUT = TypeVar("OUT")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """Decides which outcomes of an asynchronous call are tried again.

    `AsyncRetryStrategy` has an example.
    """

    @abstractmethod
    def result_predicate(self) -> Callable[[list[OUT]], bool] | None:
        """A predicate on results, True to try again; None if no result is tried again."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """A predicate on exceptions, True to try again; None if no exception is tried again."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """Decides whether and when an asynchronous call is tried again. Attempts count from 1.

    >>> from penstock.datastream import AsyncDataStream
    >>> class Flaky(AsyncFunction):
    ...     calls = 0
    ...     async def async_invoke(self, value):
    ...         self.calls += 1
    ...         if self.calls == 1:
    ...             raise ConnectionError("try again")
    ...         return [value]
    >>> retries = AsyncRetryStrategy.fixed_delay(3, 1, None, lambda failure: isinstance(failure, ConnectionError))
    >>> stream = AsyncDataStream.ordered_wait_with_retry(env.from_collection(["a"]), Flaky(), 5_000, retries)
    >>> list(stream.execute_and_collect())
    ['a']
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """True if attempt number `current_attempts` may be made."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait before attempt number `current_attempts`."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """Which outcomes are tried again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Never try again."""
        from penstock.datastream.async_retry_strategies import NO_RETRY_STRATEGY

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[OUT]:
        """Try again up to `max_attempts` times, always after the same time."""
        from penstock.datastream.async_retry_strategies import FixedDelayRetryStrategy

        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[OUT]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[OUT]:
        """Try again up to `max_attempts` times, after ever longer times."""
        from penstock.datastream.async_retry_strategies import ExponentialBackoffDelayRetryStrategy

        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class AsyncFunction(Function, Generic[IN, OUT]):
    """Handles elements in coroutines, many of which may wait at the same time.

    >>> import asyncio
    >>> from penstock.datastream import AsyncDataStream
    >>> class Price(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         await asyncio.sleep(0)  # such as a request to another system
    ...         return [(value, 20)]
    >>> stream = AsyncDataStream.unordered_wait(env.from_collection(["lamp"]), Price(), timeout=5_000, capacity=100)
    >>> list(stream.execute_and_collect())
    [('lamp', 20)]
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The results for one element."""

    def timeout(self, value: IN) -> list[OUT]:
        """The results for an element whose call took too long; fails the job unless overridden."""
        raise TimeoutError(
            f"{type(self).__name__}: async_invoke did not finish in time for element {value!r}; "
            "override timeout(value) to emit something else, or raise the timeout given to AsyncDataStream"
        )


@dataclass(frozen=True)
class AsyncFunctionDescriptor:
    """An asynchronous function with the settings it runs under.

    `AsyncDataStream` has an example.
    """

    class OutputMode(Enum):
        """Whether results keep the order of the input."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout: Time
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode
