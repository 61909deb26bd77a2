"""The word count of examples/word_count.py on plain PySpark, as its own guide does it."""

from __future__ import annotations

from pyspark.sql import SparkSession

TEXT = [
    "to be or not to be that is the question",
    "whether tis nobler in the mind to suffer",
    "the slings and arrows of outrageous fortune",
    "or to take arms against a sea of troubles",
]


def main() -> None:
    spark = SparkSession.builder.appName("WordCount").getOrCreate()
    words = spark.sparkContext.parallelize(TEXT).flatMap(lambda line: line.split())
    counts = words.map(lambda word: (word, 1)).reduceByKey(lambda a, b: a + b)
    for pair in counts.collect():
        print(pair, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
