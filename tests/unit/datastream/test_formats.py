from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.common import CsvRowDeserializationSchema as CsvFromCommon
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.time import Instant
from penstock.common.typeinfo import Types
from penstock.common.types import Row
from penstock.datastream.formats.avro import AvroRowDeserializationSchema, AvroSchema, GenericRecordAvroTypeInfo
from penstock.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from penstock.datastream.formats.iso_times import parse_instant, parse_time, parse_timestamp
from penstock.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from penstock.datastream.formats.orc import OrcBulkWriters
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.table.types import DataTypes

ABC = Types.ROW_NAMED(["a", "b", "c"], [Types.STRING(), Types.INT(), Types.DOUBLE()])
TIMES = Types.ROW_NAMED(
    ["a", "b", "c", "d"], [Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.BIG_DEC()]
)
NESTED = Types.ROW_NAMED(
    ["m", "l", "r", "y", "t"],
    [
        Types.MAP(Types.STRING(), Types.INT()),
        Types.OBJECT_ARRAY(Types.INT()),
        Types.ROW_NAMED(["q"], [Types.LONG()]),
        Types.PRIMITIVE_ARRAY(Types.BYTE()),
        Types.BOOLEAN(),
    ],
)
NOON = (date(2020, 1, 2), time(3, 4, 5), datetime(2020, 1, 2, 3, 4, 5, 678000), Decimal("1.50"))


def csv_writer(type_info=ABC):
    return CsvRowSerializationSchema.Builder(type_info)


def csv_reader(type_info=ABC):
    return CsvRowDeserializationSchema.Builder(type_info)


def json_reader(type_info=ABC):
    return JsonRowDeserializationSchema.builder().type_info(type_info)


def json_writer(type_info=ABC):
    return JsonRowSerializationSchema.builder().with_type_info(type_info).build()


# What Flink's own schemas give for the same rows and settings.
@pytest.mark.parametrize(
    ("row", "line"),
    [
        (("x", 1, 2.5), b"x,1,2.5\n"),
        (("x y", 1, 2.0), b'"x y",1,2.0\n'),
        (("a,b", 1, 1e10), b'"a,b",1,1.0E10\n'),
        (('q"q', 1, 0.1), b'"q""q",1,0.1\n'),
        ((None, None, None), b",,\n"),
        (("", 1, 1.0), b",1,1.0\n"),
        (("l\nx", 1, 1.0), b'"l\nx",1,1.0\n'),
        (("#c", -1, 1.0), b'"#c",-1,1.0\n'),
    ],
)
def test_csv_lines_are_written_as_flink_writes_them(row, line):
    assert csv_writer().build().serialize(Row(*row)) == line


def test_csv_settings_for_writing():
    row = Row("a", 1, 1.0)
    unquoted = csv_writer().disable_quote_character()
    assert unquoted.build().serialize(Row("#a b", 1, 1.0)) == b"#a b,1,1.0\n"
    with pytest.raises(ValueError, match=r"'a,b' cannot be written without quotes"):
        unquoted.build().serialize(Row("a,b", 1, 1.0))
    assert unquoted.set_escape_character("\\").build().serialize(Row("a,b", 1, 1.0)) == b"a\\,b,1,1.0\n"
    assert csv_writer().set_escape_character("\\").build().serialize(Row('a"b\\', 1, 1.0)) == b'"a""b\\\\",1,1.0\n'
    assert csv_writer().set_null_literal("NULL").build().serialize(Row(None, 1, 1.0)) == b"NULL,1,1.0\n"
    assert csv_writer().set_line_delimiter("").build().serialize(row) == b"a,1,1.0"
    assert csv_writer().set_field_delimiter("x").build().serialize(row) == b'"a"x1x1.0\n'
    assert csv_writer(TIMES).build().serialize(Row(*NOON)) == b'2020-01-02,03:04:05,"2020-01-02 03:04:05.678",1.50\n'


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"x,1,2.5", ("x", 1, 2.5)),
        (b"x,1,2.5\n", ("x", 1, 2.5)),
        (b'"a,b",1,2', ("a,b", 1, 2.0)),
        (b" x , 1 , 2 ", (" x ", 1, 2.0)),
        (b'"q""q",1,2', ('q"q', 1, 2.0)),
        (b"#c,1,2", ("#c", 1, 2.0)),
        (b"NULL,1,2", ("NULL", 1, 2.0)),
        (b'"",1,2', ("", 1, 2.0)),
    ],
)
def test_csv_lines_are_read_as_flink_reads_them(line, row):
    read = csv_reader().build().deserialize(line)
    assert tuple(read) == row and read.a == row[0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x,1", "3 fields expected, got 2"),
        (b"x,1,2,3", "3 fields expected, got 4"),
        (b"x,,", "field 'b': invalid literal"),
        (b"x,1.0,2", "field 'b': invalid literal"),
        (b"", "there is no row in it"),
    ],
)
def test_broken_csv_lines_are_errors_unless_ignored(line, message):
    with pytest.raises(ValueError, match=message):
        csv_reader().build().deserialize(line)
    ignored = csv_reader().set_ignore_parse_errors(True).build().deserialize(line)
    assert ignored is None or None in tuple(ignored)


