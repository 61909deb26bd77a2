"""Count the words that come from a socket with plain Structured Streaming, as Spark's own guide does it.

`python -m benchmarks.latency_pyspark --port 1234 [--config spark.sql.shuffle.partitions=2]`; see benchmarks/latency.py.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency_pyspark", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark")
    parsed = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").appName("latency")
    for key, value in (pair.split("=", 1) for pair in parsed.config):
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", parsed.port).load()
    counts = lines.groupBy("value").count()
    # The console is Spark's way to print what changed in a batch; it shows 20 rows unless told otherwise.
    query = counts.writeStream.outputMode("update").format("console").option("numRows", 1_000).start()
    query.awaitTermination()


if __name__ == "__main__":
    main()
