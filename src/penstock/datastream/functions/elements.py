"""Functions called element by element, without time or state of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.functions.base import Function


class MapFunction(Function):
    """Turns each element into exactly one other.

    >>> class Upper(MapFunction):
    ...     def map(self, value):
    ...         return value.upper()
    >>> list(env.from_collection(["a", "b"]).map(Upper()).execute_and_collect())
    ['A', 'B']
    """

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The element that takes the place of `value`."""


class CoMapFunction(Function):
    """Maps the elements of two connected streams, with one instance for both.

    >>> class Labelled(CoMapFunction):
    ...     def map1(self, value):
    ...         return f"order {value}"
    ...     def map2(self, value):
    ...         return f"payment {value}"
    >>> orders, payments = env.from_collection([1]), env.from_collection([7])
    >>> sorted(orders.connect(payments).map(Labelled()).execute_and_collect())
    ['order 1', 'payment 7']
    """

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """The result for an element of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """The result for an element of the second stream."""


class FlatMapFunction(Function):
    """Turns each element into any number of others.

    >>> class Words(FlatMapFunction):
    ...     def flat_map(self, value):
    ...         yield from value.split()
    >>> list(env.from_collection(["to be", "or not"]).flat_map(Words()).execute_and_collect())
    ['to', 'be', 'or', 'not']
    """

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Yield (or return a collection of) the elements that take the place of `value`."""


class CoFlatMapFunction(Function):
    """Flat-maps the elements of two connected streams, with one instance for both.

    >>> class Words(CoFlatMapFunction):
    ...     def flat_map1(self, value):
    ...         yield from value.split()
    ...     def flat_map2(self, value):
    ...         yield from value.split(",")
    >>> texts, lists = env.from_collection(["to be"]), env.from_collection(["or,not"])
    >>> sorted(texts.connect(lists).flat_map(Words()).execute_and_collect())
    ['be', 'not', 'or', 'to']
    """

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Yield the results for an element of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Yield the results for an element of the second stream."""


class FilterFunction(Function):
    """Keeps some elements and drops the others.

    >>> class Even(FilterFunction):
    ...     def filter(self, value):
    ...         return value % 2 == 0
    >>> list(env.from_collection([1, 2, 3, 4]).filter(Even()).execute_and_collect())
    [2, 4]
    """

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """True to keep the element, which must not be changed here."""


class ReduceFunction(Function):
    """Combines two values of a type into one of the same type.

    >>> class Longest(ReduceFunction):
    ...     def reduce(self, value1, value2):
    ...         return max(value1, value2, key=len)
    >>> words = env.from_collection(["a", "abc", "ab"]).key_by(lambda word: word[0])
    >>> list(words.reduce(Longest()).execute_and_collect())
    ['a', 'abc', 'abc']
    """

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """The combination of both; the order of combining is not fixed, so it should be associative."""


class ReduceFunctionWrapper(ReduceFunction):
    """A plain callable of two values as a ReduceFunction.

    >>> ReduceFunctionWrapper(max).reduce(2, 5)
    5
    """

    def __init__(self, func: Callable[[Any, Any], Any]) -> None:
        self._func = func

    def __repr__(self) -> str:
        return f"ReduceFunctionWrapper({self._func!r})"

    def reduce(self, value1: Any, value2: Any) -> Any:
        return self._func(value1, value2)


class AggregateFunction(Function):
    """Aggregates elements into an accumulator, which may have another type than input and result.

    >>> class Average(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0, 0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
    >>> list(env.from_collection([1, 2, 3, 6]).count_window_all(2).aggregate(Average()).execute_and_collect())
    [1.5, 4.5]
    """

    @abstractmethod
    def create_accumulator(self) -> Any:
        """A fresh accumulator that has seen nothing."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator after `value`; may change and return the one passed in."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result that `accumulator` stands for."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """One accumulator for the elements of both; needed by merging windows such as sessions."""


class KeySelector(Function):
    """Extracts the key of an element.

    >>> class FirstLetter(KeySelector):
    ...     def get_key(self, value):
    ...         return value[0]
    >>> words = env.from_collection(["a", "b", "ab"]).key_by(FirstLetter())
    >>> list(words.reduce(lambda one, other: one + other).execute_and_collect())
    ['a', 'b', 'aab']
    """

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key; equal elements must always give equal keys."""


class Partitioner(Function):
    """Chooses the partition an element goes to.

    >>> class Evenly(Partitioner):
    ...     def partition(self, key, num_partitions):
    ...         return key % num_partitions
    >>> spread = env.from_collection([1, 2, 3]).partition_custom(Evenly(), lambda number: number)
    >>> sorted(spread.map(str).set_parallelism(2).execute_and_collect())
    ['1', '2', '3']
    """

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """A number from 0 to `num_partitions` - 1."""


class NullByteKeySelector(KeySelector):
    """Gives every element the same key, so that a non-keyed stream can use keyed operators."""

    def get_key(self, value: Any) -> int:
        return 0
