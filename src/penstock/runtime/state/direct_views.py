"""State objects that work directly on the dictionaries of a table: any table in memory, or plain keyed state on disk.

They extend the state objects of `views`, and leave the rare cases to them. A user function may use state several times
for each element. When each use was a chain of calls, these took most of the time of a job that counts.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from penstock.datastream.functions import ReduceFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable
from penstock.runtime.state.views import (
    StateView,
    TableAggregatingState,
    TableListState,
    TableMapState,
    TableReducingState,
    TableValueState,
)

if TYPE_CHECKING:
    from penstock.runtime.state.keyed import KeyedStateBackend

K = TypeVar("K")
V = TypeVar("V")

NO_KEY = object()
"""The `current_key` of a backend while no key is current. No table has an entry for it."""


class _DirectView(StateView):
    """Reads and writes one dictionary of a table. It relies on the table to never replace its outer dictionaries."""

    _backend: KeyedStateBackend

    def __init__(
        self, backend: KeyedStateBackend, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        super().__init__(backend, table, descriptor, namespace)
        self._entries: dict[Hashable, dict[Any, Any]] = table.direct_entries()
        self._changed = table.direct_changes()

    @property
    def table(self) -> StateTable:
        return self._table

    def table_in_loops(self, backend: KeyedStateBackend) -> StateTable | None:
        """The table, if generated loops may use its entries in place of this object.

        None for state of another backend or of a window, and for state with a default value.
        """
        return self._table if backend is self._backend and self._namespace is VOID_NAMESPACE else None

    def _get(self) -> Any:
        key = self._backend.current_key
        if key is NO_KEY:
            self._backend.key()  # Raises.
        keys = self._entries.get(self._namespace)
        return None if keys is None else keys.get(key)

    def _put(self, value: Any) -> None:
        key, namespace = self._backend.current_key, self._namespace
        if key is NO_KEY:
            self._backend.key()
        keys = self._entries.get(namespace)
        if keys is None:
            keys = self._entries[namespace] = {}
        changed = self._changed[namespace]
        if key not in changed:
            changed[key] = key in keys
        keys[key] = value

    def _note_change(self) -> None:
        """Note that the existing value of the current key was changed in place."""
        changed, key = self._changed[self._namespace], self._backend.current_key
        if key not in changed:
            changed[key] = True


class DirectValueState(_DirectView, TableValueState):
    def __init__(
        self, backend: KeyedStateBackend, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        super().__init__(backend, table, descriptor, namespace)
        self._has_default = cast(ValueStateDescriptor, descriptor).get_default_value() is not None

    def table_in_loops(self, backend: KeyedStateBackend) -> StateTable | None:
        return None if self._has_default else super().table_in_loops(backend)

    def value(self) -> Any:
        key = self._backend.current_key
        keys = self._entries.get(self._namespace)
        if keys is not None:
            found = keys.get(key)
            if found is not None:
                return found
        return super().value() if self._has_default or key is NO_KEY else None

    def update(self, value: Any) -> None:
        key, namespace = self._backend.current_key, self._namespace
        keys = self._entries.get(namespace)
        if value is None or keys is None or key is NO_KEY:
            super().update(value)
        else:
            changed = self._changed[namespace]
            if key not in changed:
                changed[key] = key in keys
            keys[key] = value


class DirectListState(_DirectView, TableListState[V]):
    def add(self, value: V) -> None:
        found = self._get()
        if found is None:
            self._put([value])
        else:
            found.append(value)
            self._note_change()


class DirectReducingState(_DirectView, TableReducingState[V]):
    def __init__(
        self, backend: KeyedStateBackend, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        super().__init__(backend, table, descriptor, namespace)
        function = cast(ReducingStateDescriptor, descriptor).get_reduce_function()
        self._reduce: Any = function.reduce if isinstance(function, ReduceFunction) else function

    def add(self, value: V) -> None:
        found = self._get()
        self._put(value if found is None else self._reduce(found, value))


class DirectAggregatingState(_DirectView, TableAggregatingState):
    def __init__(
        self, backend: KeyedStateBackend, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        super().__init__(backend, table, descriptor, namespace)
        function = cast(AggregatingStateDescriptor, descriptor).get_agg_function()
        self._create, self._add, self._result = function.create_accumulator, function.add, function.get_result

    def get(self) -> Any:
        found = self._get()
        return None if found is None else self._result(found)

    def add(self, value: Any) -> None:
        found = self._get()
        self._put(self._add(value, self._create() if found is None else found))


class DirectMapState(_DirectView, TableMapState[K, V]):
    def get(self, key: K) -> V | None:
        found = self._get()
        return None if found is None else found.get(key)

    def contains(self, key: K) -> bool:
        found = self._get()
        return found is not None and key in found

    def put(self, key: K, value: V) -> None:
        found = self._get()
        if found is None:
            self._put({key: value})
        else:
            found[key] = value
            self._note_change()

    def remove(self, key: K) -> None:
        found = self._get()
        if found is not None and key in found:
            del found[key]
            if found:
                self._note_change()
            else:
                self.clear()

    def items(self) -> Any:
        found = self._get()
        return [] if found is None else list(found.items())

    def keys(self) -> Any:
        return list(self._get() or ())

    # The inherited methods would call these: one call less for `state[k]` and `k in state`.
    __getitem__ = get
    __setitem__ = put
    __contains__ = contains
