"""The state objects that users see: views of a state table for the current key."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar, cast

from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    MapState,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.runtime.state.table import StateTable

K = TypeVar("K")
V = TypeVar("V")


class KeyContext(Protocol):
    """Provides the current key and the time."""

    clock: Callable[[], int]

    def key(self) -> Any: ...


class StateView:
    """The state of one descriptor in one namespace, for the key that is current at each access."""

    def __init__(
        self, backend: KeyContext, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        self._backend = backend
        self._table = table
        self._descriptor = descriptor
        self._namespace = namespace

    def _read(self, namespace: Hashable) -> Any:
        return self._table.get(namespace, self._backend.key())

    def _get(self) -> Any:
        return self._read(self._namespace)

    def _put(self, value: Any) -> None:
        self._table.put(self._namespace, self._backend.key(), value)

    def clear(self) -> None:
        self._table.remove(self._namespace, self._backend.key())


class MergeableView(StateView):
    """A state whose namespaces can be merged, which session windows need."""

    def merge_from(self, source: Hashable) -> None:
        """Move the state of the current key from the namespace `source` to this one."""
        theirs = self._read(source)
        if theirs is None:
            return
        self._table.remove(source, self._backend.key())
        mine = self._get()
        self._put(theirs if mine is None else self._merged(mine, theirs))

    def _merged(self, mine: Any, theirs: Any) -> Any:
        raise NotImplementedError


class TableValueState(StateView, ValueState[Any]):
    def value(self) -> Any:
        found = self._get()
        return cast("ValueStateDescriptor", self._descriptor).get_default_value() if found is None else found

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self._put(value)


class TableListState(MergeableView, ListState[V]):
    def get(self) -> Iterator[V]:
        found = self._get() or ()
        return islice(found, len(found))  # A loop over the elements that adds some would never end otherwise.

    def __iter__(self) -> Iterator[V]:
        return self.get()

    def add(self, value: V) -> None:
        self.add_all([value])

    def add_all(self, values: list[V]) -> None:
        if values:
            found: list[V] = self._get() or []
            found.extend(values)
            self._put(found)

    def update(self, values: list[V]) -> None:
        if values:
            self._put(list(values))
        else:
            self.clear()

    def _merged(self, mine: list[V], theirs: list[V]) -> list[V]:
        return mine + theirs


class TableReducingState(MergeableView, ReducingState[V]):
    def get(self) -> V | None:
        return cast("V | None", self._get())

    def add(self, value: V) -> None:
        found = self._get()
        self._put(value if found is None else self._merged(found, value))

    def _merged(self, mine: V, theirs: V) -> V:
        function = cast("ReducingStateDescriptor", self._descriptor).get_reduce_function()
        reduce: Any = function.reduce if isinstance(function, ReduceFunction) else function
        return cast(V, reduce(mine, theirs))


class TableAggregatingState(MergeableView, AggregatingState[Any, Any]):
    def _function(self) -> AggregateFunction:
        return cast("AggregatingStateDescriptor", self._descriptor).get_agg_function()

    def get(self) -> Any:
        found = self._get()
        return None if found is None else self._function().get_result(found)

    def add(self, value: Any) -> None:
        function = self._function()
        found = self._get()
        self._put(function.add(value, function.create_accumulator() if found is None else found))

    def _merged(self, mine: Any, theirs: Any) -> Any:
        return self._function().merge(mine, theirs)


class TableMapState(StateView, MapState[K, V]):
    def _map(self) -> Any:
        """The map of the current key as the table holds it; a new dictionary if there is none."""
        found = self._get()
        return {} if found is None else found

    def get(self, key: K) -> V | None:
        return cast("V | None", self._map().get(key))

    def put(self, key: K, value: V) -> None:
        self.put_all([(key, value)])

    def put_all(self, dict_value: Any) -> None:
        entries = self._map()
        entries.update(dict_value)
        self._put(entries)

    def remove(self, key: K) -> None:
        entries = self._map()
        if key in entries:
            del entries[key]
            if entries:
                self._put(entries)
            else:
                self.clear()

    def contains(self, key: K) -> bool:
        return key in self._map()

    # A loop over the items, keys or values may change the state.
    def items(self) -> Any:
        return self._table.items_of(self._map())

    def keys(self) -> Any:
        return _column(self.items(), 0)

    def values(self) -> Any:
        return _column(self.items(), 1)

    def is_empty(self) -> bool:
        return not self._map()

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


def _column(items: Iterable[tuple[Any, Any]], number: int) -> Iterable[Any]:
    """The keys or values of items: a list if the items are one, else an iterator, as not all may fit into memory."""
    column = (item[number] for item in items)
    return list(column) if isinstance(items, list) else column
