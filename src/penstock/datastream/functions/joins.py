"""Functions over the elements of two joined streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from penstock.datastream.functions.base import Function, RichFunction, SideOutputContext


class JoinFunction(Function):
    """Called for each pair of elements of one key and window; always returns one result.

    >>> from penstock.datastream.window import CountTumblingWindowAssigner
    >>> class Paid(JoinFunction):
    ...     def join(self, first, second):
    ...         return first[0], first[1], second[1]
    >>> orders, payments = env.from_collection([("o1", 20)]), env.from_collection([("o1", "card")])
    >>> joined = orders.join(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> list(joined.window(CountTumblingWindowAssigner.of(2)).apply(Paid()).execute_and_collect())
    [('o1', 20, 'card')]
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The result for a pair."""


class FlatJoinFunction(Function):
    """Called for each pair of elements of one key and window; yields any number of results.

    >>> from penstock.datastream.window import CountTumblingWindowAssigner
    >>> class Debts(FlatJoinFunction):
    ...     def join(self, first, second):
    ...         if second[1] < first[1]:
    ...             yield first[0], first[1] - second[1]
    >>> orders, payments = env.from_collection([("o1", 20), ("o2", 5)]), env.from_collection([("o1", 15), ("o2", 5)])
    >>> joined = orders.join(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> list(joined.window(CountTumblingWindowAssigner.of(2)).apply(Debts()).execute_and_collect())
    [('o1', 5)]
    """

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Yield the results for a pair."""


class CoGroupFunction(Function):
    """Called once per key and window with the elements of both sides; one side may be empty.

    >>> from penstock.datastream.window import CountTumblingWindowAssigner
    >>> class Balance(CoGroupFunction):
    ...     def co_group(self, first, second):
    ...         yield sum(amount for _, amount in first) - sum(amount for _, amount in second)
    >>> orders, payments = env.from_collection([("ann", 20), ("ann", 5)]), env.from_collection([("ann", 15)])
    >>> grouped = orders.co_group(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> list(grouped.window(CountTumblingWindowAssigner.of(3)).apply(Balance()).execute_and_collect())
    [10]
    """

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """Yield the results for both groups."""


class ProcessJoinFunction(RichFunction):
    """Called for each pair that an interval join finds.

    >>> from penstock.common import Time, WatermarkStrategy
    >>> class Delay(ProcessJoinFunction):
    ...     def process_element(self, left, right, ctx):
    ...         yield left[0], ctx.get_right_timestamp() - ctx.get_left_timestamp()
    >>> timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1])
    >>> def stream(values):
    ...     return env.from_collection(values).assign_timestamps_and_watermarks(timed).key_by(lambda value: value[0])
    >>> orders, payments = stream([("o1", 1000), ("o2", 2000)]), stream([("o1", 1300), ("o2", 9000)])
    >>> soon = orders.interval_join(payments).between(Time.seconds(0), Time.seconds(5))
    >>> list(soon.process(Delay()).execute_and_collect())
    [('o1', 300)]
    """

    class Context(SideOutputContext, ABC):
        """What `process_element` can ask."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """Event time of the left element."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """Event time of the right element."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """Event time of the pair: the later of both."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Yield the results for a pair."""
