"""A program with types, as a user may write it: mypy and pyright must find nothing in it. See test_typing.py."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.common import Configuration, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    BroadcastProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStream,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

Click = tuple[str, int]
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
LATE = OutputTag("late", Types.STRING())


class ByTime(TimestampAssigner):
    def extract_timestamp(self, value: Click, record_timestamp: int) -> int:
        return value[1]


class Doubled(MapFunction):
    def map(self, value: int) -> int:
        return value * 2


class Sorted(ProcessFunction):
    def process_element(self, value: Click, ctx: ProcessFunction.Context) -> Iterator[Click | tuple[OutputTag, str]]:
        yield value if value[1] >= 0 else (LATE, value[0])


class Counting(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        ctx.timer_service().register_event_time_timer(value[1] + 1000)
        yield value[0], count

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), timestamp


class Above(BroadcastProcessFunction[Click, Click, Click]):
    def process_element(self, value: Click, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[Click]:
        limit = ctx.get_broadcast_state(LIMITS).get(value[0])
        if limit is not None and value[1] > limit:
            yield value

    def process_broadcast_element(self, value: Click, ctx: BroadcastProcessFunction.Context) -> Iterator[Click]:
        ctx.get_broadcast_state(LIMITS).put(value[0], value[1])
        yield from ()


class AboveByKey(KeyedBroadcastProcessFunction[str, Click, Click, Click]):
    def process_element(self, value: Click, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Click]:
        if ctx.get_broadcast_state(LIMITS).contains(value[0]):
            yield value

    def process_broadcast_element(self, value: Click, ctx: KeyedBroadcastProcessFunction.Context) -> Iterator[Click]:
        ctx.get_broadcast_state(LIMITS).put(value[0], value[1])
        yield from ()


class Joined(KeyedCoProcessFunction):
    def process_element1(self, value: Click, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        yield value[0]

    def process_element2(self, value: Click, ctx: KeyedCoProcessFunction.Context) -> Iterator[str]:
        yield value[0]


def by_user(clicks: DataStream[Click]) -> KeyedStream[Click, str]:
    """Elements have the type that the stream was given, also in functions without annotations."""
    named = clicks.filter(lambda click: click[0].isalpha()).name("named").uid("named").rebalance()
    return named.key_by(lambda click: click[0].lower())


def total(clicks: KeyedStream[Click, str]) -> DataStream[Click]:
    return clicks.count_window(2).reduce(lambda a, b: (a[0], a[1] + b[1])).union(clicks.max_by(1))


def of_anything(stream: DataStream) -> DataStream:
    """One variable may hold streams of several types, as in many programs for PyFlink."""
    stream = stream.map(str)
    stream = stream.flat_map(lambda text: text.split(",")).map(lambda text: (text, 1))
    stream = stream.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    return stream


def main() -> list[Click]:
    settings = Configuration.from_dict({"execution.target": "inline"})
    env = StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByTime())
    clicks = env.from_collection([("a", 1), ("b", 2)]).assign_timestamps_and_watermarks(strategy)
    limits = env.from_collection([("a", 0)])

    rules = limits.broadcast(LIMITS)
    above = clicks.connect(rules).process(Above()).name("above").uid("above")
    above.key_by(lambda click: click[0]).connect(rules).process(AboveByKey()).print()
    limits.broadcast().map(lambda click: click[1]).map(Doubled()).print().name("doubled").uid("doubled")

    sorted_clicks = clicks.process(Sorted())
    sorted_clicks.get_side_output(LATE).print()
    keyed = sorted_clicks.key_by(lambda click: click[0])
    counts = keyed.process(Counting(), Types.TUPLE([Types.STRING(), Types.LONG()]))
    keyed.window(TumblingEventTimeWindows.of(Time.seconds(5))).reduce(lambda a, b: (a[0], a[1] + b[1])).print()
    keyed.connect(limits.key_by(lambda limit: limit[0])).process(Joined()).print()

    sized: DataStream[int] = clicks.map(lambda click: len(click[0]))
    sized.filter(lambda size: size.bit_length() > 1).print()
    total(by_user(clicks)).print()
    of_anything(clicks).print()

    with counts.execute_and_collect() as values:
        first: Click = next(values)
    clicks_again: DataStream[Click] = clicks
    rest: list[Click] = clicks_again.execute_and_collect(limit=2)
    return [first, *rest]
