"""process on keyed streams: state by key, timers, on_timer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import ListStateDescriptor, ValueStateDescriptor
from penstock.datastream.time_domain import TimeDomain
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import OperatorHarness

FIRED = OutputTag("fired", Types.STRING())


def first(element):
    return element[0]


def harness(function, restored=None, **where):
    return OperatorHarness.of(lambda stream: stream.key_by(first).process(function), restored, **where)


class Count(KeyedProcessFunction):
    """(key, how many so far)"""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


class Alarm(KeyedProcessFunction):
    """Elements (key, command, domain, time): set or delete a timer; emits what fires."""

    def process_element(self, value, ctx):
        _, command, domain, time = value
        getattr(ctx.timer_service(), f"{command}_{domain}_time_timer")(time)

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.timestamp(), ctx.get_current_key(), ctx.time_domain()
        ctx.output(FIRED, ctx.get_current_key())


def test_state_is_isolated_by_key():
    h = harness(Count()).feed([(("a",), 1), (("b",), 2), (("a",), 3)])
    assert h.output_with_timestamps == [(("a", 1), 1), (("b", 1), 2), (("a", 2), 3)]
    assert h.state_entries == 2


def test_keys_differ_within_a_batch():
    h = harness(Count()).batch([(("a",), 1), (("b",), 2), (("a",), 3)])
    assert h.output == [("a", 1), ("b", 1), ("a", 2)]


def test_timers_fire_in_order_with_their_key_and_timestamp():
    h = harness(Alarm())
    h.feed([(("a", "register", "event", 20), 1), (("b", "register", "event", 10), 2)])
    h.watermark(9)
    assert h.output == []
    h.watermark(25)
    assert h.output_with_timestamps == [
        ((10, 10, "b", TimeDomain.EVENT_TIME), 10),
        ((20, 20, "a", TimeDomain.EVENT_TIME), 20),
    ]
    assert h.recorded.side["fired"] == [("b", 10), ("a", 20)]
    assert h.recorded.events[-1] == ("watermark", None, 25)
    assert h.timers == []


def test_processing_time_timers_follow_the_clock():
    h = harness(Alarm()).element(("a", "register", "processing", 100), at=1)
    h.watermark(500).processing_time(99)
    assert h.output == []
    assert h.operator.next_processing_time() == 100
    h.processing_time(100)
    assert h.output_with_timestamps == [((100, 100, "a", TimeDomain.PROCESSING_TIME), 100)]
    assert h.operator.next_processing_time() is None


def test_same_timer_of_a_key_fires_once():
    h = harness(Alarm())
    for key in "aab":
        h.element((key, "register", "event", 10))
    h.element(("a", "register", "processing", 10))
    h.watermark(10)
    assert sorted(h.side_output(FIRED)) == ["a", "b"]
    h.processing_time(10)
    assert sorted(h.side_output(FIRED)) == ["a", "a", "b"]


def test_deleted_timer_does_not_fire():
    h = harness(Alarm())
    for key in "ab":
        h.element((key, "register", "event", 10)).element((key, "register", "processing", 10))
    h.element(("a", "delete", "event", 10)).element(("b", "delete", "processing", 10))
    h.element(("a", "delete", "event", 11))  # There is none: nothing happens.
    h.watermark(10).processing_time(10)
    assert [(key, domain) for _, _, key, domain in h.output] == [
        ("b", TimeDomain.EVENT_TIME),
        ("a", TimeDomain.PROCESSING_TIME),
    ]


def test_timer_may_set_timers_that_are_due_already():
    class Chain(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

        def on_timer(self, timestamp, ctx):
            yield timestamp
            if timestamp < 3:
                ctx.timer_service().register_event_time_timer(timestamp + 1)

    assert harness(Chain()).element(("a",)).watermark(5).output == [1, 2, 3]


def test_timers_have_the_state_of_their_key():
    class Collect(KeyedProcessFunction):
        def open(self, runtime_context):
            self.texts = runtime_context.get_list_state(ListStateDescriptor("texts", Types.STRING()))

        def process_element(self, value, ctx):
            self.texts.add(value[1])
            ctx.timer_service().register_event_time_timer(10)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), list(self.texts.get())
            self.texts.clear()

    h = harness(Collect()).feed([(("a", "x"), 1), (("b", "y"), 2), (("a", "z"), 3)]).watermark(10)
    assert sorted(h.output) == [("a", ["x", "z"]), ("b", ["y"])]
    assert h.state_entries == 0


def test_plain_process_function_has_state_and_timers_behind_key_by():
    class Plain(ProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(10)
            yield value[0], self.count.value()

    h = harness(Plain()).element(("a",)).element(("a",))
    assert h.output == [("a", 1), ("a", 2)]
    assert len(h.timers) == 1
    assert h.watermark(10).output == [("a", 1), ("a", 2)]  # It has no on_timer.


def test_plain_process_function_may_have_on_timer():
    class Timed(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(10)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp

    assert harness(Timed()).element(("a",)).watermark(10).output == [("a", 10)]


def test_state_written_in_open_belongs_to_no_key_and_is_gone():
    class Early(KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
            self.count.update(100)
            self.in_open = self.count.value()

        def process_element(self, value, ctx):
            yield self.in_open, self.count.value()

    opened = harness(Early())
    assert opened.state_entries == 0
    assert opened.element(("a",)).output == [(100, None)]


class Session(KeyedProcessFunction):
    """Sums until a key was silent for 10."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.INT()))
        self.end = runtime_context.get_state(ValueStateDescriptor("end", Types.LONG()))

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        if self.end.value() is not None:
            ctx.timer_service().delete_event_time_timer(self.end.value())
        self.end.update(ctx.timestamp() + 10)
        ctx.timer_service().register_event_time_timer(self.end.value())

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.sum.value(), timestamp
        self.sum.clear()
        self.end.clear()


