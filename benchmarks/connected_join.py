"""Orders and their payments, which must come within four seconds: joined by the program itself, in state.

PyFlink's API has no joins; `interval_join` is the same with the join that Flink's Java API and Penstock have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    KeyedCoProcessFunction,
    NumberSequenceSource,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimestampAssigner,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

WITHIN_MS = 4_000
MEAN_DELAY_MS = 2_000
EVERY_MS = 10
A_BLOCK = 512
KEEPS_ONE_OF = 50


class TimeInRecord(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


def order_of(number: int) -> tuple[int, int]:
    """Order and time."""
    return number, number * EVERY_MS


def payment_of(number: int) -> tuple[int, int]:
    """Order and time of a payment: they come as often as orders do, but those for a block of orders in reverse.

    So the order is 2 seconds earlier on average, and between 7 seconds earlier and 3 seconds later.
    """
    return number // A_BLOCK * A_BLOCK + A_BLOCK - 1 - number % A_BLOCK, number * EVERY_MS + MEAN_DELAY_MS


def is_kept(paid: tuple[int, int]) -> bool:
    return paid[0] % KEEPS_ONE_OF == 0


class JoinPayments(KeyedCoProcessFunction):  # type: ignore[misc, unused-ignore]
    """Emits an order and how long its payment took. Each side is kept until nothing can match it any more."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.ordered = runtime_context.get_state(ValueStateDescriptor("ordered", Types.LONG()))
        self.paid = runtime_context.get_state(ValueStateDescriptor("paid", Types.LONG()))

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        paid = self.paid.value()
        if paid is None:
            self.ordered.update(value[1])
            ctx.timer_service().register_event_time_timer(value[1] + WITHIN_MS)
        elif 0 <= paid - value[1] <= WITHIN_MS:
            yield value[0], paid - value[1]

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        ordered = self.ordered.value()
        if ordered is None:
            self.paid.update(value[1])
            ctx.timer_service().register_event_time_timer(value[1])
        elif 0 <= value[1] - ordered <= WITHIN_MS:
            yield value[0], value[1] - ordered

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any]:
        self.ordered.clear()
        self.paid.clear()
        return ()  # PyFlink's process mode does not take None here.


def orders_and_payments(env: StreamExecutionEnvironment, setting: Setting) -> tuple[Any, Any]:
    """Half of the records each, keyed by order."""
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeInRecord())
    pair_type = Types.TUPLE([Types.LONG(), Types.LONG()])
    source = NumberSequenceSource(0, setting.records // 2 - 1)
    keyed = [
        env.from_source(source, WatermarkStrategy.no_watermarks(), name, Types.LONG())
        .map(function, pair_type)
        .assign_timestamps_and_watermarks(times)
        .key_by(lambda pair: pair[0], Types.LONG())
        for name, function in (("orders", order_of), ("payments", payment_of))
    ]
    return keyed[0], keyed[1]


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    orders, payments = orders_and_payments(env, setting)
    joined: DataStream = (
        orders.connect(payments).process(JoinPayments(), Types.TUPLE([Types.LONG(), Types.LONG()])).filter(is_kept)
    )
    return joined


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    orders = dict(map(order_of, range(setting.records // 2)))
    payments = [payment for payment in map(payment_of, range(setting.records // 2)) if payment[0] in orders]
    delays = [(order, paid - orders[order]) for order, paid in payments]
    return [found for found in delays if 0 <= found[1] <= WITHIN_MS and is_kept(found)]


if __name__ == "__main__":
    run_as_script(build)
