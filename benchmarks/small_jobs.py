"""Many small jobs at the same time in one cluster: each adds up a thousand numbers by key, with parallelism 1.

They are all submitted at once, and wait for slots. What is measured is what a job costs, not what a record does.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from benchmarks.flink_api import DataStream, NumberSequenceSource, StreamExecutionEnvironment, Types, WatermarkStrategy
from benchmarks.job import Setting, measure_runs, parse_setting, report, results_of, watched

RECORDS_A_JOB = 1_000
KEYS = 10
MOST_AT_ONCE = 100


def build(env: StreamExecutionEnvironment, first: int) -> DataStream:
    """The sums of the numbers from the first on, by their last digit."""
    triple = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
    numbers = env.from_source(
        NumberSequenceSource(first, first + RECORDS_A_JOB - 1), WatermarkStrategy.no_watermarks(), "numbers",
        Types.LONG(),
    )  # fmt: skip
    return (
        numbers.map(lambda number: (number % KEYS, 1, number), triple)
        .key_by(lambda each: each[0], Types.LONG())
        .reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))
        .filter(lambda each: each[1] == RECORDS_A_JOB // KEYS)
    )


def run(setting: Setting) -> tuple[Iterator[Any], int | None]:
    """As many jobs as the setting has thousands of records."""
    alone = replace(setting, parallelism=1)

    def job(first: int) -> list[Any]:
        return results_of(lambda env, _: build(env, first), alone)

    def jobs() -> list[list[Any]]:
        firsts = range(0, setting.records // RECORDS_A_JOB * RECORDS_A_JOB, RECORDS_A_JOB)
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            return list(pool.map(job, firsts))

    found, shuffled_bytes = watched(jobs)
    return (result for results in found for result in results), shuffled_bytes


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    count = RECORDS_A_JOB // KEYS
    firsts = range(0, setting.records // RECORDS_A_JOB * RECORDS_A_JOB, RECORDS_A_JOB)
    return [
        (key, count, sum(range(first + key, first + RECORDS_A_JOB, KEYS))) for first in firsts for key in range(KEYS)
    ]


if __name__ == "__main__":
    report(measure_runs(run, parse_setting()))
