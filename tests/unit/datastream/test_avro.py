"""Avro: rows as messages, and which files fit a schema."""

from __future__ import annotations

import datetime
import io
import json
import pickle
from decimal import Decimal

import fastavro
import pytest

from penstock.common import Row, Types, optional_packages
from penstock.common.exceptions import EnvironmentSetupError
from penstock.common.time import Instant
from penstock.datastream.formats.avro import (
    AvroBulkWriters,
    AvroReaders,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
)
from penstock.datastream.formats.avro_resolution import mismatch

UTC = datetime.timezone.utc


def record(**fields):
    listed = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": listed}


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


ORDER = record(
    id="long",
    name=["null", "string"],
    price=logical("bytes", "decimal", precision=9, scale=2),
    day=logical("int", "date"),
    noon=logical("int", "time-millis"),
    at=logical("long", "timestamp-millis"),
    precisely=["null", logical("long", "timestamp-micros")],
    tags={"type": "array", "items": "string"},
    where={"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]},
    before={"type": "array", "items": "Place"},
    sizes={"type": "map", "values": ["null", "Place"]},
    kind={"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]},
    digest={"type": "fixed", "name": "Digest", "size": 2},
)
MOMENT = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000)
VALUES = [
    7, None, Decimal("12.50"), datetime.date(2024, 5, 6), datetime.time(12, 0), MOMENT, MOMENT.replace(microsecond=5),
    ["a", "b"], Row(city="Ulm"), [Row(city="Bonn")], {"S": None, "L": Row(city="Ulm")}, "OLD", b"\x01\x02",
]  # fmt: skip


def test_rows_become_messages_and_come_back_with_all_their_types():
    writes = pickle.loads(pickle.dumps(AvroRowSerializationSchema(avro_schema_string=json.dumps(ORDER))))
    reads = pickle.loads(pickle.dumps(AvroRowDeserializationSchema(avro_schema_string=json.dumps(ORDER))))
    row = reads.deserialize(writes.serialize(Row(*VALUES)))
    assert list(row) == VALUES and row.where.city == "Ulm"


def test_other_readers_of_avro_understand_the_messages():
    schema = AvroRowSerializationSchema(avro_schema_string=json.dumps(ORDER))
    named = Row(**dict(zip([field["name"] for field in ORDER["fields"]], VALUES, strict=True)))
    read = fastavro.schemaless_reader(io.BytesIO(schema.serialize(named)), ORDER, None)
    assert read["at"] == MOMENT.replace(tzinfo=UTC) and read["where"] == {"city": "Ulm"}


def test_a_time_may_be_an_instant_or_have_a_zone():
    text = json.dumps(record(at=logical("long", "timestamp-micros")))
    writes, reads = AvroRowSerializationSchema(None, text), AvroRowDeserializationSchema(None, text)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    for given in (Instant(1, 5000), datetime.datetime(1970, 1, 1, 2, 0, 1, 5, tzinfo=zone)):
        assert list(reads.deserialize(writes.serialize(Row(given)))) == [datetime.datetime(1970, 1, 1, 0, 0, 1, 5)]


def test_a_uuid_in_a_row_is_text_as_its_type_says():
    uuid = logical("string", "uuid")
    text = json.dumps(record(id=uuid, perhaps=["null", uuid], more={"type": "array", "items": uuid}))
    writes, reads = AvroRowSerializationSchema(None, text), AvroRowDeserializationSchema(None, text)
    values = ["6fa459ea-ee8a-3ca4-894e-db77e160355e", None, ["886313e1-3b8a-5372-9b90-0c9aee199e5d"]]
    assert list(reads.deserialize(writes.serialize(Row(*values)))) == values
    assert reads.get_produced_type().get_field_types()[0] == Types.STRING()


def test_the_type_of_the_rows_follows_flinks_rules():
    place = Types.ROW_NAMED(["city"], [Types.STRING()])
    found = AvroRowDeserializationSchema(avro_schema_string=json.dumps(ORDER)).get_produced_type()
    assert found.get_field_types() == [
        Types.LONG(), Types.STRING(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(),
        Types.SQL_TIMESTAMP(), Types.OBJECT_ARRAY(Types.STRING()), place, Types.OBJECT_ARRAY(place),
        Types.MAP(Types.STRING(), place), Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE()),
    ]  # fmt: skip


def test_a_row_that_does_not_fit_is_reported_with_its_field():
    schema = AvroRowSerializationSchema(avro_schema_string=json.dumps(record(id="long", name="string")))
    with pytest.raises(ValueError, match=r"shop\.Order\.name is <3> of type <class 'int'> expected string"):
        schema.serialize(Row(1, 3))
    with pytest.raises(ValueError, match=r"has 1 fields, but the schema has \['id', 'name'\]"):
        schema.serialize(Row(1))


def test_bytes_that_are_no_such_record_are_reported():
    schema = AvroRowDeserializationSchema(avro_schema_string=json.dumps(record(name="string")))
    with pytest.raises(ValueError, match=r"b'\\x0cab' is not a record of 'shop\.Order'"):
        schema.deserialize(b"\x0cab")


def test_schemas_that_cannot_be_rows_are_refused_at_once():
    with pytest.raises(ValueError, match="rows need the schema of a record"):
        AvroRowDeserializationSchema(avro_schema_string='"string"')
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "left", "type": ["null", "Tree"]}]}
    with pytest.raises(ValueError, match="the Avro record 'Tree' holds itself"):
        AvroReaders.for_rows(AvroSchema.parse_string(json.dumps(tree)))
    assert AvroReaders.for_generic_record(AvroSchema.parse_string(json.dumps(tree))).can_start_anywhere
    with pytest.raises(ValueError, match="not an Avro schema: UnknownType"):
        AvroBulkWriters.for_generic_record(AvroSchema.parse_string(json.dumps(record(id="number"))))