def test_a_worker_reads_csv_messages_with_long_fields():
    # A worker imports only the module that the pickled schema names.
    schema = pickle.dumps(CsvRowDeserializationSchema.Builder(Types.ROW([Types.STRING()])).build())
    program = f"import pickle; print(len(pickle.loads({schema!r}).deserialize(b'x' * 200_000)[0]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "200000\n"


def test_csv_settings_for_reading():
    lenient = csv_reader().set_ignore_parse_errors(True)
    assert tuple(lenient.build().deserialize(b"x,abc,1")) == ("x", None, 1.0)
    assert tuple(lenient.build().deserialize(b"x,1")) == ("x", 1, None)
    assert lenient.set_allow_comments(True).build().deserialize(b"#x,1,1") is None
    assert tuple(csv_reader().set_null_literal("NULL").build().deserialize(b"NULL,NULL,1")) == (None, None, 1.0)
    assert tuple(csv_reader().set_escape_character("\\").build().deserialize(b'a\\"b\\,c,1,1')) == ('a"b,c', 1, 1.0)
    nested = Types.ROW([Types.OBJECT_ARRAY(Types.STRING()), Types.BOOLEAN(), Types.ROW([Types.INT(), Types.STRING()])])
    read = csv_reader(nested).build().deserialize(b"x;y,TRUE,1;z")
    assert (read[0], read[1], tuple(read[2])) == (["x", "y"], True, (1, "z"))
    noon = csv_reader(TIMES).build().deserialize(b"2020-01-02,03:04:05,2020-01-02 03:04:05.678,1.50")
    assert tuple(noon) == NOON


ROWS = st.builds(
    Row,
    # The csv module of Python 3.10 refuses NUL.
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30),
    st.integers(-(2**31), 2**31 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)


@example(row=Row("a\u2028b", 1, 0.0))
@given(row=ROWS)
def test_csv_reads_what_it_wrote(row):
    line = csv_writer().set_line_delimiter("").build().serialize(row)
    assert list(csv_reader().build().deserialize(line)) == list(row)


@given(row=ROWS)
def test_json_reads_what_it_wrote(row):
    assert list(json_reader().build().deserialize(json_writer().serialize(row))) == list(row)


def test_csv_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="field_delimiter must be a single character, got 'xx'"):
        csv_writer().set_field_delimiter("xx")
    with pytest.raises(ValueError, match="line_delimiter must be"):
        csv_writer().set_line_delimiter("xx")
    with pytest.raises(TypeError, match="type_info must be a row type"):
        CsvRowDeserializationSchema.Builder(None)
    with pytest.raises(UnsupportedFeatureError, match="a CSV field cannot be a MapTypeInfo"):
        csv_reader(Types.ROW([Types.MAP(Types.STRING(), Types.INT())])).build()


