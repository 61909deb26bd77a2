"""Avro files as a source."""

from __future__ import annotations

import gzip
import io
import json
from functools import partial

import fastavro
import pytest
from source_job import SourceJob

from penstock.common import Configuration, Row
from penstock.common.exceptions import ConnectorError, JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BadRecords, FileSource
from penstock.datastream.connectors.file_system import source as file_source
from penstock.datastream.connectors.file_system.formats import FileToRead
from penstock.datastream.formats.avro import AvroInputFormat, AvroReaders, AvroSchema

PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [{"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"]}],
}
SCHEMA = AvroSchema.parse_string(json.dumps(PERSON))


def people(numbers):
    return [{"name": f"p{number}", "age": number} for number in numbers]


def avro(records, schema=PERSON, **settings):
    content = io.BytesIO()
    fastavro.writer(content, schema, records, **settings)
    return content.getvalue()


def source_of(folder, format=None, **bad):
    format = format or AvroReaders.for_generic_record(SCHEMA)
    builder = FileSource.for_bulk_file_format(format, str(folder))
    return (builder.set_bad_records(bad["bad"]) if bad else builder).build()


def read(content, offset=None, start=0, end=None):
    file = FileToRead("people.avro", partial(io.BytesIO, content), start, end)
    return list(AvroReaders.for_generic_record(SCHEMA).read_file(file, offset))


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy"])
def test_records_are_dicts_or_rows(tmp_path, codec):
    (tmp_path / "a.avro").write_bytes(avro(people([1, None]), codec=codec))
    assert SourceJob(source_of(tmp_path)).to_the_end().values == people([1, None])
    rows = SourceJob(source_of(tmp_path, AvroReaders.for_rows(SCHEMA))).to_the_end().values
    assert rows == [Row(name="p1", age=1), Row(name="pNone", age=None)]


def test_packed_files_are_unpacked(tmp_path):
    import pyarrow as pa

    (tmp_path / "a.avro.gz").write_bytes(gzip.compress(avro(people(range(3)))))
    with pa.output_stream(tmp_path / "b.avro.zst", compression="zstd") as packed:
        packed.write(avro(people(range(3, 5))))
    values = SourceJob(source_of(tmp_path)).to_the_end().values
    assert sorted(values, key=lambda person: person["age"]) == people(range(5))


def test_reading_continues_behind_any_block():
    content = avro(people(range(40)), sync_interval=30)
    batches = read(content)
    assert len(batches) > 5
    done = []
    for batch in batches:
        done += batch.records
        rest = [record for later in read(content, batch.offset) for record in later.records]
        assert done + rest == people(range(40))


@pytest.mark.parametrize("step", [1, 7, 16, 100, 100_000])
def test_parts_of_a_file_hold_every_record_once(step):
    content = avro(people(range(40)), sync_interval=30)
    starts = range(0, len(content), step)
    parts = [(start, None if start == starts[-1] else start + step) for start in starts]
    values = [record for start, end in parts for batch in read(content, None, start, end) for record in batch.records]
    assert values == people(range(40))


def test_large_files_are_read_in_parts_and_once_although_the_job_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(file_source, "PART_BYTES", 200)
    (tmp_path / "a.avro").write_bytes(avro(people(range(200)), sync_interval=60))
    source = source_of(tmp_path)
    assert len(source._find()) > 3
    job = SourceJob(source, parallelism=2, settings={"penstock.epoch.max-records": "7"})
    for is_checkpoint in (True, True, False, True, False):
        job.epoch(is_checkpoint)
    job.fail().epoch().crash(3).to_the_end()
    assert sorted(person["age"] for person in job.values) == list(range(200))


def test_new_fields_have_their_defaults_and_others_are_left_out(tmp_path):
    (tmp_path / "a.avro").write_bytes(avro(people([1])))
    fields = [{"name": "age", "type": ["null", "long"]}, {"name": "city", "type": "string", "default": "Ulm"}]
    schema = AvroSchema.parse_string(json.dumps({"type": "record", "name": "Person", "fields": fields}))
    values = SourceJob(source_of(tmp_path, AvroReaders.for_generic_record(schema))).to_the_end().values
    assert values == [{"age": 1, "city": "Ulm"}]


def test_a_file_of_another_schema_is_reported_with_file_and_field(tmp_path):
    (tmp_path / "a.avro").write_bytes(avro(people([1])))
    schema = AvroSchema.parse_string(json.dumps(PERSON).replace('["null", "int"]', '"string"'))
    for source in (
        source_of(tmp_path, AvroReaders.for_generic_record(schema)),
        source_of(tmp_path, AvroReaders.for_generic_record(schema), bad=BadRecords.skip()),
    ):
        with pytest.raises(ConnectorError, match=r"a\.avro: field 'age' is written as null or int and cannot be read"):
            SourceJob(source).to_the_end()


@pytest.mark.parametrize("content", [b"", b"Obj", b"hello, this is a text of some length", avro(people([1]))[:20]])
def test_a_file_that_is_not_avro_is_reported(content):
    with pytest.raises(ConnectorError, match=r"file people\.avro: this is not an Avro file"):
        read(content)


def damaged():
    """The third block says that it has a negative number of bytes, or so."""
    content = bytearray(avro(people(range(40)), sync_interval=30))
    at = read(bytes(content))[1].offset
    content[at + 1 : at + 8] = b"\xff" * 7
    return bytes(content)


def test_a_damaged_block_fails_the_job_and_names_the_file(tmp_path):
    (tmp_path / "a.avro").write_bytes(damaged())
    with pytest.raises(JobExecutionError, match=r"a\.avro.*a block cannot be read"):
        SourceJob(source_of(tmp_path)).to_the_end()


def test_what_is_behind_a_damaged_block_can_be_read():
    content = damaged()
    batches = read(content)
    assert [len(batch.bad) for batch in batches].count(1) == 1
    lost = {record["age"] for record in people(range(40))} - {each["age"] for b in batches for each in b.records}
    whole = read(avro(people(range(40)), sync_interval=30))
    assert lost == {record["age"] for record in whole[2].records}
    bad = next(batch for batch in batches if batch.bad)
    assert [each for b in read(content, bad.offset) for each in b.records] == people(range(max(lost) + 1, 40))


def test_a_file_that_was_cut_off_has_a_bad_end():
    content = avro(people(range(40)), sync_interval=30)[:-20]
    batches = read(content)
    assert (len(batches[-1].bad), batches[-1].offset) == (1, len(content))
    assert read(content, len(content)) == []


def test_an_input_format_is_a_source(tmp_path):
    (tmp_path / "a.avro").write_bytes(avro(people(range(3))))
    config = Configuration.from_dict({"execution.target": "inline"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    stream = env.create_input(AvroInputFormat(str(tmp_path), SCHEMA))
    with stream.map(lambda person: person["age"]).execute_and_collect() as results:
        assert sorted(results) == [0, 1, 2]
