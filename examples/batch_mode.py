"""The same program as a batch job: final results only, and memory that does not grow with the number of keys."""

from __future__ import annotations

from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)  # BATCH if all sources end by themselves, as this one does
(
    env.from_sequence(1, 1000)
    .map(lambda number: ("even" if number % 2 == 0 else "odd", number))
    .key_by(lambda pair: pair[0])
    .reduce(lambda a, b: (a[0], a[1] + b[1]))  # a streaming job would print a thousand rolling sums
    .print()
)
env.execute("batch mode")
