"""join and co_group of two streams in windows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import InvalidProgramError
from penstock.common.time import Time
from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    KeySelector,
    RichJoinFunction,
)
from penstock.datastream.streams.joined_streams import TaggedElement
from penstock.datastream.window import CountEvictor, CountTrigger, EventTimeSessionWindows, TumblingEventTimeWindows
from penstock.testing import OperatorHarness

TEN = TumblingEventTimeWindows.of(Time.milliseconds(10))


def first(element):
    return element[0]


class Pair(JoinFunction):
    def join(self, first, second):
        return first, second


class Expand(FlatJoinFunction):
    """Nothing for x, the pair twice otherwise."""

    def join(self, first, second):
        return None if first[1] == "x" else [(first, second)] * 2


class Groups(CoGroupFunction):
    def co_group(self, first, second):
        yield list(first), list(second)


def harness(kind, function, restored=None, assigner=TEN, change=lambda windows: windows):
    def build(stream):
        windows = getattr(stream, kind)(stream.map(str)).where(first).equal_to(first).window(assigner)
        return change(windows).apply(function)

    return OperatorHarness.of(build, restored)


def left(value):
    return TaggedElement(False, value)


def right(value):
    return TaggedElement(True, value)


ELEMENTS = [(left("a1"), 1), (right("a2"), 2), (right("b3"), 3), (left("a4"), 4), (right("a15"), 15)]


def test_join_gives_every_pair_of_a_key_and_window():
    h = harness("join", Pair()).feed(ELEMENTS).watermark(30)
    assert h.output_with_timestamps == [(("a1", "a2"), 9), (("a4", "a2"), 9)]


def test_join_takes_a_plain_function():
    assert harness("join", lambda a, b: a + b).feed(ELEMENTS).watermark(30).output == ["a1a2", "a4a2"]


def test_flat_join_gives_any_number_of_results():
    h = harness("join", Expand()).feed([(left("ax"), 1), (left("ay"), 2), (right("a2"), 3)]).watermark(30)
    assert h.output == [("ay", "a2"), ("ay", "a2")]


def test_co_group_gives_both_sides_also_when_one_is_empty():
    h = harness("co_group", Groups()).feed(ELEMENTS).watermark(30)
    assert h.output == [(["a1", "a4"], ["a2"]), ([], ["b3"]), ([], ["a15"])]


def test_co_group_takes_a_plain_function():
    h = harness("co_group", lambda a, b: [len(a), len(b)]).feed(ELEMENTS[:2]).watermark(30)
    assert h.output == [1, 1]


def test_trigger_evictor_and_lateness_are_those_of_the_window():
    h = harness("co_group", Groups(), change=lambda windows: windows.trigger(CountTrigger.of(2)))
    assert h.feed(ELEMENTS[:2]).output == [(["a1"], ["a2"])]
    h = harness("co_group", Groups(), change=lambda windows: windows.evictor(CountEvictor.of(1)))
    assert h.feed(ELEMENTS[:2]).watermark(30).output == [([], ["a2"])]
    h = harness("join", Pair(), change=lambda windows: windows.allowed_lateness(Time.milliseconds(100)))
    assert h.feed(ELEMENTS[:2]).watermark(30).element(left("a5"), at=5).output[1:] == [("a1", "a2"), ("a5", "a2")]


def test_sessions_join_elements_of_both_sides():
    h = harness("join", Pair(), assigner=EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    h.feed([(left("a1"), 1), (right("a2"), 8), (left("a3"), 5)]).watermark(30)
    assert sorted(h.output) == [("a1", "a2"), ("a3", "a2")]


def test_function_is_opened_with_a_runtime_context():
    class Opened(RichJoinFunction):
        def open(self, runtime_context):
            self.subtask = self.get_runtime_context().get_index_of_this_subtask()

        def join(self, first, second):
            return self.subtask

    assert harness("join", Opened()).feed(ELEMENTS[:2]).watermark(30).output == [0]


sides = st.lists(
    st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(0, 40)).map(
        lambda found: (TaggedElement(found[0], (found[1], found[2])), found[2])
    ),
    max_size=25,
)


@given(sides, st.integers(0, 25))
def test_restoring_at_any_point_changes_nothing(elements, cut):
    before = harness("join", Pair()).feed(elements[:cut])
    after = harness("join", Pair(), before.snapshot()).feed(elements[cut:]).watermark(100)
    lefts = [element.value for element, _ in elements if element.is_one()]
    rights = [element.value for element, _ in elements if element.is_two()]
    expected = [(a, b) for a in lefts for b in rights if a[0] == b[0] and a[1] // 10 == b[1] // 10]
    assert sorted(before.output + after.output) == sorted(expected)
    assert after.timers == [] and after.state_entries == 0


def test_misuse_is_refused_when_the_job_is_built(env):
    stream = env.from_collection(["a"])
    with pytest.raises(InvalidProgramError, match=r"window: call equal_to\(\.\.\.\) after where"):
        stream.join(stream).where(first).window(TEN)
    with pytest.raises(InvalidProgramError, match="both streams need keys of the same type"):
        stream.join(stream).where(first, Types.STRING()).equal_to(first, Types.INT())
    windows = stream.join(stream).where(first).equal_to(first).window(TEN)
    with pytest.raises(TypeError, match="apply needs a function or a JoinFunction or FlatJoinFunction, got"):
        windows.apply(Groups())
    with pytest.raises(TypeError, match=r"apply needs an instance, got the class Pair; write Pair\(\)"):
        windows.apply(Pair)
    with pytest.raises(TypeError, match="window needs a WindowAssigner, got int"):
        stream.co_group(stream).where(first).equal_to(first).window(10)


class SecondIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class FirstIsKey(KeySelector):
    def get_key(self, value):
        return value[0]


def timed(env, values):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())
    return env.from_collection(values).assign_timestamps_and_watermarks(strategy)


def test_job_with_a_join(env):
    env.set_parallelism(2)
    orders = timed(env, [("a", 1, "pen"), ("b", 2, "ink"), ("a", 12, "cap")])
    payments = timed(env, [("b", 3, 20), ("a", 4, 10), ("a", 25, 30)])
    paid = orders.join(payments).where(FirstIsKey()).equal_to(0).window(TEN).apply(lambda o, p: (o[2], p[2]))
    assert sorted(paid.execute_and_collect()) == [("ink", 20), ("pen", 10)]


def test_job_with_a_co_group(env):
    env.set_parallelism(2)
    a, b = timed(env, [("a", 1), ("b", 2), ("a", 3)]), timed(env, [("a", 4), ("c", 5)])
    counts = a.co_group(b).where(first).equal_to(first).window(TEN).apply(lambda x, y: [(len(x), len(y))])
    assert sorted(counts.execute_and_collect()) == [(0, 1), (1, 0), (2, 1)]
