"""Every kind of operator in tasks that are kept between epochs, and in tasks that are restored before each one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.common import Duration, Time
from penstock.common.typeinfo import Types
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream.async_data_stream import AsyncDataStream
from penstock.datastream.functions import (
    AsyncFunction,
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessFunction,
    ProcessJoinFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

BIG = OutputTag("big", Types.PICKLED_BYTE_ARRAY())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class SecondIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


def first(element):
    return element[0]


def timed(stream):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondIsTime()))


class Timers(KeyedProcessFunction):
    """Counts by key; emits the count ten event-time and 1500 processing-time milliseconds later."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        self.count.update((self.count.value() or 0) + 1)
        timers.register_event_time_timer(ctx.timestamp() + 10)
        timers.register_processing_time_timer(timers.current_processing_time() // 1000 * 1000 + 1500)
        yield ctx.get_current_key(), self.count.value(), timers.current_watermark()
        if value[1] > 30:
            yield BIG, ("big", value)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.count.value(), ctx.time_domain().name, timestamp


class CountMap(MapFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()


class Connected(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))

    def process_element1(self, value, ctx):
        self.counts["first"] = (self.counts.get("first") or 0) + 1

    def process_element2(self, value, ctx):
        self.counts["second"] = (self.counts.get("second") or 0) + 1
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), sorted(self.counts.items())


class Broadcast(KeyedBroadcastProcessFunction):
    """Rules are the latest times of keys; each timer emits all of them."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 3)

    def process_broadcast_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        rules.put(value[0], max(value[1], rules.get(value[0]) or 0))

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, sorted(ctx.get_broadcast_state(RULES).items())


class Near(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right, ctx.get_timestamp()


class Lookup(AsyncFunction):
    async def async_invoke(self, value):
        return [(value, "found")]


class Total(MapFunction, CheckpointedFunction):
    def initialize_state(self, context):
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("total", Types.INT()))
        self.total = sum(self.state.get())

    def snapshot_state(self, context):
        self.state.update([self.total])

    def map(self, value):
        self.total += value[1]
        return self.total


class Seen(ProcessFunction, ListCheckpointed):
    def __init__(self):
        self.seen = []

    def process_element(self, value, ctx):
        self.seen.append(value)
        yield len(self.seen)

    def snapshot_state(self, checkpoint_id, timestamp):
        return self.seen

    def restore_state(self, state):
        self.seen = state


def with_side_output(stream):
    main = timed(stream).key_by(first).process(Timers())
    return main.union(main.get_side_output(BIG))


def connected(stream):
    both = timed(stream)
    return both.connect(both.filter(lambda r: r[1] % 2 == 0)).key_by(first, first).process(Connected())


def near(stream):
    both = timed(stream)
    return both.key_by(first).interval_join(both.map(lambda r: r).key_by(first)).between(-3, 7).process(Near())


def joined(stream):
    both = timed(stream)
    windows = both.join(both.filter(lambda r: r[1] % 2 == 0)).where(first).equal_to(first)
    return windows.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).apply(lambda a, b: (a, b))


JOBS = {
    "timers and side outputs": with_side_output,
    "keyed map": lambda s: s.key_by(first).map(CountMap()),
    "connected": connected,
    "broadcast": lambda s: timed(s).key_by(first).connect(timed(s).broadcast(RULES)).process(Broadcast()),
    "interval join": near,
    "window join": joined,
    "asynchronous": lambda s: AsyncDataStream.unordered_wait(s, Lookup(), Time.hours(1), 2),
    "checkpointed functions": lambda s: s.map(Total()).map(lambda total: (total, total)).map(Total()),
    "list checkpointed function": lambda s: s.rebalance().process(Seen()),
}

elements = st.tuples(st.sampled_from("abcd"), st.integers(0, 40))
epochs = st.lists(st.lists(elements, max_size=6), min_size=1, max_size=6)


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(parts=epochs, parallelism=st.integers(1, 3))
def test_restoring_tasks_before_every_epoch_changes_nothing(run_epochs, name, parts, parallelism):
    kept = run_epochs(JOBS[name], parts, parallelism, rebuilds=False)
    assert run_epochs(JOBS[name], parts, parallelism, rebuilds=True) == kept


def test_function_learns_whether_and_from_what_it_was_restored(run_epochs):
    class Tells(MapFunction, CheckpointedFunction):
        def initialize_state(self, context):
            self.told = context.is_restored(), context.get_restored_checkpoint_id()

        def snapshot_state(self, context):
            """There is no state."""

        def map(self, value):
            return self.told

    parts = [["a"], ["b"], ["c"]]
    assert run_epochs(lambda s: s.map(Tells()), parts, 1, rebuilds=True)[:3] == [
        ["(False, None)"],
        ["(True, 1)"],
        ["(True, 2)"],
    ]
    assert run_epochs(lambda s: s.map(Tells()), parts, 1, rebuilds=False)[:3] == [["(False, None)"]] * 3
