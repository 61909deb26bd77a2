"""The programs in plain PySpark: batch queries, their maps in Python (mapInArrow), their windows Spark's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import session_windows, stateless_chain, word_count
from benchmarks.job import Run, Setting
from benchmarks.peers.script import run_as_script

Batches = Iterator[pa.RecordBatch]


@cache
def session_of(parallelism: int) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Else workers are whatever `python3` is.
    return (
        SparkSession.builder.master(f"local[{parallelism}]")
        .config("spark.sql.shuffle.partitions", parallelism)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", False)
        # So that what was shuffled is known as soon as a query has ended.
        .config("spark.ui.liveUpdate.period", "0")
        .getOrCreate()
    )


def count_words(numbers: DataFrame, setting: Setting) -> DataFrame:
    word = word_count.word_of(setting.keys, setting.has_skew)

    def words(batches: Batches) -> Batches:
        for batch in batches:
            found = [word(number)[0] for number in batch["id"].to_pylist()]
            yield pa.RecordBatch.from_arrays([batch["id"], pa.array(found)], ["id", "word"])

    time = F.timestamp_millis(F.expr(f"id div {word_count.WORDS_A_MS}"))
    window = F.window(time, f"{word_count.WINDOW_SECONDS} seconds")
    counts = numbers.mapInArrow(words, "id long, word string").groupBy(window, "word").count()
    return counts.select("word", "count")


def sessions(numbers: DataFrame, setting: Setting) -> DataFrame:
    visit_of = session_windows.visit_of

    def visits(batches: Batches) -> Batches:
        for batch in batches:
            users = [visit_of(number)[0] for number in batch["id"].to_pylist()]
            yield pa.RecordBatch.from_arrays([batch["id"], pa.array(users, pa.int64())], ["id", "user"])

    window = F.session_window(F.timestamp_millis("id"), f"{session_windows.GAP_SECONDS} seconds")
    counts = numbers.mapInArrow(visits, "id long, user long").groupBy(window, "user").count()
    # Spark knows that it may filter first, and does: it makes windows of one user in fifty only.
    return counts.select("user", "count").filter(F.col("user") % session_windows.KEEPS_ONE_OF == 0)


def chain(numbers: DataFrame, setting: Setting) -> DataFrame:
    scale, is_odd, halves = stateless_chain.scale, stateless_chain.is_odd, stateless_chain.halves
    label, is_kept = stateless_chain.label, stateless_chain.is_kept

    def labels(batches: Batches) -> Batches:
        for batch in batches:
            scaled = filter(is_odd, map(scale, batch["id"].to_pylist()))
            kept = [pair for number in scaled for pair in map(label, halves(number)) if is_kept(pair)]
            found, names = zip(*kept, strict=True) if kept else ((), ())
            columns = [pa.array(found, pa.int64()), pa.array(names, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, ["number", "label"])

    return numbers.mapInArrow(labels, "number long, label string")


def run_of(query: Callable[[DataFrame, Setting], DataFrame]) -> Run:
    def run(setting: Setting) -> tuple[list[Any], int]:
        spark = session_of(setting.parallelism)
        before = shuffled_bytes(spark)
        numbers = spark.range(0, setting.records, 1, setting.parallelism)
        results = [tuple(row) for row in query(numbers, setting).collect()]
        return results, shuffled_bytes(spark) - before

    return run


def shuffled_bytes(spark: SparkSession) -> int:
    """What was written for other tasks so far; in local mode the driver is the only executor."""
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    return int(context.statusStore().executorSummary("driver").totalShuffleWrite())


RUNS = {
    "word_count": run_of(count_words),
    "session_windows": run_of(sessions),
    "stateless_chain": run_of(chain),
}


if __name__ == "__main__":
    run_as_script(RUNS)
