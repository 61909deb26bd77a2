"""Word count of CSV files, read as rows of a time and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.files import lines
from benchmarks.flink_api import (
    DataStream,
    FileSource,
    StreamExecutionEnvironment,
    TimestampAssigner,
    WatermarkStrategy,
)
from penstock.datastream.formats.csv import CsvReaderFormat, CsvSchema


class TimeInRow(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[0])


def split(row: Any) -> Iterator[tuple[str, int]]:
    for word in row[1].split():
        yield word, 1


def words(env: StreamExecutionEnvironment, folder: str) -> DataStream:
    schema = CsvSchema.builder().add_number_column("time").add_string_column("sentence").build()
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), folder).build()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeInRow())
    return env.from_source(source, times, "lines").flat_map(split, lines.pair_type())


def write(path: Path, content: Iterator[lines.Line]) -> None:
    path.write_text("".join(f"{time_ms},{sentence}\n" for time_ms, sentence in content))


PROGRAM = lines.FileWordCount("csv", words, write)
prepare, run, expected = PROGRAM.prepare, PROGRAM.run, lines.expected


if __name__ == "__main__":
    PROGRAM.run_as_script()
