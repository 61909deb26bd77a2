"""How state goes that has expired and that nobody reads."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest

from penstock.common import Time
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import Extent

Visibility = StateTtlConfig.StateVisibility
KEYS = 40


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


class Expiring:
    """State that lives 10 ms, on some backend."""

    def __init__(self, make_table: Any) -> None:
        self.clock = Clock()
        self.backend = KeyedStateBackend("op", self.clock, make_table)

    def state(self, descriptor: Any, configure: Any = lambda builder: builder) -> Any:
        builder = configure(StateTtlConfig.new_builder(Time.milliseconds(10)))
        descriptor.enable_time_to_live(builder.build())
        return self.backend.state(descriptor)

    def write(self, state: Any) -> None:
        """Something for every key."""
        for key in range(KEYS):
            self.backend.current_key = key
            if hasattr(state, "put"):
                state.put_all({"x": key, "y": key})
            elif hasattr(state, "add"):
                state.add(key)
            else:
                state.update(key)


@pytest.fixture(params=["heap", "disk"])
def expiring(request, tmp_path):
    backend = HeapBackend() if request.param == "heap" else DiskBackend((str(tmp_path),), cache_entries=10)
    made = Expiring(backend.tables("run", "s0", "op"))
    yield made
    made.backend.dispose()


DESCRIPTORS = [ValueStateDescriptor, ListStateDescriptor, MapStateDescriptor]


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_every_access_cleans_up_a_few_other_entries(expiring, descriptor):
    state = expiring.state(descriptor("s"), lambda builder: builder.cleanup_incrementally(2, False))
    expiring.write(state)
    expiring.clock.now = 50
    expiring.backend.current_key = "another"
    left = []
    for _ in range(KEYS + 2):
        state.value() if hasattr(state, "value") else state.get("x") if hasattr(state, "put") else list(state.get())
        left.append(len(expiring.backend))
    assert left[0] >= KEYS - 2
    assert left[-1] == 0, "all were looked at, two at a time"
    assert all(before - after <= 2 for before, after in itertools.pairwise(left))


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_nothing_is_cleaned_up_in_the_background_if_that_is_off(expiring, descriptor):
    state = expiring.state(descriptor("s"), lambda builder: builder.disable_cleanup_in_background())
    expiring.write(state)
    expiring.clock.now = 50
    expiring.backend.current_key = "another"
    for _ in range(KEYS):
        state.clear()
    list(expiring.backend.snapshot(Extent.ALL))
    assert len(expiring.backend) == KEYS


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_a_full_snapshot_cleans_up_if_that_is_chosen(expiring, descriptor):
    def configure(builder):
        return builder.disable_cleanup_in_background().cleanup_full_snapshot()

    expiring.write(expiring.state(descriptor("s"), configure))
    expiring.clock.now = 50
    assert list(expiring.backend.snapshot(Extent.ALL)) == []
    assert len(expiring.backend) == 0


def test_cleanup_by_compaction_looks_at_entries_on_access(expiring):
    def configure(builder):
        return builder.disable_cleanup_in_background().cleanup_in_rocksdb_compact_filter(1000)

    state = expiring.state(ValueStateDescriptor("v"), configure)
    expiring.write(state)
    expiring.clock.now = 50
    expiring.backend.current_key = "another"
    for _ in range(KEYS):
        state.value()
    assert len(expiring.backend) == 0


def test_what_the_background_removes_is_removed_from_the_next_delta_too(expiring):
    state = expiring.state(ValueStateDescriptor("v"), lambda builder: builder.cleanup_incrementally(100, False))
    expiring.write(state)
    expiring.backend.snapshot_written(Extent.ALL)
    expiring.clock.now = 50
    expiring.backend.current_key = "another"
    state.value()
    state.value()
    removed = [
        key for _, contents in expiring.backend.snapshot(Extent.CHANGES) for keys in contents.values() for key in keys
    ]
    assert sorted(removed) == list(range(KEYS))


def test_an_expired_value_of_the_current_key_is_shown_until_it_is_read(expiring):
    def configure(builder):
        return builder.set_state_visibility(Visibility.ReturnExpiredIfNotCleanedUp)

    state = expiring.state(ValueStateDescriptor("v"), configure)
    expiring.backend.current_key = "key"
    state.update("x")
    expiring.clock.now = 99
    assert (state.value(), state.value()) == ("x", None)


def test_a_disabled_time_to_live_lets_nothing_expire(expiring):
    def configure(builder):
        return builder.set_update_type(StateTtlConfig.UpdateType.Disabled)

    state = expiring.state(ValueStateDescriptor("v"), configure)
    expiring.backend.current_key = "key"
    state.update("x")
    expiring.clock.now = 99
    assert state.value() == "x"


def test_reading_all_of_a_map_prolongs_it_if_configured(expiring):
    state = expiring.state(MapStateDescriptor("m"), lambda builder: builder.update_ttl_on_read_and_write())
    expiring.backend.current_key = "key"
    state.put_all({"a": 1, "b": 2})
    expiring.clock.now = 6
    assert dict(state.items()) == {"a": 1, "b": 2}
    expiring.clock.now = 12
    assert "a" in state
    expiring.clock.now = 18
    assert (state.get("a"), state.get("b")) == (1, None)


@pytest.mark.parametrize("descriptor", [ValueStateDescriptor, MapStateDescriptor])
def test_what_a_missing_value_is_the_key_of_is_shown_like_others(expiring: Expiring, descriptor: Any) -> None:
    shown = expiring.state(
        descriptor("state"), lambda builder: builder.set_state_visibility(Visibility.ReturnExpiredIfNotCleanedUp)
    )
    for key in (pd.NaT, pd.NA):
        expiring.backend.current_key = key
        shown.put("x", 1) if descriptor is MapStateDescriptor else shown.update(1)
        expiring.clock.now += 11
        assert (shown.get("x") if descriptor is MapStateDescriptor else shown.value()) == 1