@pytest.mark.parametrize(
    ("message", "row"),
    [
        (b'{"a":"x","b":1,"c":2.5}', ("x", 1, 2.5)),
        (b'{"a":"x","b":1}', ("x", 1, None)),
        (b'{"a":1,"b":"7","c":"2"}', ("1", 7, 2.0)),
        (b'{"a":{"z":1},"b":1.0,"c":1}', ('{"z":1}', 1, 1.0)),
        (b'{"a":"x","b":1,"c":"NaN"}', ("x", 1, pytest.approx(float("nan"), nan_ok=True))),
        (b'{"a":"x","b":1,"c":"-Infinity"}', ("x", 1, float("-inf"))),
        (b'{"a":null}', (None, None, None)),
    ],
)
def test_json_is_read_as_flink_reads_it(message, row):
    assert tuple(json_reader().build().deserialize(message)) == row


def test_json_reads_nested_values_and_times():
    row = json_reader(NESTED).build().deserialize(b'{"m":{"a":1},"l":[1,2],"r":{"q":5},"y":"aGk=","t":"true"}')
    assert (row.m, row.l, row.r.q, row.y, row.t) == ({"a": 1}, [1, 2], 5, b"hi", True)
    message = b'{"a":"2020-01-02","b":"03:04:05Z","c":"2020-01-02T03:04:05.678Z","d":1.50}'
    assert tuple(json_reader(TIMES).build().deserialize(message)) == NOON
    assert json_writer(TIMES).serialize(Row(*NOON)) == message
    assert json_writer(NESTED).serialize(row) == b'{"m":{"a":1},"l":[1,2],"r":{"q":5},"y":"aGk=","t":true}'


@pytest.mark.parametrize("message", [b"[1]", b"nope", b"", b"[" * 100_000], ids=["list", "text", "empty", "deep"])
def test_what_is_no_json_object_is_an_error_unless_ignored(message):
    with pytest.raises(ValueError, match=r"cannot read b.*; call ignore_parse_errors\(\)"):
        json_reader().build().deserialize(message)
    assert json_reader().ignore_parse_errors().build().deserialize(message) is None


def test_json_fields_that_cannot_be_read():
    with pytest.raises(ValueError, match="cannot read"):
        json_reader().build().deserialize(b'{"a":"x","b":"q","c":1}')
    ignoring = json_reader().ignore_parse_errors()
    assert tuple(ignoring.build().deserialize(b'{"a":true,"b":true,"c":1}')) == ("true", None, 1.0)
    assert json_reader().build().deserialize(b"null") is None
    with pytest.raises(ValueError, match="field 'b' is missing"):
        json_reader().fail_on_missing_field().build().deserialize(b'{"a":"x"}')
    with pytest.raises(ValueError, match="exclude each other"):
        ignoring.fail_on_missing_field().build()


# Python 3.10 refuses the short forms.
reads_short_forms = pytest.mark.skipif(sys.version_info < (3, 11), reason="needs datetime.fromisoformat of Python 3.11")


