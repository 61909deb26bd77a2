"""Count per key in ValueState, in a KeyedProcessFunction; every hundredth count of a key is emitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    KeyedProcessFunction,
    NumberSequenceSource,
    RuntimeContext,
    StreamExecutionEnvironment,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

EVERY = 100


class CountPerKey(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count % EVERY == 0:
            yield value[0], count


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    keys = setting.keys
    pair_type = Types.TUPLE([Types.LONG(), Types.LONG()])
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return (
        numbers.map(lambda number: (number * 7919 % keys, number), pair_type)
        .key_by(lambda pair: pair[0], Types.LONG())
        .process(CountPerKey(), pair_type)
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    totals = Counter(number * 7919 % setting.keys for number in range(setting.records))
    return [(key, count) for key, total in totals.items() for count in range(EVERY, total + 1, EVERY)]


if __name__ == "__main__":
    run_as_script(build)
