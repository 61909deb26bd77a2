"""Failures in which no function of the program's had a part name the line that made the operator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.common.exceptions import JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import FileSource, StreamFormat
from penstock.datastream.formats.csv import CsvReaderFormat, CsvSchema
from penstock.datastream.formats.json import JsonRowDeserializationSchema
from penstock.datastream.formats.orc import OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import ParquetColumnarRowInputFormat
from penstock.datastream.window import TimeWindow

ROW = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.target": "inline"})
    ).set_parallelism(1)


def failure_of(env):
    with pytest.raises(JobExecutionError) as failed:
        env.execute()
    return str(failed.value)


def test_a_file_that_is_not_there_is_reported_with_the_line_that_reads_it(env):
    env.read_text_file("/nope").print()
    assert re.search(
        r"no file or folder /nope\n\n  made at .*test_places_in_programs\.py:\d+: env\.read_text_file\(\"/nope\"\)\.pr",
        failure_of(env),
    )


def test_a_result_that_is_no_iterable_is_reported_with_the_line_of_its_operator(env):
    env.from_collection([1]).flat_map(lambda number: number + 1).name("plus one").print()
    told = failure_of(env)
    assert "'plus one', subtask 1/1, at record 1: TypeError: 'int' object is not iterable; a function that" in told
    assert re.search(r"made at .*\.flat_map\(lambda number: number \+ 1\)", told)
    assert "\n;" not in told


def test_a_failing_function_shows_its_own_frames_instead(env):
    env.from_collection([0]).map(lambda number: 1 // number).print()
    told = failure_of(env)
    assert "made at" not in told and "ZeroDivisionError" in told


def unreadable(kind: str, folder: Path):
    if kind == "csv":
        schema = CsvSchema.builder().add_string_column("name").add_number_column("n").build()
        content, reads = b'a,1\n"b\nb",2\nc,oops\nd,4\n', CsvReaderFormat.for_schema(schema)
    elif kind == "json":
        json = JsonRowDeserializationSchema.builder().type_info(ROW).build()
        content, reads = b'{"name": "a", "n": 1}\r\n\n{"n": oops}\r\n', StreamFormat.line_format(json)
    else:
        content = b"no such file"
        reads = {"parquet": ParquetColumnarRowInputFormat, "orc": OrcColumnarRowInputFormat}[kind](ROW)
    file = folder / f"data.{kind}"
    file.write_bytes(content)
    if kind in ("parquet", "orc"):
        return FileSource.for_bulk_file_format(reads, str(file)).build()
    return FileSource.for_record_stream_format(reads, str(file)).build()


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("csv", r"data\.csv, line 4: cannot read b'c,oops"),
        ("json", r"data\.json, line 3: cannot read b'\{\"n\": oops\}'"),
        ("parquet", r"data\.parquet: Parquet magic bytes not found"),
        ("orc", r"data\.orc: .*(ORC|postscript)"),
    ],
)
def test_a_record_that_cannot_be_read_is_reported_with_file_and_line(env, tmp_path, kind, place):
    env.from_source(unreadable(kind, tmp_path), WatermarkStrategy.no_watermarks(), kind).print()
    told = failure_of(env)
    assert re.search(f"file {re.escape(str(tmp_path))}/{place}", told)
    assert "made at" in told and "contextlib" not in told


def test_a_builder_in_the_place_of_a_source_or_sink_says_to_build_it(env, tmp_path):
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    with pytest.raises(TypeError, match=r"needs a source, got a FileSourceBuilder; call build\(\) on it"):
        env.from_source(builder, WatermarkStrategy.no_watermarks(), "files")
    with pytest.raises(TypeError, match=r"needs a Sink such as FileSink, got FileSourceBuilder; call build\(\) on it"):
        env.from_collection([1]).sink_to(builder)


def test_a_window_that_is_assigned_to_says_what_to_do_instead():
    for name in ("start", "end"):
        with pytest.raises(AttributeError, match=rf"TimeWindow\.{name} cannot be set: .*make a new one"):
            setattr(TimeWindow(0, 5), name, 1)
