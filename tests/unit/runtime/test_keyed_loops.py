"""A loop that does the work of a process function gives what calling the function gives."""

from __future__ import annotations

import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.process_functions import CALLED, IN_A_LOOP, Counts, Timers

from penstock.datastream import KeyedCoProcessFunction, KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.operators import process
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.table import Extent
from penstock.testing import OperatorHarness


def harness_of(function, **where):
    return OperatorHarness.of(lambda stream: stream.key_by(lambda value: value[0]).process(function), **where)


def loops_of(harness):
    return [loop for loop in harness.operator._loops.values() if loop is not None]


UNTRACKED = HeapBackend(tracks_changes=False)
values = st.tuples(st.sampled_from("ab"), st.integers(0, 8))
batches = st.lists(st.tuples(st.lists(values, max_size=6), st.booleans(), st.integers(0, 100)), max_size=6)


def run(function, given_batches, state_backend):
    """All that can be seen from outside."""
    harness = harness_of(function, state_backend=state_backend)
    extent = Extent.ALL if state_backend == UNTRACKED else Extent.CHANGES
    deltas = []
    time = 0
    for elements, with_timestamps, step in given_batches:
        if with_timestamps:
            harness.batch([(value, time + at) for at, value in enumerate(elements)])
        else:
            harness.operator.process_batch(process.Batch(list(elements)))
        time += step
        harness.watermark(time).processing_time(time)
        deltas.append((delta_of(harness, extent), harness.state_entries, harness.timers))
    return harness.recorded.events, harness.recorded.side, deltas, harness.metrics, loops_of(harness)


def delta_of(harness, extent):
    """What a checkpoint would hold now."""
    keyed_state = harness.context.keyed_state
    blocks = [(name, encode_state(contents)) for name, contents in keyed_state.snapshot(extent)]
    keyed_state.snapshot_written(extent)
    return [(name, sorted_entries(decode_state(contents))) for name, contents in blocks]


def sorted_entries(contents):
    return sorted((repr(namespace), repr(sorted(keys.items(), key=repr))) for namespace, keys in contents.items())


@pytest.mark.parametrize("function", [*IN_A_LOOP, *CALLED], ids=lambda function: type(function).__name__)
@given(given_batches=batches, backend=st.sampled_from([HeapBackend(), UNTRACKED, DiskBackend()]))
@settings(max_examples=40)
def test_loop_gives_what_calls_give(function, given_batches, backend):
    found = run(function, given_batches, backend)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "keyed_loop", lambda *_: None)
        called = run(function, given_batches, backend)
    assert called[-1] == []
    assert found[:-1] == called[:-1]


@pytest.mark.parametrize("function", IN_A_LOOP, ids=lambda function: type(function).__name__)
def test_work_is_done_in_a_loop(function):
    harness = harness_of(function).element(("a", 1), at=1)
    assert loops_of(harness)


@pytest.mark.parametrize("function", CALLED, ids=lambda function: type(function).__name__)
def test_function_that_would_change_is_called(function):
    assert loops_of(harness_of(function).element(("a", 1), at=1)) == []


def test_state_is_a_local_variable_of_the_loop():
    (loop,) = loops_of(harness_of(Counts()).element(("a", 1), at=1))
    assert "self" not in loop.text and ".get(penstock_key)" in loop.text


def test_timers_that_set_no_others_fire_in_one_loop():
    harness = harness_of(Timers()).batch([(("a", 1), 0), (("b", 1), 0), (("a", 2), 0)]).watermark(100)
    assert harness.output == [("a", 10, 2), ("b", 10, 1), ("a", 20, None)]
    assert harness.metrics["numFiredTimers"] == 3
    assert any("on_timer" in loop.text for loop in loops_of(harness))


def test_debugger_sees_the_function_called():
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        harness = harness_of(Counts()).element(("a", 1), at=1)
    finally:
        sys.settrace(before)
    assert loops_of(harness) == []


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


def test_loops_are_made_in_many_threads_at_the_same_time():
    """Python 3.11 fails with a SystemError if two threads make syntax trees at once."""

    def made(_):
        return len(loops_of(harness_of(Counts()).element(("a", 1), at=1)))

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(made, range(200))) == {1}
