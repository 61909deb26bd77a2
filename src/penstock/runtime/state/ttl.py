"""State that expires: each value, list element or map entry is stored with the time it was last written or read.

An expired value is removed when it is read. With cleanup in the background, which is the default, each access also
checks a few other entries, and a full snapshot checks all of them. Time is processing time, as in Flink.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar, cast

from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor, StateTtlConfig
from penstock.datastream.state_ttl import TtlCleanup
from penstock.runtime.nan_keys import is_same_key
from penstock.runtime.state.table import StateTable
from penstock.runtime.state.views import (
    KeyContext,
    StateView,
    TableAggregatingState,
    TableListState,
    TableMapState,
    TableReducingState,
    TableValueState,
)

K = TypeVar("K")
V = TypeVar("V")

Stamped = tuple[Any, int]
"""A value and the time of its last write, or of its last read if reading refreshes it."""


class _Expiry:
    """A TTL configuration at one moment. Every access needs one, so `at` changes this object and makes no other."""

    def __init__(self, config: StateTtlConfig) -> None:
        self._ttl_ms = config.ttl_ms
        self.refreshes_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self.shows_expired = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        self._now_ms = self._expired_until = 0

    @staticmethod
    def of(descriptor: StateDescriptor, now_ms: int) -> _Expiry:
        return _Expiry(cast(StateTtlConfig, descriptor.ttl_config)).at(now_ms)

    def at(self, now_ms: int) -> _Expiry:
        self._now_ms = now_ms
        self._expired_until = now_ms - self._ttl_ms
        return self

    def is_expired(self, stamped: Stamped) -> bool:
        return stamped[1] <= self._expired_until

    def stamp(self, value: Any) -> Stamped:
        return value, self._now_ms


_CHECKED_FOR_COMPACTION = 5
"""How many entries each access checks if cleanup by compaction is chosen. There is no compaction here, and the strategy
does not say how many entries to check."""


def _checked_per_access(cleanup: TtlCleanup) -> int:
    """How many other entries each access to state checks, and removes if they have expired."""
    incremental = cleanup.get_incremental_cleanup_strategy()
    if incremental is not None:
        return incremental.get_cleanup_size()
    return 0 if cleanup.get_rocksdb_compact_filter_cleanup_strategy() is None else _CHECKED_FOR_COMPACTION


class _TtlView(StateView):
    def __init__(
        self, backend: KeyContext, table: StateTable, descriptor: StateDescriptor, namespace: Hashable
    ) -> None:
        super().__init__(backend, table, descriptor, namespace)
        config = cast(StateTtlConfig, descriptor.ttl_config)
        self._checked_per_access = _checked_per_access(config.get_cleanup_strategies())
        self._moment = _Expiry(config)

    def _expiry(self) -> _Expiry:
        expiry = self._moment.at(self._backend.clock())
        if self._checked_per_access:
            self._clean_up_others(expiry)
        return expiry

    def _clean_up_others(self, expiry: _Expiry) -> None:
        """Check a few entries, but leave those of the current key, which this access may still return."""
        for namespace, key, stored in self._table.some_entries(self._checked_per_access):
            if self._has_expired(stored, expiry) and not is_same_key(key, self._backend.key()):
                _drop_expired_parts(self._table, namespace, key, stored, self._descriptor, expiry)

    def _has_expired(self, stored: Any, expiry: _Expiry) -> bool:
        """True if a stored value has expired, or an element of a stored list."""
        return expiry.is_expired(stored)


class _TtlWhole(_TtlView):
    """One time for the whole state: value, reducing and aggregating state."""

    def _read(self, namespace: Hashable) -> Any:
        expiry, key = self._expiry(), self._backend.key()
        stamped: Stamped | None = super()._read(namespace)
        if stamped is None:
            return None
        if expiry.is_expired(stamped):
            self._table.remove(namespace, key)
            return stamped[0] if expiry.shows_expired else None
        if expiry.refreshes_on_read:
            self._table.put(namespace, key, expiry.stamp(stamped[0]))
        return stamped[0]

    def _put(self, value: Any) -> None:
        super()._put(self._expiry().stamp(value))


class TtlValueState(_TtlWhole, TableValueState):
    pass


class TtlReducingState(_TtlWhole, TableReducingState[Any]):
    pass


class TtlAggregatingState(_TtlWhole, TableAggregatingState):
    pass


class TtlListState(_TtlView, TableListState[V]):
    """Each element expires by itself."""

    def _has_expired(self, stored: Any, expiry: _Expiry) -> bool:
        return any(map(expiry.is_expired, stored))

    def get(self) -> Any:
        expiry, kept = self._expiry(), self._get() or []
        live = [each for each in kept if not expiry.is_expired(each)]
        shown = kept if expiry.shows_expired else live
        if expiry.refreshes_on_read:
            self._store([expiry.stamp(value) for value, _ in live])
        elif len(live) < len(kept):
            self._store(live)
        return iter([value for value, _ in shown])

    def add_all(self, values: list[V]) -> None:
        expiry = self._expiry()
        live = [each for each in self._get() or [] if not expiry.is_expired(each)]
        self._store(live + [expiry.stamp(value) for value in values])

    def update(self, values: list[V]) -> None:
        self._store([self._expiry().stamp(value) for value in values])

    def _store(self, kept: list[Stamped]) -> None:
        if kept:
            self._put(kept)
        else:
            self.clear()


class TtlMapState(_TtlView, TableMapState[K, V]):
    """Each entry expires by itself."""

    def _clean_up_others(self, expiry: _Expiry) -> None:
        # Checks entries of maps, not whole maps, which may be large.
        for namespace, key, name, stamped in self._table.some_map_entries(self._checked_per_access):
            if expiry.is_expired(stamped) and not is_same_key(key, self._backend.key()):
                _drop_expired_entries(self._table, namespace, key, [name], expiry)

    def get(self, key: K) -> V | None:
        stamped = self._seen(self._map(), key, self._expiry())
        return None if stamped is None else cast(V, stamped[0])

    def contains(self, key: K) -> bool:
        return self._seen(self._map(), key, self._expiry()) is not None

    def _seen(self, stored: Any, key: K, expiry: _Expiry) -> Stamped | None:
        """The entry that a reader sees, or None. Reading may remove the entry or refresh its time."""
        stamped: Stamped | None = stored.get(key)
        if stamped is None:
            return None
        if expiry.is_expired(stamped):
            self.remove(key)
            return stamped if expiry.shows_expired else None
        if expiry.refreshes_on_read:
            stored[key] = expiry.stamp(stamped[0])
            self._put(stored)
        return stamped

    def put_all(self, dict_value: Any) -> None:
        expiry = self._expiry()
        super().put_all({key: expiry.stamp(value) for key, value in dict(dict_value).items()})

    def items(self) -> Any:
        items = self._table.items_of(self._map())
        seen = self._seen_items(items, self._expiry())
        return list(seen) if isinstance(items, list) else seen

    def _seen_items(self, items: Iterable[tuple[K, Stamped]], expiry: _Expiry) -> Iterator[tuple[K, V]]:
        for key, stamped in items:
            if (expiry.refreshes_on_read or expiry.is_expired(stamped)) and not self._seen(self._map(), key, expiry):
                continue
            yield key, cast(V, stamped[0])

    def is_empty(self) -> bool:
        expiry = self._expiry()
        items = self._table.items_of(self._map())
        return not any(expiry.shows_expired or not expiry.is_expired(stamped) for _, stamped in items)


_SAMPLED_ENTRIES = 100


def adapt(table: StateTable, descriptor: StateDescriptor, needs_times: bool, now_ms: int) -> None:
    """Add times to the values of a restored table, or remove them, if time to live was turned on or off since.

    As in Flink, values without times get the time of this migration. Values with times lose them and are kept, even if
    they have expired.
    """
    has_times = table.has_times
    if has_times is None:
        # Files of version 0.1 do not say. If times are needed, and the first values look as if they had times, they do.
        first = itertools.islice(table.all_entries(), _SAMPLED_ENTRIES)
        has_times = needs_times and all(_looks_stamped(stored, descriptor, table) for *_, stored in first)
    if has_times is not needs_times:
        change = (lambda value: (value, now_ms)) if needs_times else _value_of
        for namespace, key, stored in table.all_entries():
            table.put(namespace, key, _migrated(stored, descriptor, table, change))
    table.has_times = needs_times


def _value_of(stamped: Stamped) -> Any:
    return stamped[0]


def _migrated(stored: Any, descriptor: StateDescriptor, table: StateTable, change: Callable[[Any], Any]) -> Any:
    if isinstance(descriptor, MapStateDescriptor):
        for name, value in table.items_of(stored):
            stored[name] = change(value)
        return stored
    return [change(each) for each in stored] if isinstance(descriptor, ListStateDescriptor) else change(stored)


def _looks_stamped(stored: Any, descriptor: StateDescriptor, table: StateTable) -> bool:
    if isinstance(descriptor, MapStateDescriptor):
        return all(_is_stamped(value) for _, value in table.items_of(stored))
    return all(map(_is_stamped, stored)) if isinstance(descriptor, ListStateDescriptor) else _is_stamped(stored)


def _is_stamped(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and type(value[1]) is int


def drop_expired(table: StateTable, descriptor: StateDescriptor, now_ms: int) -> None:
    """Remove all expired values from a table, as well as expired elements of lists and entries of maps."""
    expiry = _Expiry.of(descriptor, now_ms)
    for namespace, key, stored in table.all_entries():
        _drop_expired_parts(table, namespace, key, stored, descriptor, expiry)


def _drop_expired_parts(
    table: StateTable, namespace: Hashable, key: Any, stored: Any, descriptor: StateDescriptor, expiry: _Expiry
) -> None:
    if isinstance(descriptor, MapStateDescriptor):
        names = [name for name, stamped in table.items_of(stored) if expiry.is_expired(stamped)]
        _drop_expired_entries(table, namespace, key, names, expiry)
        return
    if isinstance(descriptor, ListStateDescriptor):
        left = [each for each in stored if not expiry.is_expired(each)]
        if left and len(left) < len(stored):
            table.put(namespace, key, left)
    else:
        left = [] if expiry.is_expired(stored) else stored
    if not left:
        table.remove(namespace, key)


def _drop_expired_entries(table: StateTable, namespace: Hashable, key: Any, names: list[Any], expiry: _Expiry) -> None:
    """Remove the entries of a map called `names` that still exist and have expired."""
    held = table.get(namespace, key)
    expired = [name for name in names if held is not None and name in held and expiry.is_expired(held[name])]
    for name in expired:
        del held[name]
    if expired and held:
        table.put(namespace, key, held)
    elif expired:
        table.remove(namespace, key)
