"""A loop that does the work of a process function gives what calling the function gives."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.process_functions import (
    CALLED,
    IN_A_LOOP,
    Counts,
    SetsTimersThroughAHelper,
    Timers,
    TimersThatAreDeleted,
    TimersThatAreSet,
)

from penstock.common.exceptions import InvalidProgramError, LocalStateError, StateAccessError
from penstock.datastream import KeyedBroadcastProcessFunction, KeyedCoProcessFunction, KeyedProcessFunction
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.runtime.columns import columns_of
from penstock.runtime.failure import describe_failure
from penstock.runtime.operators import process
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.state.cached_keys import CachedKeys
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, Extent
from penstock.testing import OperatorHarness


def harness_of(function, **where):
    return OperatorHarness.of(lambda stream: stream.key_by(lambda value: value[0]).process(function), **where)


def loops_of(harness):
    return [loop for loop in harness.operator._loops.values() if loop is not None]


UNTRACKED = HeapBackend(tracks_changes=False)
values = st.tuples(st.sampled_from("ab"), st.integers(0, 8))
steps = st.integers(0, 100)
batches = st.lists(st.tuples(st.lists(values, max_size=6), st.booleans(), steps, st.booleans()), max_size=8)


def feed(harness, elements, timestamps=None, in_columns=False, input_index=0):
    """Elements one by one, or as they come from another task."""
    columns = columns_of(elements) if in_columns and elements else None
    if columns is None:
        harness.operator.process_batch(process.Batch(list(elements), timestamps), input_index)
    else:
        timed = columns if timestamps is None else columns.with_timestamps(timestamps)
        harness.operator.process_columns(replace(timed, key=0), input_index)


def run(function, given_batches, state_backend, in_columns=False):
    """All that can be seen from outside."""
    harness = harness_of(function, state_backend=state_backend)
    extent = Extent.ALL if state_backend == UNTRACKED else Extent.CHANGES
    saved = KeyedStateBackend("saved")
    seen = []
    time = 0
    for elements, with_timestamps, step, is_checkpoint in [*given_batches, ([], False, 0, True)]:
        feed(harness, elements, list(range(time, time + len(elements))) if with_timestamps else None, in_columns)
        time += step
        harness.watermark(time).processing_time(time)
        if is_checkpoint:
            add_snapshot(saved, harness, extent)
            assert entries_of(saved) == entries_of(harness.context.keyed_state)
        seen.append((entries_of(saved), harness.state_entries, harness.timers))
    return harness.recorded.events, harness.recorded.side, seen, harness.metrics, loops_of(harness)


def add_snapshot(saved, harness, extent):
    """Take a checkpoint, and restore it on top of those before."""
    keyed_state = harness.context.keyed_state
    blocks = [(name, encode_state(contents)) for name, contents in keyed_state.snapshot(extent)]
    keyed_state.snapshot_written(extent)
    for table in saved.tables.values() if extent is Extent.ALL else ():
        table.clear()
    for name, contents in blocks:
        saved.restore(name, decode_state(contents))


def entries_of(keyed_state):
    return sorted(
        (name, repr(namespace), repr(key), repr(sorted(value.items()) if isinstance(value, Mapping) else value))
        for name, table in keyed_state.tables.items()
        for namespace, key, value in table.all_entries()
    )


@pytest.mark.parametrize("function", [*IN_A_LOOP, *CALLED], ids=lambda function: type(function).__name__)
@given(given_batches=batches, backend=st.sampled_from([HeapBackend(), UNTRACKED, DiskBackend()]))
@settings(max_examples=40)
def test_loop_gives_what_calls_give(function, given_batches, backend):
    found = run(function, given_batches, backend)
    in_columns = run(function, given_batches, backend, in_columns=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "keyed_loop", lambda *_: None)
        called = run(function, given_batches, backend)
    assert called[-1] == []
    assert found[:-1] == called[:-1]
    assert in_columns[:-1] == called[:-1]


@pytest.mark.parametrize("function", IN_A_LOOP, ids=lambda function: type(function).__name__)
def test_work_is_done_in_a_loop(function):
    harness = harness_of(function).element(("a", 1), at=1)
    assert loops_of(harness)


@pytest.mark.parametrize("function", CALLED, ids=lambda function: type(function).__name__)
def test_function_that_would_change_is_called(function):
    assert loops_of(harness_of(function).element(("a", 1), at=1)) == []


def test_state_is_a_local_variable_of_the_loop():
    (loop,) = loops_of(harness_of(Counts()).element(("a", 1), at=1))
    assert "penstock_entries0.get(penstock_key) if" in loop.text


def test_timers_that_set_no_others_fire_in_one_loop():
    harness = harness_of(Timers()).batch([(("a", 1), 0), (("b", 1), 0), (("a", 2), 0)]).watermark(100)
    assert harness.output == [("a", 10, 2), ("b", 10, 1), ("a", 20, None)]
    assert harness.metrics["numFiredTimers"] == 3
    assert any("on_timer" in loop.text for loop in loops_of(harness))


def test_timers_that_a_helper_sets_while_others_fire_fire_in_their_turn():
    """The loop over timers is made before the helper is there: it must not be believed for ever."""
    harness = harness_of(SetsTimersThroughAHelper()).watermark(0)
    harness.batch([(("a", 1), 0), (("b", 2), 0), (("a", 3), 0)]).watermark(10)
    expected = [("a", 1), ("b", 2), ("a", 2), ("b", 3), ("a", 3), ("b", 4), ("a", 4)]
    assert harness.output == [(key, time, [10]) for key, time in sorted(expected, key=lambda fired: fired[1])]
    assert harness.timers == [] and harness.metrics["numFiredTimers"] == len(expected)


def test_timers_of_a_batch_are_set_together_unless_some_may_be_deleted():
    for function, is_deferred in ((TimersThatAreSet(), True), (TimersThatAreDeleted(), False)):
        (loop,) = loops_of(harness_of(function).element(("a", 1), at=1))
        assert ("penstock_add_time(" in loop.text) is is_deferred


def test_debugger_sees_the_function_called():
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        harness = harness_of(Counts()).element(("a", 1), at=1)
    finally:
        sys.settrace(before)
    assert loops_of(harness) == []


@pytest.mark.parametrize("in_columns", [False, True])
def test_state_that_cannot_be_read_is_what_is_reported(in_columns, monkeypatch):
    harness = harness_of(Counts(), state_backend=DiskBackend())
    feed(harness, [("a", 1)], in_columns=in_columns)

    def no_disk(*_):
        raise LocalStateError("no disk")

    monkeypatch.setattr(CachedKeys, "open_keys", no_disk)
    with pytest.raises(LocalStateError, match="no disk"):
        feed(harness, [("b", 2)], in_columns=in_columns)


class Fails(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield (
            value[0],
            10 // value[1],
        )


def test_failure_shows_the_users_line_and_leaves_the_table_whole():
    harness = harness_of(Fails())
    with pytest.raises(ZeroDivisionError) as raised:
        harness.batch([(("a", 1), 1), (("b", 0), 2)])
    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert (last.filename, last.name, last.line) == (__file__, "process_element", "10 // value[1],")
    assert loops_of(harness) and harness.state_entries == 2


def test_failure_in_columns_is_reported_with_its_record():
    harness = harness_of(Fails())
    with pytest.raises(ZeroDivisionError) as raised:
        feed(harness, [("a", 1), ("b", 0), ("c", 1)], in_columns=True)
    told = describe_failure(raised.value, 0, "task", 0, 1)
    assert (told.record, told.operator) == ("('b', 0)", harness.context.operator_name)
    assert "process_element\n    10 // value[1]," in told.user_traceback
    assert "item1" in loops_of(harness)[0].text and harness.state_entries == 2


class Reassigns(KeyedProcessFunction):
    def process_element(self, value, ctx):
        value = value[1] + 1
        yield value


@pytest.mark.parametrize("function", [Fails(), Reassigns()], ids=["plain", "reassigning"])
def test_all_lines_of_a_loop_are_the_users(function):
    harness = harness_of(function)
    harness.element(("a", 1))
    (loop,) = loops_of(harness)
    lines = {line for _, _, line in loop._loop.__code__.co_lines() if line is not None}
    first = type(function).process_element.__code__.co_firstlineno
    assert first == loop._loop.__code__.co_firstlineno and min(lines) == first


class SetsTimers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] or None)


def test_failure_to_set_a_timer_shows_the_users_line_and_the_record():
    harness = harness_of(SetsTimers())
    with pytest.raises(InvalidProgramError, match="gave None of type NoneType, but a time is") as raised:
        harness.batch([(("a", 1), 1), (("b", 0), 2), (("c", 3), 3)])
    told = describe_failure(raised.value, 0, "task", 0, 1)
    assert told.record == "('b', 0)"
    assert "process_element\n    ctx.timer_service().register_event_time_timer(value[1] or None)" in told.user_traceback
    assert "penstock_add_time(" in loops_of(harness)[0].text


class EndsAnIterator(KeyedProcessFunction):
    def process_element(self, value, ctx):
        first = next(iter(range(value[1])))
        yield first


class PutsAList(KeyedProcessFunction):
    def open(self, runtime_context):
        self.by_number = runtime_context.get_map_state(MapStateDescriptor("by-number"))

    def process_element(self, value, ctx):
        self.by_number.put([1] if value[1] == 0 else 1, "value")


@pytest.mark.parametrize("is_called", [False, True])
@pytest.mark.parametrize(
    ("function", "line"),
    [
        (EndsAnIterator(), "first = next(iter(range(value[1])))"),
        (PutsAList(), 'self.by_number.put([1] if value[1] == 0 else 1, "value")'),
    ],
)
def test_failure_further_inside_is_that_of_the_functions_record_and_line(function, line, is_called, monkeypatch):
    if is_called:
        monkeypatch.setattr(process, "keyed_loop", lambda *_: None)
    harness = harness_of(function)

    def epoch():
        """A generator like that of a task, through which a StopIteration comes as a RuntimeError."""
        yield harness.batch([(("a", 1), 1), (("a", 0), 2)])

    with pytest.raises((RuntimeError, TypeError)) as raised:
        next(epoch())
    told = describe_failure(raised.value, 0, "task", 0, 1)
    assert (told.operator, told.record, told.is_user_error) == (harness.context.operator_name, "('a', 0)", True)
    assert f"process_element\n    {line}" in told.user_traceback
    assert bool(loops_of(harness)) is not is_called


class Joins(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.left = runtime_context.get_state(ValueStateDescriptor("left"))

    def process_element1(self, value, ctx):
        self.left.update(value[1])

    def process_element2(self, value, ctx):
        yield self.left.value(), value[1]


def test_both_inputs_of_a_connected_stream_share_state():
    def connected(stream):
        keyed = stream.key_by(lambda value: value[0])
        return keyed.connect(stream.key_by(lambda value: value[0])).process(Joins())

    harness = OperatorHarness.of(connected)
    harness.element(("a", 1), input=0).element(("a", 2), input=1).element(("b", 3), input=1)
    assert harness.output == [(1, 2), (None, 3)]
    assert len(loops_of(harness)) == 2


# --- broadcast state -------------------------------------------------------------------------------------------------

RULES = MapStateDescriptor("rules")


class Judges(KeyedBroadcastProcessFunction):
    """Looks rules up in all the ways that there are."""

    def open(self, runtime_context):
        self.rules = MapStateDescriptor("rules")
        self.early = runtime_context.get_list_state(ListStateDescriptor("early"))
        self.above = runtime_context.get_state(ValueStateDescriptor("above"))

    def process_element(self, value, ctx):
        limit = ctx.get_broadcast_state(self.rules).get(value[1])
        if limit is None:
            self.early.add(value)
            ctx.timer_service().register_event_time_timer(value[2])
        elif value[2] > limit:
            yield self.counted(value)
        elif ctx.get_broadcast_state(RULES).contains(value[2]):
            yield ctx.get_current_key(), ctx.timestamp()

    def process_broadcast_element(self, value, ctx):
        if value[1] == 0:
            ctx.get_broadcast_state(self.rules).remove(value[0])
        else:
            ctx.get_broadcast_state(RULES).put(value[0], value[1])

    def on_timer(self, timestamp, ctx):
        rules = ctx.get_broadcast_state(self.rules)
        waiting = list(self.early.get() or [])
        self.early.clear()
        for element in waiting:
            if element[2] > (rules.get(element[1]) or 0):
                yield self.counted(element)

    def counted(self, element):
        above = (self.above.value() or 0) + 1
        self.above.update(above)
        return element[0], above


class ChangesItsRules(Judges):
    """Asks for another state after some elements."""

    def process_element(self, value, ctx):
        if ctx.get_broadcast_state(self.rules).contains(value[1]):
            yield value
        if value[1] == 3:
            self.rules = MapStateDescriptor("others")


class ReadsOnly(Judges):
    """Takes its elements apart, and keeps a state of its own."""

    def process_element(self, value, ctx):
        name, number, amount = value
        above = self.above.value() or 0
        if ctx.get_broadcast_state(RULES).get(number) == amount:
            self.above.update(above + 1)
            yield name, above


def broadcast_harness(function, **where):
    def build(stream):
        keyed = stream.key_by(lambda value: value[0])
        return keyed.connect(stream.broadcast(RULES, MapStateDescriptor("others"))).process(function)

    return OperatorHarness.of(build, **where)


rules = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=3)
judged = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.integers(0, 5)), max_size=5)


@pytest.mark.parametrize("function", [Judges, ChangesItsRules, ReadsOnly])
@given(steps=st.lists(st.tuples(rules, judged), max_size=5), backend=st.sampled_from([HeapBackend(), DiskBackend()]))
@settings(max_examples=40)
def test_rules_are_looked_up_as_by_calls(function, steps, backend):
    def run(in_columns):
        harness = broadcast_harness(function(), state_backend=backend)
        seen = []
        for at, (new_rules, elements) in enumerate(steps):
            feed(harness, new_rules, input_index=1)
            feed(harness, elements, list(range(at, at + len(elements))), in_columns)
            harness.watermark(at)
            seen.append((harness.state_entries, harness.timers))
        return harness.recorded.events, seen, loops_of(harness)

    found = [run(in_columns=False), run(in_columns=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "keyed_loop", lambda *_: None)
        called = run(in_columns=False)
    assert called[-1] == []
    assert [each[:-1] for each in found] == [called[:-1]] * 2


def test_rules_are_a_local_variable_of_the_loop():
    harness = broadcast_harness(Judges())
    feed(harness, [(1, 4)], input_index=1)
    feed(harness, [("a", 1, 5), ("a", 1, 2)], in_columns=True)
    loop = loops_of(harness)[-1]
    assert harness.output == [("a", 1)]
    assert "(penstock_rules0 if penstock_holder.rules is penstock_descriptor0 else" in loop.text


def test_rules_cannot_be_changed_by_elements_in_a_loop():
    class Changes(Judges):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(RULES).put(value[1], value[2])

    with pytest.raises(StateAccessError, match="broadcast state 'rules' can only be read here"):
        broadcast_harness(Changes()).element(("a", 1, 5))


def test_loops_are_made_in_many_threads_at_the_same_time():
    """Python 3.11 fails with a SystemError if two threads make syntax trees at once."""

    def made(_):
        return len(loops_of(harness_of(Counts()).element(("a", 1), at=1)))

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(made, range(200))) == {1}


class TwoStates(KeyedProcessFunction):
    """One state changes with every element, the other one once."""

    def open(self, runtime_context):
        self.latest = runtime_context.get_state(ValueStateDescriptor("latest"))
        self.first = runtime_context.get_state(ValueStateDescriptor("first"))

    def process_element(self, value, ctx):
        self.latest.update(value)
        if self.first.value() is None:
            self.first.update(value)


def test_loop_notes_what_it_writes_only_for_tables_that_want_it():
    harness = harness_of(TwoStates())
    keyed_state = harness.context.keyed_state
    feed(harness, [(key, 0) for key in range(50)])
    keyed_state.snapshot_written(Extent.ALL)
    for number in range(3):
        feed(harness, [(key, number) for key in range(50)])
    assert keyed_state.tables["latest"].is_all_changed() and not keyed_state.tables["latest"].changed.get(
        VOID_NAMESPACE
    )
    assert not keyed_state.tables["first"].changed
    (loop,) = loops_of(harness)
    assert sorted(loop._variants) == [(True, False), (True, True)]
    feed(harness, [(99, 1)])
    assert keyed_state.tables["first"].changed == {VOID_NAMESPACE: {99: False}}


T = TypeVar("T")
_lock = threading.Lock()


class NamesObjectsWithoutAttributes(Counts):
    """Of some objects nobody can see what they hold."""

    def process_element(self, value, ctx):
        known = T, _lock
        self.count.update((self.count.value() or 0) + len(known))
        yield value[0], self.count.value()


def test_names_of_objects_without_attributes_are_no_hindrance():
    harness = harness_of(NamesObjectsWithoutAttributes())
    feed(harness, [("a", 1), ("a", 2)])
    assert harness.output == [("a", 2), ("a", 4)]
    assert loops_of(harness)
