from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Types
from penstock.common.exceptions import StateAccessError
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable

namespaces = st.sampled_from(["w1", "w2", VOID_NAMESPACE])
keys = st.sampled_from("abc")
step = st.one_of(
    st.tuples(st.just("put"), namespaces, keys, st.integers()),
    st.tuples(st.just("remove"), namespaces, keys),
    st.tuples(st.just("delta")),
    st.tuples(st.just("full")),
)


@given(st.lists(step, max_size=50))
def test_deltas_since_a_full_snapshot_rebuild_the_table(steps):
    """What is saved goes through pickle, as it does between processes."""
    backend, model = KeyedStateBackend("op"), {}
    snapshots: list[bytes] = []
    for kind, *arguments in [*steps, ("delta",)]:
        if kind == "put":
            namespace, key, value = arguments
            backend.table("t").put(namespace, key, value)
            model[namespace, key] = value
        elif kind == "remove":
            backend.table("t").remove(*arguments)
            model.pop(tuple(arguments), None)
        else:
            snapshots = [] if kind == "full" else snapshots
            snapshots.append(pickle.dumps(backend.snapshot(full=kind == "full")))
    restored = KeyedStateBackend("op")
    for snapshot in snapshots:
        restored.restore(pickle.loads(snapshot))
    assert {(n, k): v for n, k, v in restored.table("t").all_entries()} == model
    assert {(n, k): v for n, k, v in backend.table("t").all_entries()} == model
    assert restored.snapshot(full=False) == {}, "what was restored is no change"


@given(st.lists(step, max_size=50))
def test_no_namespace_is_kept_empty(steps):
    table = StateTable("t")
    for kind, *arguments in steps:
        if kind in ("put", "remove"):
            getattr(table, kind)(*arguments)
        assert all(table.entries.values())
        assert len(table) == len(list(table.all_entries()))


def test_one_name_cannot_be_two_kinds_of_state():
    backend = KeyedStateBackend("op")
    backend.state(ValueStateDescriptor("seen", Types.INT()))
    message = "operator 'op': state 'seen' is a ValueStateDescriptor already and cannot also be a ListStateDescriptor"
    with pytest.raises(StateAccessError, match=message):
        backend.state(ListStateDescriptor("seen", Types.INT()))


def test_state_without_a_key_is_refused():
    state = KeyedStateBackend("op").state(ValueStateDescriptor("seen", Types.INT()))
    with pytest.raises(StateAccessError, match="keyed state was used where there is no current key"):
        state.value()
