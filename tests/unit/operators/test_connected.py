"""Functions on two connected streams."""

from __future__ import annotations

import pytest

from penstock.common.exceptions import InvalidProgramError, StateAccessError
from penstock.common.typeinfo import Types
from penstock.datastream.functions import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.time_domain import TimeDomain
from penstock.testing import OperatorHarness

LEFT, RIGHT = OutputTag("left", Types.INT()), OutputTag("right", Types.INT())


def first(element):
    return element[0]


def harness(build, restored=None):
    return OperatorHarness.of(lambda stream: build(stream.connect(stream.map(str))), restored)


def keyed_harness(build, restored=None):
    return OperatorHarness.of(lambda stream: build(stream.key_by(first).connect(stream.key_by(first))), restored)


class Sides(CoMapFunction):
    def map1(self, value):
        return None if value == 0 else ("left", value)

    def map2(self, value):
        return "right", value


class Parts(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from value.split()

    def flat_map2(self, value):
        return None if value == "" else [value]


class LastOfOther(KeyedCoProcessFunction):
    """Pairs each element of the second stream with the last of the first; forgets it after 10."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))

    def process_element1(self, value, ctx):
        self.last.update(value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def process_element2(self, value, ctx):
        yield ctx.get_current_key(), self.last.value(), value[1]

    def on_timer(self, timestamp, ctx):
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        yield ctx.get_current_key(), "forgot", self.last.value()
        self.last.clear()


def test_co_map_calls_the_method_of_the_input():
    h = harness(lambda both: both.map(Sides()))
    h.element(1, at=5).element(2, at=6, input=1).element(3)
    assert h.output_with_timestamps == [(("left", 1), 5), (("right", 2), 6), (("left", 3), None)]


def test_co_map_drops_none():
    h = harness(lambda both: both.map(Sides())).batch([(0, 1), (1, 2), (0, 3)])
    assert h.output_with_timestamps == [(("left", 1), 2)]


def test_co_flat_map_calls_the_method_of_the_input():
    h = harness(lambda both: both.flat_map(Parts()))
    h.element("a b", at=5).element("a b", at=6, input=1).element("", at=7, input=1)
    assert h.output_with_timestamps == [("a", 5), ("b", 5), ("a b", 6)]


def test_co_process_has_side_outputs_and_time():
    class Tagged(CoProcessFunction):
        def process_element1(self, value, ctx):
            yield LEFT, value
            yield ctx.timestamp(), ctx.timer_service().current_watermark()

        def process_element2(self, value, ctx):
            ctx.output(RIGHT, value)

    h = harness(lambda both: both.process(Tagged())).watermark(3).element(1, at=5).element(2, at=6, input=1)
    assert h.output == [(5, 3)]
    assert h.recorded.side == {"left": [(1, 5)], "right": [(2, 6)]}


def test_timers_need_keys():
    class Timed(CoProcessFunction):
        def process_element1(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

        def process_element2(self, value, ctx):
            return None

    with pytest.raises(StateAccessError, match=r"operator 'harness': a timer at 1 .* call key_by"):
        harness(lambda both: both.process(Timed())).element(1)


def test_both_inputs_share_state_and_timers_of_a_key():
    h = keyed_harness(lambda both: both.process(LastOfOther()))
    h.element(("a", "x"), at=1).element(("b", "y"), at=2)
    h.element(("a", "1"), at=3, input=1).element(("b", "2"), at=4, input=1).element(("c", "3"), at=5, input=1)
    assert h.output == [("a", "x", "1"), ("b", "y", "2"), ("c", None, "3")]
    h.watermark(11)
    assert h.output[3:] == [("a", "forgot", "x")]
    assert h.element(("a", "4"), at=12, input=1).output[4:] == [("a", None, "4")]


def test_connected_state_continues_after_a_restore():
    before = keyed_harness(lambda both: both.process(LastOfOther())).element(("a", "x"), at=1)
    after = keyed_harness(lambda both: both.process(LastOfOther()), before.snapshot())
    after.element(("a", "1"), at=3, input=1).watermark(11)
    assert after.output == [("a", "x", "1"), ("a", "forgot", "x")]
    assert after.timers == [] and after.state_entries == 0


def test_keyed_co_map_has_state():
    class Seen(CoMapFunction):
        def open(self, runtime_context):
            self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.STRING()))

        def map1(self, value):
            self.last.update(value[1])

        def map2(self, value):
            return self.last.value() or "nothing"

    h = keyed_harness(lambda both: both.map(Seen()))
    h.element(("a", "x")).element(("a",), input=1).element(("b",), input=1)
    assert h.output == ["x", "nothing"]


def test_keyed_function_needs_keys():
    with pytest.raises(InvalidProgramError, match="a KeyedCoProcessFunction needs keys: call key_by on both streams"):
        harness(lambda both: both.process(LastOfOther()))


def test_one_keyed_stream_is_not_enough():
    with pytest.raises(InvalidProgramError, match="one of the two streams is keyed and the other is not"):
        OperatorHarness.of(lambda stream: stream.key_by(first).connect(stream).map(Sides()))


def test_job_with_connected_keyed_streams(env):
    class Both(KeyedCoProcessFunction):
        """Emits a key once both sides have been seen, whichever comes first."""

        def open(self, runtime_context):
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.STRING()))

        def process_element1(self, value, ctx):
            return self.see("left", ctx)

        def process_element2(self, value, ctx):
            return self.see("right", ctx)

        def see(self, side, ctx):
            if self.seen.value() not in (None, side):
                yield ctx.get_current_key()
            self.seen.update(side)

    left, right = env.from_collection(["a1", "b1", "c1"]), env.from_collection(["c2", "a2", "d2"])
    both = left.connect(right).key_by(first, first).process(Both()).set_parallelism(2)
    assert sorted(both.execute_and_collect()) == ["a", "c"]


def test_job_with_connected_streams(env):
    sides = env.from_collection([1, 0]).connect(env.from_collection(["x"])).map(Sides())
    assert sorted(sides.execute_and_collect(), key=str) == [("left", 1), ("right", "x")]
