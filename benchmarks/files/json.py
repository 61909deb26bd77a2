"""Word count of files with a JSON object in each line, which a map reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.files import lines
from benchmarks.files.csv import TimeInRow, split
from benchmarks.flink_api import (
    DataStream,
    FileSource,
    StreamExecutionEnvironment,
    StreamFormat,
    Types,
    WatermarkStrategy,
)


def parse(line: str) -> tuple[int, str]:
    found = json.loads(line)
    return found["time"], found["sentence"]


def words(env: StreamExecutionEnvironment, folder: str) -> DataStream:
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder).build()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeInRow())
    return (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        .map(parse, Types.TUPLE([Types.LONG(), Types.STRING()]))
        .assign_timestamps_and_watermarks(times)
        .flat_map(split, lines.pair_type())
    )


def write(path: Path, content: Iterator[lines.Line]) -> None:
    path.write_text("".join(json.dumps({"time": time, "sentence": words}) + "\n" for time, words in content))


PROGRAM = lines.FileWordCount("json", words, write)
prepare, run, expected = PROGRAM.prepare, PROGRAM.run, lines.expected


if __name__ == "__main__":
    PROGRAM.run_as_script()
