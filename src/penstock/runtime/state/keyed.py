"""Keyed state in memory: the tables of one operator in one subtask, and the state objects users see."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar, cast

from penstock.common.exceptions import StateAccessError
from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from penstock.runtime.state.table import VOID_NAMESPACE, Entry, StateTable

K = TypeVar("K")
V = TypeVar("V")

_NO_KEY = object()


class KeyedStateBackend:
    """All keyed state of one operator. `current_key` says whose state is meant."""

    def __init__(self, operator_name: str) -> None:
        self.operator_name = operator_name
        self.tables: dict[str, StateTable] = {}
        self._descriptors: dict[str, StateDescriptor] = {}
        self.current_key: Any = _NO_KEY

    def table(self, name: str) -> StateTable:
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = StateTable(name)
        return table

    def state(self, descriptor: StateDescriptor, namespace: Hashable = VOID_NAMESPACE) -> Any:
        """The state of `descriptor` for the current key (at the time of each access) and this `namespace`."""
        known = self._descriptors.setdefault(descriptor.name, descriptor)
        if type(known) is not type(descriptor):
            raise StateAccessError(
                f"operator '{self.operator_name}': state '{descriptor.name}' is a {type(known).__name__} already and "
                f"cannot also be a {type(descriptor).__name__}; give each state a name of its own"
            )
        make = _STATE_VIEWS.get(type(descriptor))
        if make is None:
            raise StateAccessError(
                f"operator '{self.operator_name}': {type(descriptor).__name__} is not a keyed state descriptor; use "
                f"ValueStateDescriptor, ListStateDescriptor, MapStateDescriptor, ReducingStateDescriptor or "
                f"AggregatingStateDescriptor"
            )
        return make(self, self.table(descriptor.name), descriptor, namespace)

    def merge_namespaces(self, descriptor: StateDescriptor, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move the state of the current key from `sources` into `target` (list, reducing and aggregating state)."""
        view = self.state(descriptor, target)
        if not isinstance(view, _MergeableView):
            raise StateAccessError(
                f"operator '{self.operator_name}': state '{descriptor.name}' ({type(descriptor).__name__}) cannot be "
                f"merged; windows that merge need list, reducing or aggregating state"
            )
        for source in sources:
            view.merge_from(source)

    def key(self) -> Any:
        if self.current_key is _NO_KEY:
            raise StateAccessError(
                f"operator '{self.operator_name}': keyed state was used where there is no current key; use it in "
                f"process_element, on_timer and the like, not in open()"
            )
        return self.current_key

    def clear_current_key(self) -> None:
        self.current_key = _NO_KEY

    def __len__(self) -> int:
        """How many entries are held, timers included."""
        return sum(map(len, self.tables.values()))

    def snapshot(self, full: bool) -> dict[str, list[Entry]]:
        """Entries by table: all of them, or those that changed since the last snapshot."""
        saved = {
            name: list(table.all_entries() if full else table.changed_entries()) for name, table in self.tables.items()
        }
        for table in self.tables.values():
            table.forget_changes()
        return {name: entries for name, entries in saved.items() if entries}

    def restore(self, saved: dict[str, list[Entry]], owns_key: Callable[[Any], bool] | None = None) -> None:
        """Apply a snapshot or a delta; `owns_key` picks this subtask's part after a change of parallelism."""
        for name, entries in saved.items():
            table = self.table(name)
            for entry in entries:
                if owns_key is None or owns_key(entry[1]):
                    table.load(entry)


class _View:
    """A state of one descriptor in one namespace, for whatever key is current."""

    def __init__(
        self, backend: KeyedStateBackend, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        self._backend = backend
        self._table = table
        self._descriptor = descriptor
        self._namespace = namespace

    def _get(self) -> Any:
        return self._table.get(self._namespace, self._backend.key())

    def _put(self, value: Any) -> None:
        self._table.put(self._namespace, self._backend.key(), value)

    def clear(self) -> None:
        self._table.remove(self._namespace, self._backend.key())


class _MergeableView(_View):
    def merge_from(self, source: Hashable) -> None:
        key = self._backend.key()
        theirs = self._table.get(source, key)
        if theirs is None:
            return
        self._table.remove(source, key)
        mine = self._get()
        self._put(theirs if mine is None else self._merged(mine, theirs))

    def _merged(self, mine: Any, theirs: Any) -> Any:
        raise NotImplementedError


class HeapValueState(_View, ValueState[Any]):
    def value(self) -> Any:
        found = self._get()
        return cast("ValueStateDescriptor", self._descriptor).get_default_value() if found is None else found

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
        else:
            self._put(value)


class HeapListState(_MergeableView, ListState[V]):
    def get(self) -> Iterator[V]:
        return iter(self._get() or ())

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


class HeapReducingState(_MergeableView, ReducingState[V]):
    def get(self) -> V | None:
        return cast("V | None", self._get())

    def add(self, value: V) -> None:
        found = self._get()
        self._put(value if found is None else self._merged(found, value))

    def _merged(self, mine: V, theirs: V) -> V:
        function = cast("ReducingStateDescriptor", self._descriptor).get_reduce_function()
        reduce: Any = function.reduce if isinstance(function, ReduceFunction) else function
        return cast(V, reduce(mine, theirs))


class HeapAggregatingState(_MergeableView, AggregatingState[Any, Any]):
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


class HeapMapState(_View, MapState[K, V]):
    def _map(self) -> dict[K, V]:
        return self._get() or {}

    def get(self, key: K) -> V | None:
        return self._map().get(key)

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

    # The views are copies, so that a loop over them may change the state.
    def items(self) -> Any:
        return list(self._map().items())

    def keys(self) -> Any:
        return list(self._map())

    def values(self) -> Any:
        return list(self._map().values())

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


_STATE_VIEWS: dict[type, Callable[..., Any]] = {
    ValueStateDescriptor: HeapValueState,
    ListStateDescriptor: HeapListState,
    MapStateDescriptor: HeapMapState,
    ReducingStateDescriptor: HeapReducingState,
    AggregatingStateDescriptor: HeapAggregatingState,
}
