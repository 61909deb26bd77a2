"""Calls to slow systems without waiting for each answer."""

from __future__ import annotations

from typing import Any

from penstock.common.exceptions import InvalidProgramError
from penstock.common.time import to_milliseconds
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.async_retry_strategies import NoRetryStrategy
from penstock.datastream.functions import AsyncFunction, AsyncRetryStrategy
from penstock.datastream.streams.data_stream import DataStream
from penstock.graph.descriptions import AsyncDescription

__all__ = ["AsyncDataStream"]


class AsyncDataStream:
    """Applies an AsyncFunction to a stream: at most `capacity` calls run at a time.

    >>> class Doubled(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [value * 2]
    >>> stream = AsyncDataStream.ordered_wait(env.from_collection([1, 2, 3]), Doubled(), timeout=5_000)
    >>> list(stream.execute_and_collect())
    [2, 4, 6]
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results as they come. If a call takes longer than `timeout`, the function's `timeout` gives the result."""
        return _add(data_stream, async_function, timeout, NoRetryStrategy(), capacity, output_type, is_ordered=False)

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like `unordered_wait`; a call is repeated if the strategy wants that for its result or error."""
        return _add(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, is_ordered=False)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Results in the order of their elements: a slow call holds up those behind it."""
        return _add(data_stream, async_function, timeout, NoRetryStrategy(), capacity, output_type, is_ordered=True)

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Any,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like `ordered_wait`; a call is repeated if the strategy wants that for its result or error."""
        return _add(data_stream, async_function, timeout, async_retry_strategy, capacity, output_type, is_ordered=True)


def _add(
    stream: DataStream,
    function: AsyncFunction[Any, Any],
    timeout: Any,
    retry: AsyncRetryStrategy[Any],
    capacity: int,
    output_type: TypeInformation | None,
    is_ordered: bool,
) -> DataStream:
    if not isinstance(function, AsyncFunction):
        raise TypeError(f"an async wait needs an AsyncFunction, got {type(function).__name__}")
    if capacity < 1:
        raise InvalidProgramError(f"the capacity of an async wait must be at least 1, got {capacity}")
    description = AsyncDescription(function, to_milliseconds(timeout), capacity, is_ordered, retry)
    return stream._values()._then("async wait operator", description, output_type)
