"""Operator state over changes of parallelism: nothing is lost, and nothing is there twice."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor
from penstock.runtime.state.operator import OperatorStateBackend, share_of

parallelisms = st.lists(st.integers(1, 5), min_size=1, max_size=5)
items = st.lists(st.integers(0, 9), max_size=6)


def backend_with(split=(), union=(), broadcast=None) -> OperatorStateBackend:
    backend = OperatorStateBackend("op")
    backend.get_list_state(ListStateDescriptor("split")).add_all(list(split))
    backend.get_union_list_state(ListStateDescriptor("union")).add_all(list(union))
    backend.get_broadcast_state(MapStateDescriptor("broadcast")).put_all(broadcast or {})
    return backend


def rescaled(backends: list[OperatorStateBackend], parallelism: int) -> list[OperatorStateBackend]:
    saved = [backend.snapshot() for backend in backends]
    after = [OperatorStateBackend("op") for _ in range(parallelism)]
    for number, backend in enumerate(after):
        backend.restore(share_of(saved, number, parallelism))
    return after


def split_of(backend: OperatorStateBackend) -> list[int]:
    return list(backend.get_list_state(ListStateDescriptor("split")).get())


def union_of(backend: OperatorStateBackend) -> list[int]:
    return list(backend.get_union_list_state(ListStateDescriptor("union")).get())


@given(st.lists(items, min_size=1, max_size=5), parallelisms)
def test_items_of_split_lists_are_dealt_out_evenly_each_once(lists, changes):
    backends = [backend_with(split=each) for each in lists]
    expected = Counter(item for each in lists for item in each)
    for parallelism in changes:
        backends = rescaled(backends, parallelism)
        dealt = [split_of(backend) for backend in backends]
        assert Counter(item for each in dealt for item in each) == expected
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


@given(st.lists(items, min_size=1, max_size=4), st.integers(1, 5))
def test_everyone_gets_all_items_of_union_lists_in_order(lists, parallelism):
    backends = rescaled([backend_with(union=each) for each in lists], parallelism)
    assert all(union_of(backend) == [item for each in lists for item in each] for backend in backends)


@given(st.dictionaries(st.text(max_size=2), st.integers()), st.integers(1, 4), parallelisms)
def test_everyone_gets_broadcast_state_however_often_the_parallelism_changes(entries, first, changes):
    backends = [backend_with(broadcast=entries) for _ in range(first)]
    for parallelism in changes:
        backends = rescaled(backends, parallelism)
        states = [backend.get_broadcast_state(MapStateDescriptor("broadcast")) for backend in backends]
        assert all(dict(state.items()) == entries for state in states)


@given(items, st.integers(0, 3), st.integers(1, 4))
def test_state_that_only_some_subtasks_had_is_found(held, others, parallelism):
    """A subtask that never asked for its state has saved nothing under its name."""
    backends = [*(OperatorStateBackend("op") for _ in range(others)), backend_with(split=held)]
    after = rescaled(backends, parallelism)
    assert Counter(item for backend in after for item in split_of(backend)) == Counter(held)


@given(items, items)
def test_a_share_is_a_copy(split, union):
    before = backend_with(split, union)
    first, second = rescaled([before], 1)[0], rescaled([before], 1)[0]
    first.get_union_list_state(ListStateDescriptor("union")).add(99)
    first.get_list_state(ListStateDescriptor("split")).clear()
    assert (split_of(second), union_of(second)) == (split, union)
