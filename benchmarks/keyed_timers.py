"""Baskets that expire: items are counted in ValueState, and an event-time timer emits the count and forgets it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    KeyedProcessFunction,
    NumberSequenceSource,
    RuntimeContext,
    StreamExecutionEnvironment,
    TimestampAssigner,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

ITEMS = 4
ITEMS_A_MS = 10
PATIENCE_MS = 1_000
KEEPS_ONE_OF = 100


class TimeOfNumber(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value // ITEMS_A_MS


class CountUntilExpiry(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        count = self.count.value()
        self.count.clear()
        yield ctx.get_current_key(), count


def item_of(keys: int) -> Callable[[int], tuple[int, int]]:
    """Basket and its expiry by the item's number: `keys` baskets get items in turn, and then others come.

    The expiry depends on the basket alone, so the answer is the same in whichever order items of it arrive.
    """
    a_round = keys * ITEMS

    def item(number: int) -> tuple[int, int]:
        turn = number // a_round
        return turn * keys + number % keys, (turn + 1) * a_round // ITEMS_A_MS + PATIENCE_MS

    return item


def is_kept(basket: tuple[int, int]) -> bool:
    return basket[0] % KEEPS_ONE_OF == 0


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfNumber())
    pair_type = Types.TUPLE([Types.LONG(), Types.LONG()])
    return (
        numbers.assign_timestamps_and_watermarks(times)
        .map(item_of(setting.keys), pair_type)
        .key_by(lambda item: item[0], Types.LONG())
        .process(CountUntilExpiry(), pair_type)
        .filter(is_kept)
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    item = item_of(setting.keys)
    counts = Counter(item(number)[0] for number in range(setting.records))
    return list(filter(is_kept, counts.items()))


if __name__ == "__main__":
    run_as_script(build)