@reads_short_forms
@pytest.mark.parametrize(
    ("text", "seconds", "nanos"),
    [
        ("20240506T070809Z", 1714979289, 0),
        ("20240506T070809.5z", 1714979289, 500_000_000),
        ("20240506T070809.123+0200", 1714972089, 123_000_000),
        ("20240506 070809-0130", 1714984689, 0),
        ("2024-05-06T07+02", 1714971600, 0),
        ("2024-05-06T07:08:09.25-08", 1715008089, 250_000_000),
        ("2024-05-06", 1714953600, 0),
    ],
)
def test_times_in_all_forms_of_iso_8601_are_in_utc_and_keep_their_fraction(text, seconds, nanos):
    moment = parse_timestamp(text)
    assert parse_instant(text) == Instant(seconds, nanos)
    assert (moment.tzinfo, moment) == (
        None,
        datetime(1970, 1, 1) + timedelta(seconds=seconds, microseconds=nanos // 1000),
    )


@pytest.mark.parametrize("text", ["2024-05-06T07:08:09.500+05:30:15", "2024-05-06T07:08:09-00:00:01"])
def test_offsets_with_seconds_are_refused(text):
    for parse in (parse_timestamp, parse_instant):
        with pytest.raises(ValueError, match="has an offset that cannot be read"):
            parse(text)


@reads_short_forms
def test_times_of_day_are_in_utc_and_keep_their_fraction():
    assert parse_time("070809.5Z") == time(7, 8, 9, 500_000) == parse_time("07:08:09.5+00:00")
    for text in ("070809+0100", "07:08:09+01:00"):
        with pytest.raises(ValueError, match="offset"):
            parse_time(text)


@pytest.mark.parametrize("value", [b"5", b"1.5", b"true", b"[1]", b"{}"])
def test_a_json_time_that_is_not_text_cannot_be_read(value):
    message = b'{"d":%b,"t":%b,"ts":%b,"i":%b}' % ((value,) * 4)
    times = Types.ROW_NAMED(
        ["d", "t", "ts", "i"], [Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.INSTANT()]
    )
    with pytest.raises(ValueError, match=r"cannot read b.*expected text"):
        json_reader(times).build().deserialize(message)
    assert tuple(json_reader(times).ignore_parse_errors().build().deserialize(message)) == (None,) * 4


@pytest.mark.parametrize("type_info", [Types.BYTE(), Types.INT(), Types.LONG(), Types.BIG_INT()], ids=str)
def test_a_whole_number_with_a_giant_exponent_is_refused_at_once(type_info):
    numbers = Types.ROW_NAMED(["n"], [type_info])
    with pytest.raises(ValueError, match=r"1E\+999999999"):
        json_reader(numbers).build().deserialize(b'{"n":1e999999999}')
    assert json_reader(numbers).ignore_parse_errors().build().deserialize(b'{"n":-1e999999999}').n is None
    assert json_reader(numbers).build().deserialize(b'{"n":1.2e2}').n == 120


def test_json_is_written_as_flink_writes_it():
    assert json_writer().serialize(Row('x"é', 1, 2.5)) == '{"a":"x\\"é","b":1,"c":2.5}'.encode()
    assert json_writer().serialize(Row(None, 1, 1e20)) == b'{"a":null,"b":1,"c":1.0E20}'
    with pytest.raises(ValueError, match="has 1 fields, but the type has 3"):
        json_writer().serialize(Row("x"))
    with pytest.raises(TypeError, match="a row type is needed, got nothing; call with_type_info"):
        JsonRowSerializationSchema.builder().build()


def test_type_from_json_schema_is_flinks():
    schema = """{"type": "object", "definitions": {"id": {"type": "integer"}}, "properties": {
        "a": {"type": "string"}, "b": {"$ref": "#/definitions/id"}, "c": {"type": ["number", "null"]},
        "e": {"type": "array", "items": {"type": "string"}}, "f": {"type": "string", "format": "date-time"},
        "g": {"type": "object", "properties": {"z": {"type": "boolean"}}},
        "h": {"type": "string", "contentEncoding": "base64"},
        "j": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}}"""
    built = JsonRowDeserializationSchema.builder().json_schema(schema).build().get_produced_type()
    assert built == Types.ROW_NAMED(
        ["a", "b", "c", "e", "f", "g", "h", "j"],
        [
            Types.STRING(),
            Types.BIG_DEC(),
            Types.BIG_DEC(),
            Types.BASIC_ARRAY(Types.STRING()),
            Types.SQL_TIMESTAMP(),
            Types.ROW_NAMED(["z"], [Types.BOOLEAN()]),
            Types.PRIMITIVE_ARRAY(Types.BYTE()),
            Types.ROW([Types.STRING(), Types.BIG_DEC()]),
        ],
    )
    with pytest.raises(ValueError, match=r"<root>.a has no 'type'"):
        JsonRowDeserializationSchema.builder().json_schema('{"type":"object","properties":{"a":{"oneOf":[]}}}')


def test_schemas_pickle():
    assert tuple(pickle.loads(pickle.dumps(json_reader().build())).deserialize(b'{"a":"x"}')) == ("x", None, None)
    assert pickle.loads(pickle.dumps(json_writer())).serialize(Row("x", 1, 1.0)) == b'{"a":"x","b":1,"c":1.0}'
    assert tuple(pickle.loads(pickle.dumps(csv_reader().build())).deserialize(b"x,1,2")) == ("x", 1, 2.0)
    assert pickle.loads(pickle.dumps(csv_writer().build())).serialize(Row("x", 1, 1.0)) == b"x,1,1.0\n"
    assert CsvFromCommon is CsvRowDeserializationSchema


def test_csv_schema_collects_columns_and_characters():
    builder = (
        CsvSchema.builder()
        .add_string_column("s")
        .add_number_column("n")
        .add_boolean_column("b")
        .add_array_column("l", "|", Types.INT())
        .set_column_separator(";")
        .set_use_header()
        .set_null_value("-")
    )
    schema = builder.build()
    assert (len(schema), len(builder), schema.uses_header, schema.null_value) == (4, 4, True, "-")
    assert schema.row_type.get_field_names() == ["s", "n", "b", "l"]
    assert schema.row_type.get_field_types()[1:] == [Types.LONG(), Types.BOOLEAN(), Types.OBJECT_ARRAY(Types.INT())]
    assert CsvSchema.builder().add_columns_from(schema).build().columns == schema.columns
    assert CsvReaderFormat.for_schema(schema).schema == pickle.loads(pickle.dumps(schema))
    assert CsvBulkWriters.for_schema(schema).get_row_type() == schema.row_type
    assert builder.clear_columns().size() == 0
    with pytest.raises(ValueError, match="column separator must be a single character, got '--'"):
        builder.set_column_separator("--")
    with pytest.raises(ValueError, match="there is a column 's' already"):
        builder.add_string_column("s").add_string_column("s")


def test_avro_schemas_are_equal_however_they_are_written(tmp_path):
    schema = AvroSchema.parse_string('{"type": "record", "name": "r", "fields": []}')
    file = tmp_path / "r.avsc"
    file.write_text('{ "type":"record",\n"name":"r", "fields":[] }')
    assert AvroSchema.parse_file(str(file)) == schema and str(schema) == '{"type":"record","name":"r","fields":[]}'
    assert GenericRecordAvroTypeInfo(schema) == GenericRecordAvroTypeInfo(AvroSchema.parse_file(str(file)))
    with pytest.raises(ValueError, match="AvroSchema: not JSON"):
        AvroSchema.parse_string("record r")
    with pytest.raises(UnsupportedFeatureError, match=r"the Java class 'org.example.R' cannot be used here"):
        AvroRowDeserializationSchema(record_class="org.example.R")
    with pytest.raises(TypeError, match="avro_schema_string is missing"):
        AvroRowDeserializationSchema()


def test_formats_take_types_of_tables():
    named = DataTypes.ROW(
        [
            DataTypes.FIELD("i", DataTypes.INT()),
            DataTypes.FIELD("t", DataTypes.VARCHAR(10).not_null()),
            DataTypes.FIELD("a", DataTypes.ARRAY(DataTypes.BIGINT())),
            DataTypes.FIELD("m", DataTypes.MAP(DataTypes.STRING(), DataTypes.DOUBLE())),
            DataTypes.FIELD("r", DataTypes.ROW([DataTypes.FIELD("d", DataTypes.DATE())])),
        ]
    )
    types = [
        Types.INT(),
        Types.STRING(),
        Types.OBJECT_ARRAY(Types.LONG()),
        Types.MAP(Types.STRING(), Types.DOUBLE()),
        Types.ROW_NAMED(["d"], [Types.SQL_DATE()]),
    ]
    expected = Types.ROW_NAMED(list("itamr"), types)
    assert ParquetBulkWriters.for_row_type(named).get_row_type() == expected
    assert OrcBulkWriters.for_row_type(named).get_row_type() == expected
    assert ParquetColumnarRowInputFormat(row_type=named).get_produced_type() == expected
    columns = CsvSchema.builder().add_number_column("n", DataTypes.SMALLINT())
    columns.add_array_column("l", element_type=DataTypes.FLOAT())
    assert columns.build().row_type.get_field_types() == [Types.SHORT(), Types.OBJECT_ARRAY(Types.FLOAT())]


def test_bulk_formats_need_a_row_type():
    assert ParquetColumnarRowInputFormat(ABC).batch_size == 2048
    assert ParquetBulkWriters.for_row_type(ABC).get_row_type() == OrcBulkWriters.for_row_type(ABC).get_row_type() == ABC
    with pytest.raises(TypeError, match=r"OrcBulkWriters.for_row_type: row_type must be a row type"):
        OrcBulkWriters.for_row_type(Types.INT())
    with pytest.raises(ValueError, match="batch_size must be positive"):
        ParquetColumnarRowInputFormat(ABC, batch_size=0)
