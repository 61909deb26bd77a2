"""Python objects as messages and in files."""

from __future__ import annotations

import gzip
import pickle
from dataclasses import dataclass

import pytest

from penstock.common import Configuration, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import FileSink, FileSource
from penstock.datastream.formats.python_objects import PickleEncoder, PickleFormat, PickleSchema


@dataclass(frozen=True)
class Point:
    x: int
    y: float


OBJECTS = [Point(1, 2.5), {"a": [1, None]}, ("t", b"\n"), 7]


def environment():
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"execution.target": "inline"}))


def read(folder):
    source = FileSource.for_record_stream_format(PickleFormat(), str(folder)).build()
    stream = environment().set_parallelism(1).from_source(source, WatermarkStrategy.no_watermarks(), "objects")
    with stream.execute_and_collect() as results:
        return list(results)


def test_objects_are_written_to_files_and_read_again(tmp_path):
    env = environment()
    env.from_collection(OBJECTS).sink_to(FileSink.for_row_format(str(tmp_path), PickleEncoder()).build())
    env.execute("objects")
    assert read(tmp_path) == OBJECTS


def test_packed_and_empty_files_of_objects(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"".join(map(pickle.dumps, OBJECTS))))
    (tmp_path / "b").write_bytes(b"")
    assert read(tmp_path) == OBJECTS


@pytest.mark.parametrize("element", [*OBJECTS, None])
def test_messages_hold_any_object(element):
    assert PickleSchema().deserialize(PickleSchema().serialize(element)) == element
