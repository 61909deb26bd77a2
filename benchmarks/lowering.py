"""The same job behind a DataFrame with lowering on and off: how much time Spark SQL saves.

    python -m benchmarks.lowering [--rows 2000000]

A filter and a map, as a batch job and as a streaming job, and a sum by key. All run in one Spark session that is warm;
the seconds of a run include writing the DataFrame's rows and reading them again.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from penstock.common import Configuration
from penstock.datastream import DataStream, StreamExecutionEnvironment

REPETITIONS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--parallelism", type=int, default=2)
    arguments = parser.parse_args()
    for name in JOBS:
        for mode in ("BATCH", "STREAMING") if name == "filter and map" else ("BATCH",):
            compare(name, mode, arguments.rows, arguments.parallelism)


def compare(name: str, mode: str, rows: int, parallelism: int) -> None:
    run(name, mode, True, rows // 10, parallelism)  # Warms up Spark.
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(REPETITIONS):
        for is_on in (True, False):
            seconds[is_on].append(run(name, mode, is_on, rows, parallelism))
    on, off = statistics.median(seconds[True]), statistics.median(seconds[False])
    print(f"{name}, {mode.lower()}: {rows:,} rows, on {on:.2f} s, off {off:.2f} s, {off / on:.1f} times", flush=True)


def run(name: str, mode: str, is_on: bool, rows: int, parallelism: int) -> float:
    """The seconds of one job; its result is checked."""
    from penstock.spark.session import get_session

    settings = {"penstock.lowering.enabled": str(is_on).lower(), "execution.runtime-mode": mode}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(parallelism)
    spark = get_session(env.get_configuration())
    numbers = spark.range(rows, numPartitions=parallelism).selectExpr("id", "id % 1000 as amount", "'x' as name")
    build, expected = JOBS[name]
    started = time.perf_counter()
    found = sum(number for _, number in build(env.from_data_frame(numbers)).execute_and_collect())
    seconds = time.perf_counter() - started
    assert found == expected(rows), f"{found}, but should be {expected(rows)}"
    return seconds


def filter_and_map(stream: DataStream) -> DataStream:
    large = stream.filter(lambda row: row.amount >= 990 and row.id % 7 != 0)
    return large.map(lambda row: (row.id, row.amount * 2 + 1))


def sum_by_key(stream: DataStream) -> DataStream:
    return stream.map(lambda row: (row.amount, row.id)).key_by(lambda pair: pair[0]).sum(1)


JOBS: dict[str, tuple[Callable[[DataStream], DataStream], Callable[[int], int]]] = {
    "filter and map": (
        filter_and_map,
        lambda rows: sum((n % 1000) * 2 + 1 for n in range(rows) if n % 1000 >= 990 and n % 7 != 0),
    ),
    "sum by key": (sum_by_key, lambda rows: sum(range(rows))),
}


if __name__ == "__main__":
    main()
