"""Avro files as a sink."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal

import fastavro
import pyarrow.parquet
import pytest
from sink_job import SinkJob, hidden_files, visible_files

from penstock.common import Row
from penstock.datastream.connectors import BucketAssigner, FileSink
from penstock.datastream.connectors.file_system.part_files import PartStream
from penstock.datastream.formats.avro import AvroBulkWriters, AvroSchema
from penstock.datastream.formats.parquet import AvroParquetWriters

PAYMENT = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
SCHEMA = AvroSchema.parse_string(json.dumps(PAYMENT))
WHEN = datetime.datetime(2024, 5, 6, 7, 8, 9, 10)
IN_UTC = WHEN.replace(tzinfo=datetime.timezone.utc)


def payment(number):
    return {"id": number, "sum": Decimal("1.50"), "at": IN_UTC}


def written(factory, elements):
    buffer = io.BytesIO()
    writer = factory.create(PartStream(buffer))
    for element in elements:
        writer.add_element(element)
    writer.finish()
    return buffer.getvalue()


def records(content):
    return list(fastavro.reader(io.BytesIO(content)))


def test_files_are_finished_with_every_checkpoint_and_hold_every_record_once(tmp_path):
    builder = FileSink.for_bulk_format(str(tmp_path), AvroBulkWriters.for_generic_record(SCHEMA))
    sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
    job = SinkJob(sink, tmp_path, element_of=payment)
    job.write(2).checkpoint().write(1).fail().write(1).end()
    files = sorted((records(content) for content in visible_files(tmp_path).values()), key=len)
    assert files == [[payment(2)], [payment(0), payment(1)]]
    assert hidden_files(tmp_path) == []


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy"])
def test_elements_may_be_dicts_or_rows(codec):
    rows = [payment(0), Row(1, Decimal("1.50"), WHEN), Row(at=WHEN, id=2, sum=Decimal("1.50"))]
    content = written(AvroBulkWriters.for_generic_record(SCHEMA, codec), rows)
    assert records(content) == [payment(0), payment(1), payment(2)]
    assert fastavro.reader(io.BytesIO(content)).codec == codec


def test_elements_of_another_schema_are_reported_with_the_field():
    with pytest.raises(ValueError, match="does not fit the Avro schema: field 'id': 'x' is not a whole number"):
        written(AvroBulkWriters.for_generic_record(SCHEMA), [{**payment(0), "id": "x"}])


def test_unknown_ways_to_pack_are_refused_at_once():
    with pytest.raises(ValueError, match="zip"):
        AvroBulkWriters.for_generic_record(SCHEMA, "zip")


def test_records_of_an_avro_schema_become_parquet():
    content = written(AvroParquetWriters.for_generic_record(SCHEMA), [payment(0), Row(1, Decimal("1.50"), WHEN)])
    rows = pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist()
    assert rows == [{"id": number, "sum": Decimal("1.50"), "at": WHEN} for number in (0, 1)]
