"""Word count of Parquet files, read as rows of a time and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.files import lines
from benchmarks.files.csv import TimeInRow, split
from benchmarks.flink_api import DataStream, FileSource, StreamExecutionEnvironment, Types, WatermarkStrategy
from penstock.datastream.formats.parquet import ParquetColumnarRowInputFormat


def words(env: StreamExecutionEnvironment, folder: str) -> DataStream:
    row_type = Types.ROW_NAMED(["time", "sentence"], [Types.LONG(), Types.STRING()])
    source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(row_type), folder).build()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeInRow())
    return env.from_source(source, times, "lines").flat_map(split, lines.pair_type())


def write(path: Path, content: Iterator[lines.Line]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    times, sentences = zip(*content, strict=True)
    # Not nullable, as the Avro schema of the Java version has it.
    schema = pa.schema([pa.field("time", pa.int64(), False), pa.field("sentence", pa.string(), False)])
    parquet.write_table(pa.table([pa.array(times), pa.array(sentences)], schema=schema), path)


PROGRAM = lines.FileWordCount("parquet", words, write)
prepare, run, expected = PROGRAM.prepare, PROGRAM.run, lines.expected


if __name__ == "__main__":
    PROGRAM.run_as_script()
