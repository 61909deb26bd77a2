"""Rows go into a format's fields by position, as in Flink, whatever their own fields are called."""

from __future__ import annotations

import json

import pytest

from penstock.common import Row, Types
from penstock.datastream.declared_types import as_declared
from penstock.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from penstock.datastream.formats.csv import CsvRowSerializationSchema
from penstock.datastream.formats.json import JsonRowSerializationSchema

FIELDS = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
UNNAMED = as_declared((7, "x"), Types.ROW([Types.INT(), Types.STRING()]))


@pytest.mark.parametrize("row", [UNNAMED, Row(7, "x"), (7, "x"), Row(id=7, name="x"), Row(name="x", id=7)], ids=repr)
def test_json_and_csv(row):
    assert json.loads(JsonRowSerializationSchema.builder().with_type_info(FIELDS).build().serialize(row)) == {
        "id": 7,
        "name": "x",
    }
    assert CsvRowSerializationSchema.Builder(FIELDS).build().serialize(row).strip() == b"7,x"


def test_avro():
    schema = json.dumps(
        {
            "type": "record",
            "name": "r",
            "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
        }
    )
    written = AvroRowSerializationSchema(avro_schema_string=schema).serialize(UNNAMED)
    assert AvroRowDeserializationSchema(avro_schema_string=schema).deserialize(written) == Row(id=7, name="x")
