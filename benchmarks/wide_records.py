"""Rows of 50 fields and 2 KB: the newest of each customer is kept, with how many they were so far.

So rows go through the exchange and into state as they are. The counts of one customer in a hundred are emitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    KeyedProcessFunction,
    NumberSequenceSource,
    Row,
    RuntimeContext,
    StreamExecutionEnvironment,
    Types,
    ValueStateDescriptor,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

TEXTS, TEXT_LENGTH, KINDS = 48, 40, 1_009
SHOWS_ONE_CUSTOMER_OF = 100


def row_type() -> Any:
    return Types.ROW([Types.LONG(), Types.LONG(), *(Types.STRING() for _ in range(TEXTS))])


def texts_of(kind: int) -> list[str]:
    return [f"field {at} of kind {kind} ".ljust(TEXT_LENGTH, ".") for at in range(TEXTS)]


def row_of(keys: int) -> Callable[[int], Row]:
    """Customer, a number to be filled in, and 48 texts, which are made beforehand."""
    texts = [texts_of(kind) for kind in range(KINDS)]
    return lambda number: Row(number * 7919 % keys, 0, *texts[number % KINDS])


class KeepNewest(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    def open(self, runtime_context: RuntimeContext) -> None:
        self.newest = runtime_context.get_state(ValueStateDescriptor("newest", row_type()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        before = self.newest.value()
        seen = 1 if before is None else before[1] + 1
        value[1] = seen
        self.newest.update(value)
        if value[0] % SHOWS_ONE_CUSTOMER_OF == 0:
            yield value[0], seen


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return (
        numbers.map(row_of(setting.keys), row_type())
        .key_by(lambda row: row[0], Types.LONG())
        .process(KeepNewest(), Types.TUPLE([Types.LONG(), Types.LONG()]))
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    totals = Counter(number * 7919 % setting.keys for number in range(setting.records))
    shown = [key for key in totals if key % SHOWS_ONE_CUSTOMER_OF == 0]
    return [(key, count) for key in shown for count in range(1, totals[key] + 1)]


if __name__ == "__main__":
    run_as_script(build)
