"""Payments held against broadcast rules: each user's payments above the limit that the rule of their category sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    KeyedBroadcastProcessFunction,
    ListStateDescriptor,
    MapStateDescriptor,
    NumberSequenceSource,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimestampAssigner,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

CATEGORIES = 50
AMOUNTS = 10_007
RULES = [(category, AMOUNTS - 1 - category) for category in range(CATEGORIES)]
"""Category and limit; few payments are above it."""


# Functions, since PyFlink cannot send a function to its workers that refers to a type that is in use.
def payment_type() -> Any:
    return Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])


def limit_by_category() -> MapStateDescriptor:
    return MapStateDescriptor("limits", Types.LONG(), Types.LONG())


class TimeOfNumber(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    """A record comes every millisecond."""

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class AboveLimit(KeyedBroadcastProcessFunction):  # type: ignore[misc, type-arg, unused-ignore]
    """Emits a user and how many payments above a limit they have made so far.

    Nothing says that a rule arrives before the payments that it is for. Those that came too early wait for the
    watermark, which does not pass them before all rules are there.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        self.above = runtime_context.get_state(ValueStateDescriptor("above", Types.LONG()))
        self.early = runtime_context.get_list_state(ListStateDescriptor("early", payment_type()))
        self.limits = limit_by_category()

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterator[Any]:
        limit = ctx.get_broadcast_state(self.limits).get(value[1])
        if limit is None:
            self.early.add(value)
            ctx.timer_service().register_event_time_timer(value[3])
        elif value[2] > limit:
            yield self.counted(value)

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(self.limits).put(value[0], value[1])

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Iterator[Any]:
        limits = ctx.get_broadcast_state(self.limits)
        waiting = list(self.early.get() or [])
        self.early.clear()
        for payment in waiting:
            if payment[2] > limits.get(payment[1]):
                yield self.counted(payment)

    def counted(self, payment: Any) -> Any:
        above = (self.above.value() or 0) + 1
        self.above.update(above)
        return payment[0], above


def payment_of(keys: int) -> Callable[[int], tuple[int, int, int, int]]:
    """User, category, amount and time by the payment's number."""
    return lambda number: (number * 7919 % keys, number % CATEGORIES, number * 6151 % AMOUNTS, number)


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfNumber())
    payments = (
        numbers.assign_timestamps_and_watermarks(times)
        .map(payment_of(setting.keys), payment_type())
        .key_by(lambda payment: payment[0], Types.LONG())
    )
    rules = env.from_collection(RULES, Types.TUPLE([Types.LONG(), Types.LONG()])).broadcast(limit_by_category())
    connected: Any = payments.connect(rules)
    above: DataStream = connected.process(AboveLimit(), Types.TUPLE([Types.LONG(), Types.LONG()]))
    return above


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    limits = dict(RULES)
    above: dict[int, int] = {}
    for user, category, amount, _ in map(payment_of(setting.keys), range(setting.records)):
        if amount > limits[category]:
            above[user] = above.get(user, 0) + 1
    return [(user, count) for user, total in above.items() for count in range(1, total + 1)]


if __name__ == "__main__":
    run_as_script(build)
