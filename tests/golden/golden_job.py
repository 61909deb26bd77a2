"""A job with every kind of state. Savepoints of it are kept for good, so it must not change: add another one instead.

Its numbers are their own event time; what it writes does not depend on parallelism, or on the order in which subtasks
read. Only lines that come after the restore count.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from penstock.common import Row, Time, Types, WatermarkStrategy
from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    BroadcastProcessFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    TimeDomain,
)
from penstock.datastream.functions import AggregateFunction, CheckpointedFunction, ReduceFunction, SinkFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

LAST = 119
RULES = MapStateDescriptor("rules", Types.INT(), Types.STRING())
A_CENTURY = Time.days(36_500)
A_MOMENT = Time.milliseconds(500)
TIMER_DELAY_MS = 1500


@dataclass(frozen=True)
class Reading:
    """A class of the program's own, in state."""

    number: int
    at: datetime
    price: Decimal


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


class Largest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2)


class Mean(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return (accumulator[0] + value, accumulator[1] + 1)

    def merge(self, acc_a, acc_b):
        return (acc_a[0] + acc_b[0], acc_a[1] + acc_b[1])

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1] if accumulator[1] else None


class AllKinds(KeyedProcessFunction):
    """Keeps keyed state of every kind, and shows all of it at the end of time; once more at a timer of the clock."""

    def open(self, runtime_context):
        long_lived = ValueStateDescriptor("long-lived", Types.INT())
        long_lived.enable_time_to_live(StateTtlConfig.new_builder(A_CENTURY).build())
        short_lived = ValueStateDescriptor("short-lived", Types.INT())
        short_lived.enable_time_to_live(StateTtlConfig.new_builder(A_MOMENT).build())
        ttl_map = MapStateDescriptor("ttl-map", Types.INT(), Types.INT())
        ttl_map.enable_time_to_live(StateTtlConfig.new_builder(A_CENTURY).build())
        self._value = runtime_context.get_state(ValueStateDescriptor("value"))
        self._row = runtime_context.get_state(ValueStateDescriptor("row", Types.ROW([Types.INT(), Types.STRING()])))
        self._list = runtime_context.get_list_state(ListStateDescriptor("list", Types.INT()))
        self._map = runtime_context.get_map_state(MapStateDescriptor("map", Types.INT(), Types.INT()))
        self._largest = runtime_context.get_reducing_state(ReducingStateDescriptor("largest", Largest(), Types.INT()))
        self._mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), Types.INT()))
        self._long_lived = runtime_context.get_state(long_lived)
        self._short_lived = runtime_context.get_state(short_lived)
        self._ttl_map = runtime_context.get_map_state(ttl_map)
        self._has_timer = runtime_context.get_state(ValueStateDescriptor("has-timer", Types.BOOLEAN()))

    def process_element(self, value, ctx):
        before = self._value.value()
        if before is None or before.number < value:
            self._value.update(Reading(value, datetime(2000, 1, 1 + value % 28), Decimal(value) / 4))
            self._row.update(Row(value, f"row {value}"))
        self._list.add(value)
        self._map.put(value // 50, (self._map.get(value // 50) or 0) + 1)
        self._largest.add(value)
        self._mean.add(value)
        if self._long_lived.value() is None:
            self._long_lived.update(ctx.get_current_key())
            self._ttl_map.put(ctx.get_current_key(), 7)
        if self._has_timer.value() is None:
            self._has_timer.update(True)
            self._short_lived.update(value)
            now_ms = ctx.timer_service().current_processing_time()
            ctx.timer_service().register_processing_time_timer(now_ms + TIMER_DELAY_MS)
        ctx.timer_service().register_event_time_timer(value // 40 * 40 + 39)
        ctx.timer_service().register_event_time_timer(MAX_LONG_VALUE)

    def on_timer(self, timestamp, ctx):
        key = ctx.get_current_key()
        if timestamp == MAX_LONG_VALUE:
            yield f"end {key} {self._value.value()} {self._row.value()} {sorted(self._list.get())}"
            yield f"end {key} {sorted(self._map.items())} {self._largest.get()} {self._mean.get()}"
            yield f"end {key} {self._long_lived.value()} {sorted(self._ttl_map.items())}"
        elif ctx.time_domain() is TimeDomain.EVENT_TIME:
            yield f"stretch {key} {timestamp}"
        else:
            yield f"clock {key} {self._short_lived.value()}"


class Keep(FlatMapFunction, CheckpointedFunction):
    """Keeps some of what it saw in operator state, and shows first what it was restored with."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self._split = store.get_list_state(ListStateDescriptor("split", Types.INT()))
        self._union = store.get_union_list_state(ListStateDescriptor("union", Types.INT()))
        self._restored = [f"split {number}" for number in self._split.get()]
        self._kept = list(self._split.get())
        self._everywhere = sorted(set(self._union.get()))
        self._shows_union = context.is_restored()

    def open(self, runtime_context):
        self._shows_union = self._shows_union and runtime_context.get_index_of_this_subtask() == 0

    def snapshot_state(self, context):
        self._split.update(self._kept)
        self._union.update(self._kept)

    def flat_map(self, value):
        if self._shows_union:
            self._shows_union = False
            yield f"union {self._everywhere}"
        yield from self._restored
        self._restored = []
        if value % 20 == 0:
            self._kept.append(value)


class Rule(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield f"rule {value} {ctx.get_broadcast_state(RULES).get(value % 4)}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(*value)


class Describe(ProcessWindowFunction):
    def __init__(self, name):
        self._name = name

    def process(self, key, context, elements):
        found = sorted(elements)
        yield f"{self._name} {key} {context.window().start} {context.window().end} {found}"


class CountOnly(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"count {key} {len(list(elements))}"


class Join(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield f"join {left} {right}"


class Lines(SinkFunction):
    def __init__(self, path: Path) -> None:
        self._path = path

    def invoke(self, value, context):
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(f"{value}\n")


def build(env, path: Path) -> None:
    """Put the job on `env`; its lines are appended to a file."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(NumberIsTime())
    source = env.from_sequence(0, LAST).uid("numbers")
    numbers = source.assign_timestamps_and_watermarks(strategy).uid("time")
    rules = env.from_collection([(0, "a"), (1, "b"), (2, "c"), (3, "d")]).uid("rules").broadcast(RULES)
    keyed = numbers.key_by(lambda value: value % 5)
    bursts = numbers.filter(lambda value: value % 45 < 20).uid("bursts").key_by(lambda value: value % 2)
    evens = numbers.filter(lambda value: value % 2 == 0).uid("evens").key_by(lambda value: value // 30)
    odds = numbers.filter(lambda value: value % 2 == 1).uid("odds").key_by(lambda value: value // 30)
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(70)))
    sliding = keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(20)))
    sessions = bursts.window(EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
    streams = [
        keyed.process(AllKinds()).uid("all-kinds"),
        source.flat_map(Keep()).uid("keep"),
        source.connect(rules).process(Rule()).uid("rule"),
        tumbling.reduce(lambda a, b: a + b).uid("tumbling").map(lambda total: f"tumbling {total}").uid("tumbling-line"),
        sliding.process(Describe("sliding")).uid("sliding"),
        sessions.process(Describe("session")).uid("sessions"),
        keyed.count_window(8).process(CountOnly()).uid("counts"),
        evens.interval_join(odds).between(Time.milliseconds(-3), Time.milliseconds(3)).process(Join()).uid("join"),
    ]
    streams[0].union(*streams[1:]).add_sink(Lines(path)).uid("lines")
