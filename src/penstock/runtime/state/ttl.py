"""State that expires: each value, list element or map entry is kept with the time it was last written or read.

What has expired is removed when it is met, and with every full snapshot. Time is processing time, as in Flink.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, StateDescriptor, StateTtlConfig
from penstock.runtime.state.table import StateTable
from penstock.runtime.state.views import (
    HeapAggregatingState,
    HeapListState,
    HeapMapState,
    HeapReducingState,
    HeapValueState,
    StateView,
)

K = TypeVar("K")
V = TypeVar("V")

Stamped = tuple[Any, int]
"""A value and when it was last touched."""


@dataclass(frozen=True)
class _Expiry:
    """A TTL configuration at one moment."""

    ttl_ms: int
    refreshes_on_read: bool
    shows_expired: bool
    now_ms: int

    @staticmethod
    def of(descriptor: StateDescriptor, now_ms: int) -> _Expiry:
        config = cast(StateTtlConfig, descriptor.ttl_config)
        return _Expiry(
            config.ttl_ms,
            config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite,
            config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp,
            now_ms,
        )

    def is_expired(self, stamped: Stamped) -> bool:
        return stamped[1] + self.ttl_ms <= self.now_ms

    def stamp(self, value: Any) -> Stamped:
        return value, self.now_ms


class _TtlView(StateView):
    def _expiry(self) -> _Expiry:
        return _Expiry.of(self._descriptor, self._backend.clock())


class _TtlWhole(_TtlView):
    """One time for the whole state: value, reducing and aggregating state."""

    def _read(self, namespace: Hashable) -> Any:
        stamped: Stamped | None = super()._read(namespace)
        if stamped is None:
            return None
        expiry, key = self._expiry(), self._backend.key()
        if expiry.is_expired(stamped):
            self._table.remove(namespace, key)
            return stamped[0] if expiry.shows_expired else None
        if expiry.refreshes_on_read:
            self._table.put(namespace, key, expiry.stamp(stamped[0]))
        return stamped[0]

    def _put(self, value: Any) -> None:
        super()._put(self._expiry().stamp(value))


class TtlValueState(_TtlWhole, HeapValueState):
    pass


class TtlReducingState(_TtlWhole, HeapReducingState[Any]):
    pass


class TtlAggregatingState(_TtlWhole, HeapAggregatingState):
    pass


class TtlListState(_TtlView, HeapListState[V]):
    """Each element expires by itself."""

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


class TtlMapState(_TtlView, HeapMapState[K, V]):
    """Each entry expires by itself."""

    def _map(self) -> dict[K, V]:
        expiry = self._expiry()
        return {key: each[0] for key, each in self._stored().items() if self._is_shown(expiry, each)}

    def get(self, key: K) -> V | None:
        expiry, stored = self._expiry(), self._stored()
        stamped = stored.get(key)
        if stamped is None:
            return None
        if expiry.is_expired(stamped):
            self.remove(key)
            return cast(V, stamped[0]) if expiry.shows_expired else None
        if expiry.refreshes_on_read:
            self._put({**stored, key: expiry.stamp(stamped[0])})
        return cast(V, stamped[0])

    def put_all(self, dict_value: Any) -> None:
        expiry, stored = self._expiry(), self._stored()
        stored.update({key: expiry.stamp(value) for key, value in dict(dict_value).items()})
        self._put(stored)

    def remove(self, key: K) -> None:
        stored = self._stored()
        if stored.pop(key, None) is not None:
            if stored:
                self._put(stored)
            else:
                self.clear()

    def _stored(self) -> dict[K, Stamped]:
        return self._get() or {}

    def _is_shown(self, expiry: _Expiry, stamped: Stamped) -> bool:
        return expiry.shows_expired or not expiry.is_expired(stamped)


def drop_expired(table: StateTable, descriptor: StateDescriptor, now_ms: int) -> None:
    """Remove what has expired from a table of stamped values, read or not."""
    expiry = _Expiry.of(descriptor, now_ms)
    for namespace, key, stored in list(table.all_entries()):
        left: Any
        if isinstance(descriptor, ListStateDescriptor):
            left = [each for each in stored if not expiry.is_expired(each)]
        elif isinstance(descriptor, MapStateDescriptor):
            left = {name: each for name, each in stored.items() if not expiry.is_expired(each)}
        else:
            left = None if expiry.is_expired(stored) else stored
        if not left:
            table.remove(namespace, key)
        elif left != stored:
            table.put(namespace, key, left)
