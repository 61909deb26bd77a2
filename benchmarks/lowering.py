"""The same job behind a DataFrame with lowering on and off: how much time Spark SQL saves.

    python -m benchmarks.lowering [--rows 2000000]

A filter and a map, as a batch job and as a streaming job. Each runs in one Spark session that is warm; the seconds of a
run include writing the DataFrame's rows and reading them again.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment

REPETITIONS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--parallelism", type=int, default=2)
    arguments = parser.parse_args()
    for mode in ("BATCH", "STREAMING"):
        compare(mode, arguments.rows, arguments.parallelism)


def compare(mode: str, rows: int, parallelism: int) -> None:
    run(mode, True, rows // 10, parallelism)  # Warms up Spark.
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(REPETITIONS):
        for is_on in (True, False):
            seconds[is_on].append(run(mode, is_on, rows, parallelism))
    on, off = statistics.median(seconds[True]), statistics.median(seconds[False])
    print(f"{mode.lower():>9}: {rows:,} rows, on {on:.2f} s, off {off:.2f} s, {off / on:.1f} times as fast", flush=True)


def run(mode: str, is_on: bool, rows: int, parallelism: int) -> float:
    """The seconds of one job; its result is checked."""
    settings = {"penstock.lowering.enabled": str(is_on).lower(), "execution.runtime-mode": mode}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(parallelism)
    from penstock.spark.session import get_session

    spark = get_session(env.get_configuration())
    numbers = spark.range(rows, numPartitions=parallelism).selectExpr("id", "id % 1000 as amount", "'x' as name")
    started = time.perf_counter()
    found = sum(amount for _, amount in job(env, numbers).execute_and_collect())
    seconds = time.perf_counter() - started
    expected = sum((n % 1000) * 2 + 1 for n in range(rows) if n % 1000 >= 990 and n % 7 != 0)
    assert found == expected, f"{found}, but should be {expected}"
    return seconds


def job(env: StreamExecutionEnvironment, data_frame: Any) -> Any:
    large = env.from_data_frame(data_frame).filter(lambda row: row.amount >= 990 and row.id % 7 != 0)
    return large.map(lambda row: (row.id, row.amount * 2 + 1))


if __name__ == "__main__":
    main()
