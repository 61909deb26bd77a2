"""Deltas hold what differs from the last snapshot and nothing else, also of what came and went in between."""

from __future__ import annotations

import copy
import tempfile
from contextlib import contextmanager
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.common import Time
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.state.contents import WholeMap, has_partial_maps
from penstock.runtime.state.table import REMOVED, Extent
from penstock.testing import OperatorHarness

LIVE_OBJECTS = 4
"""So few that tables on disk write nearly everything to their file, changed names included."""
KINDS = ["heap", "disk"]


@contextmanager
def a_table(kind, has_maps=False):
    with tempfile.TemporaryDirectory() as folder:
        backend = HeapBackend() if kind == "heap" else DiskBackend((folder,), LIVE_OBJECTS)
        table = backend.tables("run", "s0", "op")("table")
        if has_maps:
            table.hold_maps()
        yield table
        table.dispose()


def contents_of(table):
    return {
        (namespace, key): dict(table.items_of(value)) if table.has_maps else value
        for namespace, key, value in table.all_entries()
    }


# --- entries ---------------------------------------------------------------------------------------------------------

namespaces, keys = st.integers(0, 3), st.integers(0, 9)
snapshots = st.tuples(st.just("snapshot"), st.sampled_from(list(Extent)))
actions = st.lists(
    st.one_of(
        st.tuples(st.just("put"), namespaces, keys),
        st.tuples(st.just("remove"), namespaces, keys),
        st.tuples(st.just("close window"), namespaces),
        snapshots,
    ),
    max_size=60,
)


def names_in(blocks):
    namespaces = [item for block in blocks for item in block.items()]
    return [((namespace, key), value) for namespace, held in namespaces for key, value in held.items()]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(drawn=actions)
def test_deltas_of_entries(kind, drawn):
    with a_table(kind) as table:
        saved, base = {}, {}
        for version, (action, *where) in enumerate([*drawn, ("snapshot", Extent.CHANGES)]):
            if action == "put":
                table.put(*where, version)
            elif action == "remove":
                table.remove(*where)
            elif action == "close window":
                for key in table.keys(*where):
                    table.remove(where[0], key)
            else:
                check_delta(table, where[0], base if where[0] is Extent.SINCE_BASE else saved)
                saved = contents_of(table)
                base = saved if where[0] is Extent.ALL else base
                table.snapshot_written(where[0])


def check_delta(table, extent, before):
    """What a snapshot holds leads from `before` to what there is; it mentions nothing that is in neither."""
    now = contents_of(table)
    if extent is Extent.ALL:
        before = {}
    delta = names_in(table.blocks(extent))
    after = before | dict(delta)
    assert {name: value for name, value in after.items() if value is not REMOVED} == now
    if extent is Extent.CHANGES:
        assert {name for name, value in delta if value is REMOVED} <= before.keys()
        noted = sum(len(names) for _, names in table.changed.parts()) if has_parts(table) else count(table.changed)
        assert noted <= len(now.keys() | before.keys())


def has_parts(table):
    return hasattr(table.changed, "parts")


def count(changed):
    return sum(map(len, changed.values()))


# --- maps ------------------------------------------------------------------------------------------------------------

map_keys = st.integers(0, 5)
map_actions = st.lists(
    st.one_of(
        st.tuples(st.just("put"), namespaces, keys, map_keys),
        st.tuples(st.just("delete"), namespaces, keys, map_keys),
        st.tuples(st.just("replace"), namespaces, keys, st.sets(map_keys, min_size=1)),
        st.tuples(st.just("remove"), namespaces, keys),
        st.just(("snapshot", Extent.CHANGES)),
    ),
    max_size=60,
)


def with_parts(before, blocks):
    """What maps become by the parts of a snapshot."""
    after = copy.deepcopy(before)
    for block in blocks:
        for namespace, held in block.items():
            for key, part in held.items():
                name = (namespace, key)
                if part is REMOVED:
                    after.pop(name, None)
                    continue
                is_whole = not has_partial_maps(block) or type(part) is WholeMap
                merged = ({} if is_whole else after.get(name, {})) | dict(part)
                after[name] = {map_key: value for map_key, value in merged.items() if value is not REMOVED}
                if not after[name]:
                    del after[name]
    return after


def change_map(table, action, namespace, key, value, version):
    held = table.get(namespace, key)
    if action == "remove":
        table.remove(namespace, key)
    elif action == "replace":
        table.put(namespace, key, dict.fromkeys(value, version))
    elif action == "put":
        held = {} if held is None else held
        held[value] = version
        table.put(namespace, key, held)
    elif held is not None and value in held:
        del held[value]
        if held:
            table.put(namespace, key, held)
        else:
            table.remove(namespace, key)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(drawn=map_actions)
@example(drawn=[("put", 0, 0, 0), ("put", 0, 0, 0), ("replace", 0, 0, {1})])
def test_deltas_of_maps(kind, drawn):
    with a_table(kind, has_maps=True) as table:
        saved = {}
        for version, (action, *where) in enumerate([*drawn, ("snapshot", Extent.CHANGES)]):
            if action != "snapshot":
                namespace, key, *value = where
                change_map(table, action, namespace, key, value[0] if value else None, version)
                continue
            now, blocks = contents_of(table), list(table.blocks(Extent.CHANGES))
            assert with_parts(saved, blocks) == now
            assert mentioned(blocks) <= map_entries(saved) | map_entries(now)
            saved = now
            table.snapshot_written(Extent.CHANGES)


def map_entries(maps):
    return {(*name, map_key) for name, held in maps.items() for map_key in held}


def mentioned(blocks):
    """Map entries that a snapshot says anything about."""
    return {
        (namespace, key, map_key)
        for block in blocks
        for namespace, held in block.items()
        for key, part in held.items()
        if part is not REMOVED
        for map_key in part
    }


@pytest.mark.parametrize("kind", KINDS)
def test_maps_that_came_and_went_leave_nothing(kind):
    with a_table(kind, has_maps=True) as table:
        for number in range(50):
            for map_key in range(5):
                change_map(table, "put", "window", number, map_key, 1)
            change_map(table, "delete", "window", number, 0, 1)
            table.remove("window", number)
        assert not table.changed and list(table.blocks(Extent.CHANGES)) == []


# --- operators -------------------------------------------------------------------------------------------------------


class TimerOfEach(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)


def summed(windows):
    return windows.reduce(lambda one, other: (one[0], one[1] + other[1]))


def windowed(assigner, stream):
    return summed(stream.key_by(lambda element: element[0]).window(assigner))


OPERATORS = {
    "tumbling": partial(windowed, TumblingEventTimeWindows.of(Time.milliseconds(10))),
    "sliding": partial(windowed, SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5))),
    "sessions": partial(windowed, EventTimeSessionWindows.with_gap(Time.milliseconds(3))),
    "timers": lambda stream: stream.key_by(lambda element: element[0]).process(TimerOfEach()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_windows_and_timers_that_came_and_went_leave_nothing(kind, operator, tmp_path):
    backend = HeapBackend() if kind == "heap" else DiskBackend((str(tmp_path),), LIVE_OBJECTS)
    h = OperatorHarness.of(OPERATORS[operator], state_backend=backend)
    for time in range(0, 1000, 20):
        h.batch([((key, 1), time + at) for at in range(3) for key in "abcdefgh"])
        h.watermark(time + 19)
    tables = h.context.keyed_state.tables
    assert len(h.context.keyed_state) == 0
    assert {name: list(table.blocks(Extent.CHANGES)) for name, table in tables.items()} == {name: [] for name in tables}
    assert not any(table.changed for table in tables.values())
