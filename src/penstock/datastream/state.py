"""State as user functions see it. How it is described is in `state_descriptors`, how long it lives in `state_ttl`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from penstock.common.time import Duration, Time
from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.functions.runtime_context import KeyedStateStore
from penstock.datastream.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.datastream.state_ttl import StateTtlConfig

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "Duration",
    "KeyedStateStore",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "Time",
    "TypeInformation",
    "Types",
    "ValueState",
    "ValueStateDescriptor",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Base of all state handles."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the state of the current key."""

    def get_internal_state(self) -> Any:
        """This state itself: PyFlink's states have another one behind them, with the same methods."""
        return self


class ValueState(State, Generic[T]):
    """A single value per key.

    >>> from penstock.datastream import KeyedProcessFunction
    >>> class Change(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.last = runtime_context.get_state(ValueStateDescriptor("last", default_value=0))
    ...     def process_element(self, value, ctx):
    ...         yield value[0], value[1] - self.last.value()
    ...         self.last.update(value[1])
    >>> pairs = env.from_collection([("a", 3), ("b", 1), ("a", 5)]).key_by(lambda pair: pair[0])
    >>> list(pairs.process(Change()).execute_and_collect())
    [('a', 3), ('b', 1), ('a', 2)]
    """

    @abstractmethod
    def value(self) -> T | None:
        """The current value; the descriptor's default, else None, if there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Replace the value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What all added values amount to; None if nothing was added."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state that can be merged with another one, as session windows need it."""


class ReducingState(MergingState[T, T]):
    """The reduction of all added values.

    >>> from penstock.datastream import KeyedProcessFunction
    >>> class Largest(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", max))
    ...     def process_element(self, value, ctx):
    ...         self.largest.add(value)
    ...         yield self.largest.get()
    >>> list(env.from_collection([3, 1, 5]).key_by(lambda _: "all").process(Largest()).execute_and_collect())
    [3, 3, 5]
    """


class AggregatingState(MergingState[IN, OUT]):
    """The aggregate of all added values.

    >>> from penstock.datastream import AggregateFunction, KeyedProcessFunction
    >>> class Average(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return 0, 0
    ...     def add(self, value, accumulator):
    ...         return accumulator[0] + value, accumulator[1] + 1
    ...     def get_result(self, accumulator):
    ...         return accumulator[0] / accumulator[1]
    ...     def merge(self, acc_a, acc_b):
    ...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
    >>> class RunningAverage(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.average = runtime_context.get_aggregating_state(AggregatingStateDescriptor("average", Average()))
    ...     def process_element(self, value, ctx):
    ...         self.average.add(value)
    ...         yield self.average.get()
    >>> list(env.from_collection([3, 1, 5]).key_by(lambda _: "all").process(RunningAverage()).execute_and_collect())
    [3.0, 2.0, 3.0]
    """


class ListState(MergingState[T, Iterable[T]]):
    """A list of elements.

    >>> from penstock.datastream import KeyedProcessFunction
    >>> class Pairs(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting"))
    ...     def process_element(self, value, ctx):
    ...         self.waiting.add(value)
    ...         if len(list(self.waiting)) == 2:
    ...             yield list(self.waiting)
    ...             self.waiting.clear()
    >>> numbers = env.from_collection([1, 2, 3, 4, 5]).key_by(lambda number: number % 2)
    >>> list(numbers.process(Pairs()).execute_and_collect())
    [[1, 3], [2, 4]]
    """

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The elements in the order they were added; empty if there are none."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list; an empty one removes it."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Add several elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class _ReadableMap(State, Generic[K, V]):
    """What every map can be asked. `state[k]`, `k in state` and iteration work too."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value of `key`; None if it is not there."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """True if `key` is there."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All pairs."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """True if there is nothing in the map."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class _ChangeableMap(_ReadableMap[K, V]):
    """How maps are changed. `state[k] = v` and `del state[k]` work too."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of `key`."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set several values."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove `key`; no effect if it is not there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(_ChangeableMap[K, V]):
    """A map per key of the stream.

    `state[k]`, `k in state`, `del state[k]` and iteration work as on a dict, but `state[k]` is None for a missing key.

    >>> from penstock.datastream import KeyedProcessFunction
    >>> class Visits(KeyedProcessFunction):
    ...     def open(self, runtime_context):
    ...         self.pages = runtime_context.get_map_state(MapStateDescriptor("pages"))
    ...     def process_element(self, value, ctx):
    ...         user, page = value
    ...         self.pages[page] = (self.pages[page] or 0) + 1
    ...         yield user, dict(self.pages.items())
    >>> clicks = env.from_collection([("ann", "home"), ("ann", "cart"), ("ann", "home")])
    >>> list(clicks.key_by(lambda click: click[0]).process(Visits()).execute_and_collect())[-1]
    ('ann', {'home': 2, 'cart': 1})
    """


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """A map that is the same in all subtasks, as the non-broadcast side sees it: its values must not be changed.

    `KeyedBroadcastProcessFunction` has an example.
    """


class BroadcastState(ReadOnlyBroadcastState[K, V], _ChangeableMap[K, V]):
    """A map that is the same in all subtasks, as the broadcast side sees it: every subtask must change it alike.

    `KeyedBroadcastProcessFunction` has an example.
    """


class OperatorStateStore(ABC):
    """Gives access to operator state: state of a subtask rather than of a key.

    `CheckpointedFunction` has an example.
    """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map that is the same in all subtasks."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are dealt out evenly when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list; on recovery every subtask gets the elements of all subtasks."""

    @abstractmethod
    def get_registered_state_names(self) -> set[str]:
        """Names of the list states registered or restored."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> set[str]:
        """Names of the broadcast states registered or restored."""