steps = st.lists(
    st.one_of(
        st.tuples(st.just("element"), st.tuples(st.sampled_from("abc"), st.integers(0, 9)), st.integers(0, 60)),
        st.tuples(st.just("watermark"), st.none(), st.integers(0, 80)),
    ),
    max_size=25,
)


def run(h, some_steps):
    for kind, value, time in some_steps:
        if kind == "element":
            h.element(value, at=time)
        elif time > h.current_watermark:
            h.watermark(time)
    return h


@pytest.mark.parametrize("backend", [HeapBackend(), DiskBackend(cache_entries=2)])
@given(steps, st.integers(0, 25))
def test_restoring_at_any_point_changes_nothing(backend, all_steps, cut):
    all_steps = [*sorted(all_steps, key=lambda step: step[2]), ("watermark", None, 1000)]
    whole = run(harness(Session()), all_steps)
    before = run(harness(Session(), state_backend=backend), all_steps[:cut])
    after = run(harness(Session(), before.snapshot(), state_backend=backend), all_steps[cut:])
    assert sorted(before.output + after.output) == sorted(whole.output)
    assert after.timers == [] and after.state_entries == 0
    before.close()
    after.close()


def test_watermark_is_known_after_a_restore():
    class Late(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timer_service().current_watermark()

    before = harness(Late()).watermark(30)
    assert harness(Late(), restored=before.snapshot()).element(("a",)).output == [30]


class SecondIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def test_job_with_timers_and_state_in_several_subtasks(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())
    elements = [(key, time) for time in range(0, 40, 10) for key in "abcdefgh"]
    sums = (
        env.from_collection(elements)
        .assign_timestamps_and_watermarks(strategy)
        .key_by(first)
        .process(Session())
        .set_parallelism(3)
    )
    assert sorted(sums.execute_and_collect()) == [(key, 60, 40) for key in "abcdefgh"]
