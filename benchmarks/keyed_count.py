"""Count per key in ValueState, in a KeyedProcessFunction; emits each count of one key in a thousand.

So there is something to check also where a million keys come once each.
"""

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

SHOWS_ONE_KEY_OF = 1_000


class CountPerKey(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if value[0] % SHOWS_ONE_KEY_OF == 0:
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
    shown = [key for key in totals if key % SHOWS_ONE_KEY_OF == 0]
    return [(key, count) for key in shown for count in range(1, totals[key] + 1)]


if __name__ == "__main__":
    run_as_script(build)
