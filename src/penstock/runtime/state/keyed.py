"""Keyed state: the tables of one operator in one subtask, and the state objects that users get."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from penstock.common.exceptions import StateAccessError
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from penstock.runtime.state import direct_views, ttl, views
from penstock.runtime.state.contents import Contents, owned
from penstock.runtime.state.direct_views import NO_KEY
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.table import VOID_NAMESPACE, Extent, StateTable


class _Nobody:
    """The current key while a function is opened. Each process has one instance."""

    def __reduce__(self) -> str:
        return "NOBODY"


NOBODY: Final = _Nobody()


class KeyedStateBackend:
    """All keyed state of one operator in one subtask. State objects use the state of `current_key`."""

    def __init__(
        self,
        operator_name: str,
        clock: Callable[[], int] = lambda: 0,
        make_table: Callable[[str], StateTable] = HeapStateTable,
    ) -> None:
        self.operator_name = operator_name
        self.clock = clock
        self._make_table = make_table
        self.tables: dict[str, StateTable] = {}
        self._descriptors: dict[str, StateDescriptor] = {}
        self.current_key: Any = NO_KEY

    def table(self, name: str) -> StateTable:
        table = self.tables.get(name)
        if table is None:
            table = self.tables[name] = self._make_table(name)
        return table

    def state(self, descriptor: StateDescriptor, namespace: Hashable = VOID_NAMESPACE) -> Any:
        """The state object of `descriptor` and `namespace`, for the key that is current at each access."""
        known = self._descriptors.setdefault(descriptor.name, descriptor)
        if type(known) is not type(descriptor):
            raise StateAccessError(
                f"operator '{self.operator_name}': state '{descriptor.name}' is a {type(known).__name__} already and "
                f"cannot also be a {type(descriptor).__name__}; give each state a name of its own"
            )
        if type(descriptor) not in _STATE_VIEWS:
            raise StateAccessError(
                f"operator '{self.operator_name}': {type(descriptor).__name__} is not a keyed state descriptor; use "
                f"ValueStateDescriptor, ListStateDescriptor, MapStateDescriptor, ReducingStateDescriptor or "
                f"AggregatingStateDescriptor"
            )
        table = self._table_for(descriptor)
        if table.has_times is not _expires(descriptor):
            ttl.adapt(table, descriptor, _expires(descriptor), self.clock())
        plain = _DIRECT_VIEWS if table.is_direct(namespace) else _STATE_VIEWS
        make = (_TTL_VIEWS if _expires(descriptor) else plain)[type(descriptor)]
        return make(self, table, descriptor, namespace)

    def _table_for(self, descriptor: StateDescriptor) -> StateTable:
        table = self.table(descriptor.name)
        if isinstance(descriptor, MapStateDescriptor):
            table.hold_maps()
        elif table.has_maps:
            raise StateAccessError(
                f"operator '{self.operator_name}': state '{descriptor.name}' was saved as map state and cannot be read "
                f"as {type(descriptor).__name__}; give the new state a name of its own"
            )
        return table

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
        if self.current_key is NO_KEY:
            raise StateAccessError(
                f"operator '{self.operator_name}': keyed state was used where there is no current key; use it where an "
                f"element or a timer of a key is processed, not in open(), close() or process_broadcast_element()"
            )
        return self.current_key

    def clear_current_key(self) -> None:
        self.current_key = NO_KEY

    @contextmanager
    def of_nobody(self) -> Iterator[None]:
        """Lets functions use state in `open()`, as in PyFlink. That state belongs to no key and is removed on exit."""
        self.current_key = NOBODY
        try:
            yield
        finally:
            self.clear_current_key()
            for table in self.tables.values():
                table.settle()
                for namespace in list(table.entries):
                    table.remove(namespace, NOBODY)

    def __len__(self) -> int:
        """The number of entries, including timers."""
        return sum(map(len, self.tables.values()))

    def has_changes(self) -> bool:
        for table in self.tables.values():
            table.settle()
        return any(table.has_changes() for table in self.tables.values())

    def is_all_changed(self) -> bool:
        """True if a snapshot of the changes would hold all entries."""
        for table in self.tables.values():
            table.settle()
        return all(table.is_all_changed() for table in self.tables.values())

    def snapshot(self, extent: Extent) -> Iterator[tuple[str, Contents]]:
        """(name of the table, entries), in one or several parts for each table, which are valid until state changes.

        Their entries count as changed until `snapshot_written` is called, because storing a snapshot may fail.
        """
        if extent is Extent.ALL:
            self._drop_expired()
        for name, table in self.tables.items():
            for block in table.blocks(extent):
                yield name, block

    def snapshot_written(self, extent: Extent) -> None:
        for table in self.tables.values():
            table.snapshot_written(extent)

    def _drop_expired(self) -> None:
        """Remove expired entries, also those that are never read and would otherwise stay."""
        for name, descriptor in self._descriptors.items():
            if descriptor.ttl_config is not None and _expires(descriptor):
                cleanup = descriptor.ttl_config.get_cleanup_strategies()
                if cleanup.in_full_snapshot() or cleanup.is_cleanup_in_background():
                    ttl.drop_expired(self.tables[name], descriptor, self.clock())

    def restore(
        self,
        name: str,
        contents: Contents,
        owns_key: Callable[[Any], bool] | None = None,
        extent: Extent = Extent.CHANGES,
        has_times: bool | None = None,
    ) -> None:
        """Apply a part of a snapshot. `owns_key` selects this subtask's share after a change of parallelism.

        `extent` is the extent of the snapshot. Entries that are not part of a base count as changed since the base.
        `has_times` is True if the values are stored with times, and None if this is not known. The last part that says
        so decides for the whole table.
        """
        if owns_key is not None:
            contents = owned(contents, owns_key)
        table = self.table(name)
        table.load(contents, extent)
        table.has_times = table.has_times if has_times is None else has_times

    def dispose(self) -> None:
        """Release what the tables keep outside of memory. State must not be used any more."""
        for table in self.tables.values():
            table.dispose()


def _expires(descriptor: StateDescriptor) -> bool:
    return descriptor.ttl_config is not None and descriptor.ttl_config.is_enabled()


_STATE_VIEWS: dict[type, Callable[..., Any]] = {
    ValueStateDescriptor: views.TableValueState,
    ListStateDescriptor: views.TableListState,
    MapStateDescriptor: views.TableMapState,
    ReducingStateDescriptor: views.TableReducingState,
    AggregatingStateDescriptor: views.TableAggregatingState,
}
_DIRECT_VIEWS: dict[type, Callable[..., Any]] = {
    ValueStateDescriptor: direct_views.DirectValueState,
    ListStateDescriptor: direct_views.DirectListState,
    MapStateDescriptor: direct_views.DirectMapState,
    ReducingStateDescriptor: direct_views.DirectReducingState,
    AggregatingStateDescriptor: direct_views.DirectAggregatingState,
}
_TTL_VIEWS: dict[type, Callable[..., Any]] = {
    ValueStateDescriptor: ttl.TtlValueState,
    ListStateDescriptor: ttl.TtlListState,
    MapStateDescriptor: ttl.TtlMapState,
    ReducingStateDescriptor: ttl.TtlReducingState,
    AggregatingStateDescriptor: ttl.TtlAggregatingState,
}
