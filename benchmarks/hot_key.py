"""Count per key in ValueState where nine of ten records have the same key; emits each hundredth count of a key.

Nothing can be counted before it goes to its key's subtask, so one of them has nearly all the work.
"""

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
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

SHOWS_ONE_COUNT_OF = 100


class CountHundreds(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count % SHOWS_ONE_COUNT_OF == 0:
            yield value[0], count


def record_of(keys: int) -> Callable[[int], tuple[int, int]]:
    """Key and number; the key 0 is hot."""
    return lambda number: (0 if number % 10 else number * 7919 % keys, number)


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    pair_type = Types.TUPLE([Types.LONG(), Types.LONG()])
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return (
        numbers.map(record_of(setting.keys), pair_type)
        .key_by(lambda pair: pair[0], Types.LONG())
        .process(CountHundreds(), pair_type)
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    record = record_of(setting.keys)
    totals = Counter(record(number)[0] for number in range(setting.records))
    hundred = SHOWS_ONE_COUNT_OF
    return [(key, count) for key, total in totals.items() for count in range(hundred, total + 1, hundred)]


if __name__ == "__main__":
    run_as_script(build)
