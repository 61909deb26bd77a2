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
    """A single value per key."""

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
    """The reduction of all added values."""


class AggregatingState(MergingState[IN, OUT]):
    """The aggregate of all added values."""


class ListState(MergingState[T, Iterable[T]]):
    """A list of elements."""

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
    """


class ReadOnlyBroadcastState(_ReadableMap[K, V]):
    """A map that is the same in all subtasks, as the non-broadcast side sees it: its values must not be changed."""


class BroadcastState(ReadOnlyBroadcastState[K, V], _ChangeableMap[K, V]):
    """A map that is the same in all subtasks, as the broadcast side sees it: every subtask must change it alike."""


class OperatorStateStore(ABC):
    """Gives access to operator state: state of a subtask rather than of a key."""

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
