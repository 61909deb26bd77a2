"""Keyed state in memory: the tables of one operator in one subtask, and the state objects users see."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from penstock.common.exceptions import StateAccessError
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.runtime.state import ttl, views
from penstock.runtime.state.table import VOID_NAMESPACE, Entry, StateTable

_NO_KEY = object()


class KeyedStateBackend:
    """All keyed state of one operator. `current_key` says whose state is meant."""

    def __init__(self, operator_name: str, clock: Callable[[], int] = lambda: 0) -> None:
        self.operator_name = operator_name
        self.clock = clock
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
        make = (_STATE_VIEWS if descriptor.ttl_config is None else _TTL_VIEWS).get(type(descriptor))
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
        if not isinstance(view, views.MergeableView):
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
        if full:
            self._drop_expired()
        saved = {
            name: list(table.all_entries() if full else table.changed_entries()) for name, table in self.tables.items()
        }
        for table in self.tables.values():
            table.forget_changes()
        return {name: entries for name, entries in saved.items() if entries}

    def _drop_expired(self) -> None:
        """What nobody reads is never found expired on access: full snapshots clear it away."""
        for name, descriptor in self._descriptors.items():
            if descriptor.ttl_config is not None:
                ttl.drop_expired(self.tables[name], descriptor, self.clock())

    def restore(self, saved: dict[str, list[Entry]], owns_key: Callable[[Any], bool] | None = None) -> None:
        """Apply a snapshot or a delta; `owns_key` picks this subtask's part after a change of parallelism."""
        for name, entries in saved.items():
            table = self.table(name)
            for entry in entries:
                if owns_key is None or owns_key(entry[1]):
                    table.load(entry)


_STATE_VIEWS: dict[type, Callable[..., Any]] = {
    ValueStateDescriptor: views.HeapValueState,
    ListStateDescriptor: views.HeapListState,
    MapStateDescriptor: views.HeapMapState,
    ReducingStateDescriptor: views.HeapReducingState,
    AggregatingStateDescriptor: views.HeapAggregatingState,
}
_TTL_VIEWS: dict[type, Callable[..., Any]] = {
    ValueStateDescriptor: ttl.TtlValueState,
    ListStateDescriptor: ttl.TtlListState,
    MapStateDescriptor: ttl.TtlMapState,
    ReducingStateDescriptor: ttl.TtlReducingState,
    AggregatingStateDescriptor: ttl.TtlAggregatingState,
}
