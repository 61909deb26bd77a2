"""State that expires, against the clock of the backend."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Time
from penstock.datastream.functions import AggregateFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import Extent

UpdateType, Visibility = StateTtlConfig.UpdateType, StateTtlConfig.StateVisibility


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


class Summing(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def expiring(
    descriptor: StateDescriptor, update: Any = UpdateType.OnCreateAndWrite, show: Any = None
) -> tuple[Any, Clock]:
    """A state that lives 10 ms, and its clock."""
    config = StateTtlConfig.new_builder(Time.milliseconds(10)).set_update_type(update)
    descriptor.enable_time_to_live(config.set_state_visibility(show or Visibility.NeverReturnExpired).build())
    clock = Clock()
    backend = KeyedStateBackend("test", clock)
    backend.current_key = "key"
    return backend.state(descriptor), clock


def test_a_value_expires_after_its_time_to_live() -> None:
    state, clock = expiring(ValueStateDescriptor("v"))
    state.update("x")
    clock.now = 9
    assert state.value() == "x"
    clock.now = 10
    assert state.value() is None


def test_reading_prolongs_a_value_only_if_configured() -> None:
    for update, expected in [(UpdateType.OnCreateAndWrite, None), (UpdateType.OnReadAndWrite, "x")]:
        state, clock = expiring(ValueStateDescriptor("v"), update)
        state.update("x")
        clock.now = 6
        state.value()
        clock.now = 12
        assert state.value() == expected


def test_an_expired_value_may_be_shown_until_it_is_cleaned_up() -> None:
    state, clock = expiring(ValueStateDescriptor("v"), show=Visibility.ReturnExpiredIfNotCleanedUp)
    state.update("x")
    clock.now = 99
    assert state.value() == "x"
    assert state.value() is None  # the first read has cleaned it up


def test_elements_of_a_list_expire_one_by_one() -> None:
    state, clock = expiring(ListStateDescriptor("l"))
    state.add(1)
    clock.now = 5
    state.add(2)
    clock.now = 12
    assert list(state.get()) == [2]
    clock.now = 15
    assert list(state.get()) == []


def test_entries_of_a_map_expire_one_by_one() -> None:
    state, clock = expiring(MapStateDescriptor("m"))
    state.put("a", 1)
    clock.now = 5
    state.put("b", 2)
    clock.now = 12
    assert (state.get("a"), state.get("b"), list(state.keys()), "a" in state) == (None, 2, ["b"], False)


@pytest.mark.parametrize(
    "descriptor", [ReducingStateDescriptor("r", lambda a, b: a + b), AggregatingStateDescriptor("a", Summing())]
)
def test_reducing_and_aggregating_state_start_over_after_expiry(descriptor: StateDescriptor) -> None:
    state, clock = expiring(descriptor)
    state.add(1)
    state.add(2)
    assert state.get() == 3
    clock.now = 50
    state.add(5)
    assert state.get() == 5


def test_a_full_snapshot_drops_what_nobody_reads() -> None:
    for descriptor, write in [
        (ValueStateDescriptor("v"), lambda state: state.update(1)),
        (ListStateDescriptor("l"), lambda state: state.add(1)),
        (MapStateDescriptor("m"), lambda state: state.put(1, 1)),
    ]:
        state, clock = expiring(descriptor)
        write(state)
        clock.now = 50
        backend = state._backend
        assert list(backend.snapshot(Extent.ALL)) == []
        assert len(backend) == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["put", "remove", "get"]), st.sampled_from("ab"))))
def test_map_entries_follow_a_model(steps: list[tuple[int, str, str]]) -> None:
    state, clock = expiring(MapStateDescriptor("m"), UpdateType.OnReadAndWrite)
    model: dict[str, tuple[int, int]] = {}
    for number, (wait, action, key) in enumerate(steps):
        clock.now += wait * 3
        model = {name: each for name, each in model.items() if each[1] + 10 > clock.now}
        if action == "put":
            state.put(key, number)
            model[key] = (number, clock.now)
        elif action == "remove":
            state.remove(key)
            model.pop(key, None)
        else:
            assert state.get(key) == model.get(key, (None,))[0]
            if key in model:
                model[key] = (model[key][0], clock.now)
        assert dict(state.items()) == {name: value for name, (value, _) in model.items()}
        model = {name: (value, clock.now) for name, (value, _) in model.items()}  # Looking at all is reading all.
