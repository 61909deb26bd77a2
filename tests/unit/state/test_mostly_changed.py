"""Where most entries have changed nobody notes which, and snapshots still lead from one to the next."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.state import heap_table
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.contents import slices_of
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.table import REMOVED, VOID_NAMESPACE, Extent
from penstock.testing import JobInEpochs, OperatorHarness

KEYS = range(4)

# --- tables ----------------------------------------------------------------------------------------------------------

keys = st.sampled_from(KEYS)
batches = st.lists(st.tuples(keys, st.one_of(st.just(1), st.just(2), st.none())), min_size=1, max_size=8)
extents = st.sampled_from([Extent.ALL, Extent.SINCE_BASE, Extent.CHANGES, Extent.CHANGES])
intervals = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(["batch", "batch", "batch", "calls"]), batches), max_size=4),
        st.tuples(st.sampled_from(["snapshot", "snapshot", "failed snapshot"]), extents),
        st.sampled_from([(), (), (("restore",),)]),
    ),
    max_size=8,
)


def run_batch(table, batch):
    """Work on a table as generated loops do; None removes an entry."""
    wants_notes = table.wants_notes(VOID_NAMESPACE)
    entries, noted = table.open_namespace(VOID_NAMESPACE), table.open_changes(VOID_NAMESPACE)
    for key, value in batch:
        if value is None:
            if entries.pop(key, None) is not None:
                if noted.get(key, True):
                    noted[key] = True
                else:
                    del noted[key]
            continue
        if wants_notes and key not in noted:
            noted[key] = key in entries
        entries[key] = value
    table.close_namespace(VOID_NAMESPACE)


def run_calls(table, batch):
    for key, value in batch:
        if value is None:
            table.remove(VOID_NAMESPACE, key)
        else:
            table.put(VOID_NAMESPACE, key, value)


class Chain:
    """The snapshots that a table is restored from."""

    def __init__(self):
        self._snapshots = []

    def add(self, extent, blocks):
        kept = {Extent.ALL: [], Extent.SINCE_BASE: self._snapshots[:1], Extent.CHANGES: self._snapshots}
        self._snapshots = [*kept[extent], (extent, [encode_state(block) for block in blocks])]

    def restored(self):
        table = HeapStateTable("table")
        for extent, blocks in self._snapshots:
            for block in blocks:
                table.load(decode_state(block), extent)
        return table


@settings(max_examples=300)
@given(drawn=intervals)
def test_snapshots_lead_to_what_there_is(drawn):
    actions = [each for changes, snapshot, then in drawn for each in (*changes, snapshot, *then)]
    table, chain, model = HeapStateTable("table"), Chain(), {}
    saved = dict(model)
    chain.add(Extent.ALL, table.blocks(Extent.ALL))
    table.snapshot_written(Extent.ALL)
    for action, *arguments in [*actions, ("snapshot", Extent.CHANGES), ("restore",)]:
        if action in ("batch", "calls"):
            (run_batch if action == "batch" else run_calls)(table, arguments[0])
            model.update(arguments[0])
            model = {key: value for key, value in model.items() if value is not None}
        elif action == "restore":
            table, model = chain.restored(), dict(saved)
        else:
            blocks = list(table.blocks(arguments[0]))
            assert bool(table.changed) or arguments[0] is not Extent.CHANGES or not blocks
            if action != "failed snapshot":
                chain.add(arguments[0], blocks)
                table.snapshot_written(arguments[0])
                saved = dict(model)
        assert {key: value for _, key, value in table.all_entries()} == model


def interval(table, changed, times=3, value=int):
    """So many batches that write the same keys."""
    for number in range(times):
        run_batch(table, [(key, value(number)) for key in changed])


def table_of(number, value=int):
    table = HeapStateTable("table")
    run_batch(table, [(key, value(0)) for key in range(number)])
    table.snapshot_written(Extent.ALL)
    return table


def test_few_changes_are_noted_one_by_one():
    table = table_of(1000)
    interval(table, range(10))
    assert not table.is_all_changed() and table.wants_notes(VOID_NAMESPACE)
    assert list(table.blocks(Extent.CHANGES)) == [{VOID_NAMESPACE: dict.fromkeys(range(10), 2)}]


def test_when_most_entries_have_changed_no_others_are_noted():
    table = table_of(1000)
    interval(table, range(600))
    assert table.is_all_changed() and not table.wants_notes(VOID_NAMESPACE)
    assert not table.changed.get(VOID_NAMESPACE) and table.changed
    table.snapshot_written(Extent.ALL)
    assert not table.changed and table.wants_notes(VOID_NAMESPACE)


def test_what_nobody_noted_is_part_of_the_changes_since_the_base():
    table, chain = table_of(4), Chain()
    chain.add(Extent.ALL, table.blocks(Extent.ALL))
    interval(table, range(3))
    run_batch(table, [(3, 7)])  # Not noted.
    for extent in (Extent.CHANGES, Extent.SINCE_BASE):
        chain.add(extent, table.blocks(extent))
        table.snapshot_written(extent)
    assert list(chain.restored().all_entries()) == list(table.all_entries())


@pytest.mark.parametrize(("value", "at_first", "at_most"), [(int, 4, 16), (str, 2, 4)])
def test_share_that_is_enough_becomes_smaller_while_most_entries_change(value, at_first, at_most):
    table = table_of(1600, value)
    for shares in (at_first, at_most, at_most):
        interval(table, range(1600 // shares), value=value)
        assert not table.is_all_changed()
        table.snapshot_written(Extent.CHANGES)
        for _ in range(3):
            interval(table, range(900), value=value)
            table.snapshot_written(Extent.ALL)
        interval(table, range(1600 // at_most + 1), value=value)
        assert table.is_all_changed()
        table.snapshot_written(Extent.ALL)


def test_share_does_not_stay_small_for_ever():
    table = table_of(1000)
    wholes = []
    for number in range(40):
        interval(table, range(600 if number < 4 else 100))
        wholes.append(table.is_all_changed())
        table.snapshot_written(Extent.CHANGES)
    assert all(wholes[:16]) and not any(wholes[16:])


def test_rolling_sum_of_all_keys_notes_nothing_after_its_first_batches():
    h = OperatorHarness.of(lambda stream: stream.key_by(lambda value: value[0]).sum(1))
    for _ in range(3):
        h.batch([((key, 1), 0) for key in range(50)])
    (table,) = h.context.keyed_state.tables.values()
    assert table.is_all_changed() and not table.changed.get(VOID_NAMESPACE)


def test_entries_that_come_and_go_leave_a_bounded_number_of_names():
    table = table_of(10)
    interval(table, range(10))
    assert not table.wants_notes(VOID_NAMESPACE)
    for number in range(100, 1000, 10):
        run_batch(table, [(key, value) for key in range(number, number + 10) for value in (1, None)])
    assert table.wants_notes(VOID_NAMESPACE)
    assert len(table.changed[VOID_NAMESPACE]) <= 10
    assert (
        sum(value is REMOVED for block in table.blocks(Extent.CHANGES) for value in block[VOID_NAMESPACE].values())
        <= 10
    )


class CountedKey(int):
    """A key that counts how often it is looked up."""

    lookups = 0

    def __hash__(self):
        CountedKey.lookups += 1
        return int.__hash__(self)


def test_entry_that_is_gone_is_not_looked_for_with_every_batch():
    table = HeapStateTable("table")
    keys = [CountedKey(key) for key in range(1000)]
    run_batch(table, [(key, 0) for key in keys])
    table.snapshot_written(Extent.ALL)
    run_batch(table, [*((key, 1) for key in keys[:-1]), (keys[-1], None)])
    before = CountedKey.lookups
    assert all(table.wants_notes(VOID_NAMESPACE) for _ in range(100))
    assert CountedKey.lookups - before <= len(keys)


# --- jobs ------------------------------------------------------------------------------------------------------------


class Latest(KeyedProcessFunction):
    """Keeps the latest number of each key, and the first one for good; without a number it shows both."""

    def open(self, runtime_context):
        self._latest = runtime_context.get_state(ValueStateDescriptor("latest", Types.LONG()))
        self._first = runtime_context.get_state(ValueStateDescriptor("first", Types.LONG()))

    def process_element(self, value, ctx):
        if value[1] is None:
            yield value[0], self._latest.value(), self._first.value()
        elif value[1] < 0:
            self._latest.clear()
        else:
            self._latest.update(value[1])
            if self._first.value() is None:
                self._first.update(value[1])


class OnlyLatest(KeyedProcessFunction):
    def open(self, runtime_context):
        self._latest = runtime_context.get_state(ValueStateDescriptor("latest", Types.LONG()))

    def process_element(self, value, ctx):
        if value[1] is None:
            yield value[0], self._latest.value(), None
        else:
            self._latest.update(value[1])


def keyed(function):
    return lambda stream: stream.key_by(lambda record: record[0]).process(function)


def checkpoint_after(job, number, changed, epochs=4):
    """Write all of `changed` in several epochs, the last of which ends with a checkpoint."""
    for epoch in range(epochs):
        job.epoch([(key, number) for key in changed], is_checkpoint=epoch == epochs - 1)


def handles_of(job):
    return [handle for handle in job.checkpoint.metadata.handles() if handle.has_keyed_state]


def shown_by(found, function, parallelism):
    job = JobInEpochs(keyed(function), parallelism, restored=found)
    shown = sorted(map(eval, job.epoch([(key, None) for key in range(100)])))
    job.close()
    return shown


def test_checkpoint_of_a_job_that_changes_all_its_state_is_one_file_for_each_subtask():
    job = JobInEpochs(keyed(OnlyLatest()), 2)
    for number in range(6):
        checkpoint_after(job, number, range(100))
        assert [handle.extent for handle in handles_of(job)] == [Extent.ALL] * 2
    job.close()
    for parallelism in (1, 2, 3):
        assert shown_by(job.checkpoint, OnlyLatest(), parallelism) == [(key, 5, None) for key in range(100)]


def test_state_that_does_not_change_is_not_written_because_another_one_does():
    job = JobInEpochs(keyed(Latest()), 1)
    checkpoint_after(job, 0, range(100))
    sizes = []
    for number in range(1, 4):
        checkpoint_after(job, number, range(100))
        sizes.append(handles_of(job)[-1])
    assert all(handle.extent is not Extent.ALL for handle in sizes[:2])
    assert all(
        {state for _, _, state in handle.states if state in ("first", "latest")} == {"latest"} for handle in sizes[:2]
    )
    job.close()
    assert shown_by(job.checkpoint, Latest(), 2) == [(key, 3, 0) for key in range(100)]


numbers = st.one_of(st.integers(0, 5), st.just(-1))
epochs = st.lists(
    st.tuples(st.lists(st.tuples(keys, numbers), max_size=20), st.sampled_from(["plain", "checkpoint", "fail"])),
    max_size=30,
)


@settings(max_examples=40)
@given(drawn=epochs, parallelism=st.integers(1, 3))
def test_any_checkpoint_restores_what_there_was_at_another_parallelism(drawn, parallelism):
    job = JobInEpochs(keyed(Latest()), 2)
    model = complete = {}
    for records, what in [*drawn, ([], "checkpoint")]:
        job.epoch(records, is_checkpoint=what == "checkpoint")
        for key, number in records:
            _, first = model.get(key, (None, None))
            after = (None, first) if number < 0 else (number, number if first is None else first)
            model = {**model, key: after}
        if what == "checkpoint":
            complete = model
        elif what == "fail":
            if not complete:
                break
            job.fail()
            model = complete
    if not complete:
        return
    job.close()
    shown = {key: (latest, first) for key, latest, first in shown_by(job.checkpoint, Latest(), parallelism)}
    assert shown == {key: complete.get(key, (None, None)) for key in range(100)}


# --- bytes -----------------------------------------------------------------------------------------------------------


class Celsius(int):
    """A subclass, which must not become a plain number."""


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.text(st.characters()),
    st.sampled_from(["\ud800", "a\0b", "", -0.0, math.nan, math.inf]),
    st.binary(max_size=4),
    st.integers(-5, 5).map(Celsius),
    st.integers(-5, 5).map(np.int64),
    st.floats(width=32).map(np.float32),
    st.booleans().map(np.bool_),
    st.datetimes(),
    st.just(datetime.timedelta(1)),
)
any_value = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.lists(inner, max_size=3).map(lambda fields: Row(*fields)),
    ),
    max_leaves=4,
)


def seen_in(value):
    """What tells values apart that Python takes for equal."""
    if isinstance(value, dict):
        return type(value), [(seen_in(key), seen_in(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [seen_in(item) for item in value]
    if isinstance(value, Row):
        return Row, value.get_row_kind(), [seen_in(item) for item in value]
    return type(value), repr(value)


@settings(max_examples=200)
@given(
    held=st.dictionaries(
        st.one_of(st.integers(), st.text(max_size=3), st.tuples(st.booleans(), st.floats())), any_value
    ),
    size=st.integers(1, 4),
)
def test_entries_come_back_from_a_file_as_they_were(held, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heap_table, "_BLOCK_ENTRIES", size)
        table = HeapStateTable("table")
        for key, value in held.items():
            table.put(VOID_NAMESPACE, key, value)
        for extent in Extent:
            back = [
                entry
                for block in map(encode_state, table.blocks(extent))
                for entry in decode_state(block)[VOID_NAMESPACE].items()
            ]
            assert seen_in(dict(back)) == seen_in(held)


@given(number=st.integers(0, 30), size=st.integers(1, 9), pickled=st.sets(st.integers(0, 30)))
def test_slices_are_the_same_read_or_pickled_at_once_or_later(number, size, pickled):
    held = {key: str(key) for key in range(number)}
    slices, found = [], []
    for at, each in enumerate(slices_of(held, size)):
        slices.append(each)
        found.append(decode_state(encode_state(each)) if at in pickled else dict(each))
    expected = [dict(list(held.items())[start : start + size]) for start in range(0, number, size)]
    assert found == expected
    assert [decode_state(encode_state(each)) for each in slices] == expected
    assert [len(each) for each in slices] == list(map(len, expected))


def test_slice_with_what_cannot_be_pickled_plainly_is_whole_all_the_same():
    held = {1: "a", 2: lambda: "b", 3: "c"}
    (back,) = [decode_state(encode_state(each)) for each in slices_of(held, 3)]
    assert list(back) == [1, 2, 3] and back[2]() == "b"
