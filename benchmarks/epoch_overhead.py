"""What an epoch costs on Spark before it does any work: RDDs or DataFrames, TCP or Unix domain sockets.

    python benchmarks/epoch_overhead.py

Each variant runs in a process of its own, so that neither warms the other. Prints medians and their ratio to the
variant that Penstock uses.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

VARIANTS = {
    "rdd over unix sockets": ("rdd", "true"),
    "rdd over tcp": ("rdd", "false"),
    "dataframe over unix sockets": ("dataframe", "true"),
    "dataframe over tcp": ("dataframe", "false"),
}
WARM_UP, MEASURED = 40, 60


def measure(kind: str, unix_sockets: str) -> float:
    """Median milliseconds of one source task, one exchange and three tasks behind it, on tiny data."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.python.unix.domain.socket.enabled", unix_sockets)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    epoch = rdd_epoch(spark) if kind == "rdd" else dataframe_epoch(spark)
    for _ in range(WARM_UP):
        epoch()
    times = []
    for _ in range(MEASURED):
        start = time.perf_counter()
        epoch()
        times.append((time.perf_counter() - start) * 1000)
    spark.stop()
    return statistics.median(times)


def rdd_epoch(spark: Any) -> Callable[[], Any]:
    context = spark.sparkContext

    def source(_: int, rows: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
        return ((slot, b"chunk") for slot in range(3))

    def task(slot: int, rows: Iterator[Any]) -> Iterator[tuple[int, int]]:
        yield slot, sum(1 for _ in rows)

    def same(slot: int) -> int:
        return slot

    def epoch() -> Any:
        rows = context.parallelize([0], 1).mapPartitionsWithIndex(source)
        return rows.partitionBy(3, same).mapPartitionsWithIndex(task).collect()

    return epoch


def dataframe_epoch(spark: Any) -> Callable[[], Any]:
    import pyarrow as pa
    from pyspark.sql import functions as F

    schema = "slot int, chunk binary"
    columns = pa.schema([("slot", pa.int32()), ("chunk", pa.binary())])

    def source(batches: Iterator[Any]) -> Iterator[Any]:
        for _ in batches:
            pass
        yield pa.record_batch([pa.array([0, 1, 2], pa.int32()), pa.array([b"chunk"] * 3)], schema=columns)

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        count = sum(batch.num_rows for batch in batches)
        yield pa.record_batch([pa.array([count], pa.int32()), pa.array([b""])], schema=columns)

    def epoch() -> Any:
        rows = spark.range(0, 1, 1, 1).mapInArrow(source, schema).repartitionById(3, F.col("slot"))
        return rows.mapInArrow(task, schema).toArrow()

    return epoch


def main() -> None:
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], sys.argv[2])))
        return
    found = {}
    for name, arguments in VARIANTS.items():
        answer = subprocess.run(
            [sys.executable, __file__, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        found[name] = json.loads(answer.stdout.strip().splitlines()[-1])
    base = found["rdd over unix sockets"]
    for name, milliseconds in found.items():
        print(f"{name:30s} {milliseconds:7.0f} ms  {milliseconds / base:5.2f}x")


if __name__ == "__main__":
    main()
