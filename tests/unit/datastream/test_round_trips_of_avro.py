"""Avro files, and Parquet files of an Avro schema, give back what was written to them, or refuse it."""

from __future__ import annotations

import io
import json
from datetime import datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from round_trips import EAST, SINGLES, TEXTS, VALUES, YEARS, check, has_micros, named_row, read_file, written

from penstock.common import Row, Types
from penstock.common.time import Instant
from penstock.datastream.formats.avro import (
    AvroBulkWriters,
    AvroReaders,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
)
from penstock.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
)


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


MILLIS = st.datetimes().map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
AVRO_VALUES = [
    ("string", TEXTS),
    ("boolean", st.booleans()),
    ("int", VALUES[Types.INT()]),
    ("long", VALUES[Types.LONG()]),
    ("float", SINGLES),
    ("double", st.floats()),
    ("bytes", st.binary(max_size=8)),
    ({"type": "fixed", "name": "Four", "size": 4}, st.binary(min_size=4, max_size=4)),
    ({"type": "enum", "name": "Letter", "symbols": ["A", "B"]}, st.sampled_from("AB")),
    (logical("int", "date"), st.dates()),
    (
        logical("int", "time-millis"),
        st.times().map(lambda each: each.replace(microsecond=each.microsecond // 1000 * 1000)),
    ),
    (logical("long", "time-micros"), st.times()),
    (logical("long", "timestamp-millis"), MILLIS),
    (logical("long", "timestamp-micros"), st.datetimes() | YEARS),
    (logical("long", "local-timestamp-millis"), MILLIS),
    (logical("long", "local-timestamp-micros"), st.datetimes() | YEARS),
    (logical("bytes", "decimal", precision=30, scale=6), st.decimals(-(10**19), 10**19, allow_nan=False, places=6)),
]


@st.composite
def avro_tables(draw):
    def nullable(schema):
        return ["null", schema]

    def nested_avro(inner):
        schema, values = inner
        return st.one_of(
            st.just((schema, values)),
            st.just(({"type": "array", "items": nullable(schema)}, st.lists(st.none() | values, max_size=3))),
            st.just(({"type": "map", "values": nullable(schema)}, st.dictionaries(TEXTS, st.none() | values))),
            st.just((
                {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": nullable(schema)}]},
                st.builds(named_row, st.none() | values),
            )),
        )  # fmt: skip

    schema, values = draw(st.sampled_from(AVRO_VALUES).flatmap(nested_avro))
    rows = draw(st.lists(st.tuples(st.none() | values), min_size=1, max_size=4))
    fields = [{"name": "c0", "type": nullable(schema)}]
    return AvroSchema.parse_string(json.dumps({"type": "record", "name": "R", "fields": fields})), rows


@given(table=avro_tables())
def test_avro_is_read_as_it_was_written(table):
    schema, rows = table
    content = written(AvroBulkWriters.for_generic_record(schema), rows)
    check(read_file(AvroReaders.for_rows(schema), content), rows)
    write = AvroRowSerializationSchema(avro_schema_string=schema.json_text)
    read = AvroRowDeserializationSchema(avro_schema_string=schema.json_text)
    check([read.deserialize(write.serialize(Row(*row))) for row in rows], rows)
    # As dicts, what is read can be written again.
    dicts = AvroReaders.for_generic_record(schema)
    out = io.BytesIO()
    writer = AvroBulkWriters.for_generic_record(schema).create(out)
    for record in read_file(dicts, content):
        writer.add_element(record)
    writer.finish()
    check(read_file(AvroReaders.for_rows(schema), out.getvalue()), rows)


@pytest.mark.parametrize("as_dict", [False, True])
@pytest.mark.parametrize("is_nullable", [False, True])
@pytest.mark.parametrize(
    ("type_schema", "value"),
    [
        ("int", 1.5),
        ("int", 1 << 31),
        ("long", 1.5),
        ("long", 1 << 63),
        ("float", 1e300),
        ("double", (1 << 53) + 1),
        ("double", "1.5"),
        ("boolean", "false"),
        ("null", 5),
        ("string", 5),
        ("bytes", "x"),
        (logical("int", "date"), datetime(2020, 1, 1, 5)),
        (logical("int", "time-millis"), time(1, 2, 3, 4)),
        (logical("long", "time-micros"), time(1, 2, 3, tzinfo=EAST)),
        (logical("long", "timestamp-millis"), datetime(2020, 1, 1, 0, 0, 0, 4)),
        (logical("long", "timestamp-micros"), Instant(5, 1)),
        (logical("long", "timestamp-millis"), Instant(5, 1000)),
        (logical("long", "local-timestamp-millis"), datetime(2020, 1, 1, 0, 0, 0, 4)),
        (logical("long", "local-timestamp-micros"), datetime(2020, 1, 1, tzinfo=EAST)),
        (logical("bytes", "decimal", precision=5, scale=2), Decimal("1.234")),
        (logical("bytes", "decimal", precision=5, scale=2), Decimal("NaN")),
    ],
)
def test_avro_refuses_values_that_a_type_cannot_hold(as_dict, is_nullable, type_schema, value):
    field_type = ["null", type_schema] if is_nullable and type_schema != "null" else type_schema
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": field_type}]})
    element = {"a": value} if as_dict else Row(value)
    writer = AvroBulkWriters.for_generic_record(AvroSchema.parse_string(text)).create(io.BytesIO())
    with pytest.raises(ValueError, match="does not fit the Avro schema"):
        writer.add_element(element)
    with pytest.raises(ValueError, match="does not fit the Avro schema"):
        AvroRowSerializationSchema(avro_schema_string=text).serialize(element)


@pytest.mark.parametrize("type_schema", [each for each, _ in AVRO_VALUES])
def test_avro_refuses_none_where_the_schema_has_no_null(type_schema):
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": type_schema}]})
    for element in (Row(None), {"a": None}):
        with pytest.raises(ValueError, match="does not fit the Avro schema"):
            AvroRowSerializationSchema(avro_schema_string=text).serialize(element)


def test_dicts_without_a_field_have_the_default_of_the_avro_schema():
    fields = [{"name": "a", "type": "int", "default": 7}, {"name": "b", "type": "int"}]
    schema = AvroSchema.parse_string(json.dumps({"type": "record", "name": "R", "fields": fields}))
    out = io.BytesIO()
    writer = AvroBulkWriters.for_generic_record(schema).create(out)
    writer.add_element({"b": 1})
    writer.finish()
    assert read_file(AvroReaders.for_generic_record(schema), out.getvalue()) == [{"a": 7, "b": 1}]


@given(table=avro_tables())
def test_parquet_of_an_avro_schema_is_read_as_it_was_written(table):
    schema, rows = table
    try:
        content = written(AvroParquetWriters.for_generic_record(schema), rows)
    except ValueError as refusal:
        assert has_micros(rows) and "not exact to 1000 microseconds" in str(refusal)
        return
    found = read_file(AvroParquetReaders.for_generic_record(schema), content)
    check([(each["c0"],) for each in found], [tuple(map(as_dicts, row)) for row in rows])


def as_dicts(value):
    if isinstance(value, Row):
        return {name: as_dicts(value[name]) for name in value._fields}
    if isinstance(value, list):
        return list(map(as_dicts, value))
    return {key: as_dicts(each) for key, each in value.items()} if isinstance(value, dict) else value
