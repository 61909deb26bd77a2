from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Types
from penstock.common.exceptions import StateAccessError
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, Extent

namespaces = st.sampled_from(["w1", "w2", VOID_NAMESPACE])
keys = st.sampled_from("abc")
step = st.one_of(
    st.tuples(st.just("put"), namespaces, keys, st.integers()),
    st.tuples(st.just("remove"), namespaces, keys),
    st.tuples(st.sampled_from(Extent)),
)


class Saved:
    """The snapshots of a backend that one is restored from; as bytes, as they are between processes."""

    def __init__(self, backend):
        self._backend = backend
        self._snapshots = []

    def take(self, extent):
        kept = {Extent.ALL: [], Extent.SINCE_BASE: self._snapshots[:1], Extent.CHANGES: self._snapshots}
        blocks = [(name, encode_state(contents)) for name, contents in self._backend.snapshot(extent)]
        self._backend.snapshot_written(extent)
        self._snapshots = [*kept[extent], (extent, blocks)]

    def restored(self):
        backend = KeyedStateBackend("op")
        for extent, blocks in self._snapshots:
            for name, contents in blocks:
                backend.restore(name, decode_state(contents), extent=extent)
        return backend


@given(st.lists(step, max_size=50))
def test_snapshots_since_a_base_rebuild_the_table(steps):
    backend, model = KeyedStateBackend("op"), {}
    saved = Saved(backend)
    saved.take(Extent.ALL)
    for kind, *arguments in [*steps, (Extent.CHANGES,)]:
        if kind == "put":
            namespace, key, value = arguments
            backend.table("t").put(namespace, key, value)
            model[namespace, key] = value
        elif kind == "remove":
            backend.table("t").remove(*arguments)
            model.pop(tuple(arguments), None)
        else:
            saved.take(kind)
    restored = saved.restored()
    assert {(n, k): v for n, k, v in restored.table("t").all_entries()} == model
    assert {(n, k): v for n, k, v in backend.table("t").all_entries()} == model
    assert list(restored.snapshot(Extent.CHANGES)) == [], "what was restored is no change"


@given(st.lists(step, max_size=50))
def test_no_namespace_is_kept_empty(steps):
    table = HeapStateTable("t")
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


def test_a_loop_over_a_list_may_change_the_list():
    backend = KeyedStateBackend("op")
    backend.current_key = "a"
    state = backend.state(ListStateDescriptor("seen", Types.INT()))
    state.add_all([1, 2])
    for element in state.get():
        state.add(element * 10)
    assert list(state.get()) == [1, 2, 10, 20]
    for element in state.get():
        state.update([element])
    assert list(state.get()) == [20]
    for _ in state.get():
        state.clear()
    assert list(state.get()) == []
