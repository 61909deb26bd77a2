"""Word count of text files: the time in a line is found by a TimestampAssigner, the words by a generator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.files import lines
from benchmarks.flink_api import (
    DataStream,
    FileSource,
    StreamExecutionEnvironment,
    StreamFormat,
    TimestampAssigner,
    WatermarkStrategy,
)


class TimeInLine(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    def extract_timestamp(self, value: str, record_timestamp: int) -> int:
        return int(value[: value.index(" ")])


def split(line: str) -> Iterator[tuple[str, int]]:
    for word in line.split()[1:]:
        yield word, 1


def words(env: StreamExecutionEnvironment, folder: str) -> DataStream:
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeInLine())
    return env.from_source(source, times, "lines").flat_map(split, lines.pair_type())


def write(path: Path, content: Iterator[lines.Line]) -> None:
    path.write_text("".join(f"{time_ms} {sentence}\n" for time_ms, sentence in content))


PROGRAM = lines.FileWordCount("text", words, write)
prepare, run, expected = PROGRAM.prepare, PROGRAM.run, lines.expected


if __name__ == "__main__":
    PROGRAM.run_as_script()