def test_a_missing_library_is_reported_with_the_command_that_installs_it(monkeypatch):
    def missing(module):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(optional_packages.importlib, "import_module", missing)
    with pytest.raises(EnvironmentSetupError, match=r"pip install 'penstock\[avro\]'"):
        AvroRowSerializationSchema(avro_schema_string=json.dumps(record(id="int")))


@pytest.mark.parametrize(
    ("written", "wanted", "told"),
    [
        (record(a="int"), record(a="long"), None),
        (record(a="int"), record(a=["null", "double"]), None),
        (record(a="int", b="string"), record(b="bytes"), None),
        (record(a="long"), record(a="int"), "field 'a' is written as long and cannot be read as int"),
        (record(a="string"), record(b="string"), "field 'b' is missing, and the schema has no default for it"),
        (
            record(a={"type": "array", "items": record(x="string")}),
            record(a={"type": "array", "items": record(x="boolean")}),
            "field 'a.x' is written as string and cannot be read as boolean",
        ),
        (record(a=["int", "string"]), record(a="string"), None),
        (record(a=["int", "long"]), record(a="string"), "written as int or long and cannot be read as string"),
        (
            record(a=logical("bytes", "decimal", precision=4, scale=2)),
            record(a=logical("bytes", "decimal", precision=4, scale=1)),
            "field 'a' is written as decimal of scale 2 and cannot be read as one of scale 1",
        ),
        ({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 3}, "fixed of 2 bytes"),
        ("string", "int", "the element is written as string"),
    ],
)
def test_what_cannot_be_read_by_another_schema_is_reported_with_the_field(written, wanted, told):
    found = mismatch(written, wanted)
    assert found is None if told is None else told in found


def test_a_field_may_be_known_by_another_name_or_have_a_default():
    wanted = record(new="string", more="int")
    wanted["fields"][0]["aliases"] = ["old"]
    wanted["fields"][1]["default"] = 3
    assert mismatch(record(old="string"), wanted) is None
