"""What a format writes, it reads back as it was, or it refuses to write it: for all types and for awkward values."""

from __future__ import annotations

import io
import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.common.exceptions import ConnectorError, UnsupportedFeatureError
from penstock.common.serialization import SimpleStringSchema
from penstock.common.time import Instant
from penstock.datastream.connectors import LineEncoder, StreamFormat
from penstock.datastream.connectors.file_system.formats import FileToRead
from penstock.datastream.formats.avro import (
    AvroBulkWriters,
    AvroReaders,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
)
from penstock.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from penstock.datastream.formats.csv_schema import CsvColumn
from penstock.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from penstock.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)

EAST = timezone(timedelta(hours=5, minutes=30))
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())

# --- values of every type, the usual ones and the awkward ones -------------------------------------------------------

TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", '"', '""', ",", ";", "\r", "\n", "\r\n", "#", "# x", "\ufeff", "\ufeffid", "NULL", "null"]
    ),
    st.sampled_from(["NaN", "a,b", 'q"q', "a\rb", "\\", "'", "\u2028", "ä" * 30, "1_0", "true", "2020-01-01"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)
SINGLES = st.floats(width=32)
YEARS = st.sampled_from([datetime.min, datetime(999, 12, 31, 23, 59, 59), datetime(1970, 1, 1), datetime.max])
INSTANTS = st.builds(
    Instant, st.integers(-9_000_000_000, 9_000_000_000), st.sampled_from([0, 1, 999, 1000, 5_000_000, 999_999_999])
)
VALUES = {
    Types.STRING(): TEXTS,
    Types.CHAR(): st.sampled_from('a,"\n é'),
    Types.BOOLEAN(): st.booleans(),
    Types.BYTE(): st.integers(-128, 127),
    Types.SHORT(): st.integers(-(1 << 15), (1 << 15) - 1),
    Types.INT(): st.integers(-(1 << 31), (1 << 31) - 1),
    Types.LONG(): st.integers(-(1 << 63), (1 << 63) - 1),
    Types.BIG_INT(): st.integers(-(10**38) + 1, 10**38 - 1),
    Types.FLOAT(): SINGLES,
    Types.DOUBLE(): st.floats(),
    Types.BIG_DEC(): st.decimals(-(10**19), 10**19, allow_nan=False, places=18) | st.sampled_from([Decimal("1E+3")]),
    Types.SQL_DATE(): st.dates() | st.just(date(1, 2, 3)),
    Types.SQL_TIME(): st.times() | st.sampled_from([time(1, 2, 3), time(1, 2, 3, 4_000)]),
    Types.SQL_TIMESTAMP(): st.datetimes() | YEARS,
    Types.INSTANT(): INSTANTS,
    BYTES: st.binary(max_size=8),
}


def nested(types):
    """Arrays, lists, maps and rows of these types."""

    def around(inner):
        type_info, values = inner
        optional = st.none() | values
        return st.one_of(
            st.just((Types.OBJECT_ARRAY(type_info), st.lists(optional, max_size=3))),
            st.just((Types.LIST(type_info), st.lists(optional, max_size=3))),
            st.just((Types.MAP(Types.STRING(), type_info), st.dictionaries(TEXTS, optional, max_size=3))),
            st.just(
                (
                    Types.ROW_NAMED(["x", "y"], [type_info, Types.INT()]),
                    st.builds(named_row, optional, VALUES[Types.INT()]),
                )
            ),
        )

    return st.recursive(types, lambda inner: inner.flatmap(around), max_leaves=2)


def named_row(*values, names="xyz"):
    row = Row(*values)
    row.set_field_names(list(names[: len(values)]))
    return row


BASIC = st.sampled_from(list(VALUES.items()))
KEYED = st.sampled_from([each for each in VALUES.items() if each[0] not in (Types.STRING(), Types.CHAR(), BYTES)])
MAPS = KEYED.map(
    lambda each: (Types.MAP(each[0], Types.INT()), st.dictionaries(each[1], VALUES[Types.INT()], max_size=3))
)


@st.composite
def tables(draw, types):
    """A row type, and rows of it in which every field may be None."""
    columns = draw(st.lists(types, min_size=1, max_size=3))
    row_type = Types.ROW_NAMED([f"c{at}" for at in range(len(columns))], [each for each, _ in columns])
    rows = draw(st.lists(st.tuples(*(st.none() | values for _, values in columns)), min_size=1, max_size=4))
    return row_type, rows


def same(left, right):
    """True if two values are the same, in type as well; NaN is the same as NaN."""
    if isinstance(left, Row) and isinstance(right, Row):
        return left._fields == right._fields and same(list(left), list(right))
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        # In any order; what is equal may be written in two ways: 1E+3 and 1000.
        return len(left) == len(right) and all(any(same(a, b) for b in right.items()) for a in left.items())
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    return type(left) is type(right) and left == right


def check(read, rows):
    assert [same(list(row), list(expected)) for row, expected in zip(read, rows, strict=True)] == [True] * len(rows), (
        read,
        rows,
    )


def read_file(file_format, content, offset=None):
    file = FileToRead("a", lambda: io.BytesIO(content))
    batches = list(file_format.read_file(file, offset))
    assert not [bad for batch in batches for bad in batch.bad]
    return [record for batch in batches for record in batch.records]


def written(factory, rows):
    out = io.BytesIO()
    writer = factory.create(out)
    for row in rows:
        writer.add_element(Row(*row))
    writer.finish()
    return out.getvalue()


# --- JSON ------------------------------------------------------------------------------------------------------------


def through_json(row_type, rows):
    write = JsonRowSerializationSchema.builder().with_type_info(row_type).build()
    read = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    out = io.BytesIO()
    encoder = LineEncoder(write)
    for row in rows:
        encoder.encode(Row(*row), out)
    return read_file(StreamFormat.line_format(read), out.getvalue())


@given(table=tables(nested(BASIC) | MAPS))
def test_json_reads_what_it_wrote(table):
    row_type, rows = table
    check(through_json(row_type, rows), rows)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_json_has_numbers_that_are_none_in_quotes(number):
    row_type = Types.ROW_NAMED(["a"], [Types.DOUBLE()])
    line = JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(Row(number))
    assert line == {"nan": b'{"a":"NaN"}', "inf": b'{"a":"Infinity"}', "-inf": b'{"a":"-Infinity"}'}[str(number)]
    # Others, and older versions of this format, write them bare.
    read = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    check([read.deserialize(b'{"a":' + line[5:-1].strip(b'"') + b"}")], [(number,)])


# --- CSV -------------------------------------------------------------------------------------------------------------

CSV_TYPES = st.one_of(
    BASIC,
    BASIC.map(lambda each: (Types.OBJECT_ARRAY(each[0]), st.lists(each[1], max_size=3))),
    BASIC.map(
        lambda each: (
            Types.ROW_NAMED(["x", "y"], [each[0], Types.INT()]),
            st.builds(named_row, each[1], VALUES[Types.INT()]),
        )
    ),
)
QUOTES = st.sampled_from(['"', "'", None])


def csv_schema(row_type, header, line_separator, comments, quote, delimiter, null):
    builder = CsvSchema.builder().set_use_header(header).set_line_separator(line_separator).set_allow_comments(comments)
    builder.set_column_separator(delimiter)
    if quote is None:
        builder.disable_quote_char().set_escape_char("\\")
    else:
        builder.set_quote_char(quote)
    if null is not None:
        builder.set_null_value(null)
    for name, type_info in zip(row_type.get_field_names(), row_type.get_field_types(), strict=True):
        builder._add(CsvColumn(name, type_info))
    return builder.build()


@given(
    table=tables(CSV_TYPES),
    header=st.booleans(),
    line_separator=st.sampled_from(["\n", "\r\n", "\r"]),
    comments=st.booleans(),
    quote=QUOTES,
    delimiter=st.sampled_from([",", ";", "\t", "!", "1", "."]),
    null=st.sampled_from([None, "NULL", "#N", ",", "-"]),
)
@example(
    table=(Types.ROW_NAMED(["c0"], [Types.STRING()]), [("",), ("a",), (None,)]),
    header=False, line_separator="\n", comments=False, quote='"', delimiter=",", null=None,
)  # fmt: skip
@example(
    table=(Types.ROW_NAMED(["c0"], [Types.STRING()]), [("#",)]),
    header=False, line_separator="\n", comments=True, quote="!", delimiter="\t", null=None,
)  # fmt: skip
def test_csv_files_are_read_as_they_were_written_or_refused(
    table, header, line_separator, comments, quote, delimiter, null
):
    row_type, rows = table
    schema = csv_schema(row_type, header, line_separator, comments, quote, delimiter, null)
    kept = []
    for row in rows:  # Rows that cannot be told from others are refused one by one.
        try:
            written(CsvBulkWriters.for_schema(schema), [row])
        except ValueError as refusal:
            assert "CSV: " in str(refusal)
        else:
            kept.append(row)
    content = written(CsvBulkWriters.for_schema(schema), kept)
    if null is None:
        types = row_type.get_field_types()
        kept = [tuple(value_of_nothing(each, item) for each, item in zip(types, row, strict=True)) for row in kept]
    check(read_file(CsvReaderFormat.for_schema(schema), content), kept)


def value_of_nothing(type_info, value):
    """Without a text for None, None is written as nothing, which in some columns is a value."""
    empty = {Types.STRING(): "", Types.CHAR(): "", BYTES: b""}
    if value is None:
        return [] if isinstance(type_info, type(Types.OBJECT_ARRAY(Types.INT()))) else empty.get(type_info)
    return value


@given(table=tables(CSV_TYPES), null=st.sampled_from(["NULL", "-"]))
def test_csv_messages_are_read_as_they_were_written_or_refused(table, null):
    row_type, rows = table
    write = CsvRowSerializationSchema.Builder(row_type).set_null_literal(null).build()
    read = CsvRowDeserializationSchema.Builder(row_type).set_null_literal(null).build()
    for row in rows:
        try:
            message = write.serialize(Row(*row))
        except ValueError as refusal:
            assert "CSV: " in str(refusal)
        else:
            check([read.deserialize(message)], [row])


# --- what does not fit -----------------------------------------------------------------------------------------------

MISFITS = [
    (Types.INT(), 1.5),
    (Types.INT(), "1"),
    (Types.INT(), 1 << 31),
    (Types.BYTE(), 128),
    (Types.LONG(), 1 << 63),
    (Types.LONG(), float("nan")),
    (Types.FLOAT(), 1e300),
    (Types.DOUBLE(), (1 << 53) + 1),
    (Types.DOUBLE(), "1.5"),
    (Types.BOOLEAN(), "false"),
    (Types.BIG_DEC(), 0.1),
    (Types.BIG_DEC(), Decimal("NaN")),
    (Types.STRING(), 5),
    (Types.STRING(), b"x"),
    (Types.SQL_DATE(), datetime(2020, 1, 1, 5)),
    (Types.SQL_TIME(), time(1, 2, tzinfo=EAST)),
    (BYTES, "text"),
]


def write_json(row_type, row):
    JsonRowSerializationSchema.builder().with_type_info(row_type).build().serialize(row)


def write_csv(row_type, row):
    CsvRowSerializationSchema.Builder(row_type).build().serialize(row)


@pytest.mark.parametrize("write", [write_json, write_csv])
@pytest.mark.parametrize(("type_info", "value"), MISFITS)
def test_values_that_a_type_cannot_hold_are_refused(write, type_info, value):
    with pytest.raises(ValueError, match="does not fit"):
        write(Types.ROW_NAMED(["a"], [type_info]), Row(value))


@pytest.mark.parametrize(
    ("type_info", "text"),
    [
        (Types.INT(), "1.5"),
        (Types.INT(), "1_000"),
        (Types.BYTE(), "128"),
        (Types.DOUBLE(), "1_0.5"),
        (Types.BIG_DEC(), "NaN"),
        (Types.BOOLEAN(), "yes"),
        (Types.SQL_TIME(), "01:02:03+02:00"),
        (Types.SQL_TIMESTAMP(), "2020-01-01T00:00:00.123456789Z"),
        (Types.INSTANT(), "2020-01-01T00:00:00.1234567891Z"),
        (BYTES, "1;2;3"),
    ],
)
def test_texts_that_a_type_cannot_hold_are_refused(type_info, text):
    row_type = Types.ROW_NAMED(["a"], [type_info])
    with pytest.raises(ValueError, match="cannot read"):
        CsvRowDeserializationSchema.Builder(row_type).build().deserialize(text.encode())
    with pytest.raises(ValueError, match="cannot read"):
        JsonRowDeserializationSchema.builder().type_info(row_type).build().deserialize(f'{{"a":"{text}"}}'.encode())


def test_maps_whose_keys_are_no_text_in_json():
    with pytest.raises(UnsupportedFeatureError, match="use keys of a basic type"):
        JsonRowSerializationSchema.builder().with_type_info(
            Types.ROW([Types.MAP(Types.LIST(Types.INT()), Types.INT())])
        ).build()


# --- offsets ---------------------------------------------------------------------------------------------------------


@given(moment=st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), minutes=st.integers(-14 * 60, 14 * 60))
def test_timestamps_with_an_offset_are_the_same_moment_in_utc(moment, minutes):
    zone = timezone(timedelta(minutes=minutes))
    aware = moment.replace(tzinfo=zone)
    in_utc = aware.astimezone(timezone.utc).replace(tzinfo=None)
    row_type = Types.ROW_NAMED(["a"], [Types.SQL_TIMESTAMP()])
    json_read = JsonRowDeserializationSchema.builder().type_info(row_type).build()
    csv_read = CsvRowDeserializationSchema.Builder(row_type).build()
    for text in (aware.isoformat(), aware.isoformat(" ")):
        assert json_read.deserialize(f'{{"a":"{text}"}}'.encode()).a == in_utc
        assert csv_read.deserialize(text.encode()).a == in_utc
    check(through_json(row_type, [(aware,)]), [(in_utc,)])
    check(
        [csv_read.deserialize(CsvRowSerializationSchema.Builder(row_type).build().serialize(Row(aware)))], [(in_utc,)]
    )


@pytest.mark.parametrize(
    "text", ["2020-01-02T03:04:05+0230", "2020-01-02 03:04:05.5-07", "2020-01-02", "2020-01-02T03:04z"]
)
def test_other_forms_of_timestamps(text):
    row_type = Types.ROW_NAMED(["a"], [Types.SQL_TIMESTAMP()])
    expected = {
        "+0230": datetime(2020, 1, 2, 0, 34, 5),
        ".5-07": datetime(2020, 1, 2, 10, 4, 5, 500_000),
        "01-02": datetime(2020, 1, 2),
        ":04z": datetime(2020, 1, 2, 3, 4),
    }
    read = CsvRowDeserializationSchema.Builder(row_type).build().deserialize(text.encode()).a
    assert read == next(moment for end, moment in expected.items() if text.endswith(end))


# --- lines -----------------------------------------------------------------------------------------------------------


@given(texts=st.lists(TEXTS, max_size=5))
def test_lines_are_read_as_they_were_written_or_refused(texts):
    encoder, out, kept = LineEncoder(SimpleStringSchema()), io.BytesIO(), []
    for text in texts:
        try:
            encoder.encode(text, out)
        except ValueError as refusal:
            assert "LineEncoder: " in str(refusal)
        else:
            kept.append(text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text)
    assert read_file(StreamFormat.line_format(SimpleStringSchema()), out.getvalue()) == kept
    assert read_file(StreamFormat.text_line_format(), out.getvalue()) == kept


# --- Parquet and ORC -------------------------------------------------------------------------------------------------

FORMATS = {
    "parquet": (ParquetBulkWriters.for_row_type, ParquetColumnarRowInputFormat),
    "orc": (OrcBulkWriters.for_row_type, OrcColumnarRowInputFormat),
}
TUPLES = BASIC.map(lambda each: (Types.TUPLE([each[0], Types.INT()]), st.tuples(each[1], VALUES[Types.INT()])))


def holds(row_type, wanted):
    """True if a type is somewhere in a row type."""
    return any(str(wanted) in str(each) for each in row_type.get_field_types())


def has_micros(value):
    if isinstance(value, (list, tuple, Row)):
        return any(map(has_micros, value))
    if isinstance(value, dict):
        return any(map(has_micros, [*value, *value.values()]))
    return isinstance(value, time) and value.microsecond % 1000 != 0


@pytest.mark.parametrize("kind", list(FORMATS))
@given(table=tables(nested(BASIC) | TUPLES | MAPS))
def test_columns_are_read_as_they_were_written_or_refused(kind, table):
    row_type, rows = table
    write, read = FORMATS[kind]
    if kind == "orc" and holds(row_type, Types.SQL_TIME()):
        with pytest.raises(UnsupportedFeatureError, match="a time of day"):
            write(row_type)
        return
    if has_micros(rows):
        with pytest.raises(ValueError, match="not exact to 1000 microseconds"):
            written(write(row_type), rows)
        return
    content = written(write(row_type), rows)
    try:
        found = read_file(read(row_type), content)
    except ConnectorError as refusal:
        # Elsewhere such files can be read.
        assert kind == "orc" and "out of range for nanosecond resolution" in str(refusal)
    else:
        check(found, rows)


@pytest.mark.parametrize("kind", list(FORMATS))
@pytest.mark.parametrize(("type_info", "value"), MISFITS)
def test_columns_refuse_values_that_their_type_cannot_hold(kind, type_info, value):
    if kind == "orc" and type_info == Types.SQL_TIME():
        return
    with pytest.raises(ValueError, match="column 'a' is declared as"):
        written(FORMATS[kind][0](Types.ROW_NAMED(["a"], [type_info])), [(value,)])


@pytest.mark.parametrize("kind", list(FORMATS))
def test_instants_keep_their_nanoseconds_wherever_they_are(kind):
    types = [
        Types.LIST(Types.INSTANT()),
        Types.MAP(Types.INSTANT(), Types.INSTANT()),
        Types.ROW_NAMED(["x"], [Types.INSTANT()]),
    ]
    row_type = Types.ROW_NAMED(["l", "m", "r"], types)
    moment = Instant(1_700_000_000, 123_456_789)
    row = ([moment, None], {moment: moment}, named_row(moment))
    write, read = FORMATS[kind]
    check(read_file(read(row_type), written(write(row_type), [row])), [row])


@pytest.mark.parametrize("kind", list(FORMATS))
@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_a_file_that_lacks_every_column_has_its_rows(kind, batch_size):
    write, read = FORMATS[kind]
    content = written(write(Types.ROW_NAMED(["a"], [Types.INT()])), [(number,) for number in range(7)])
    other = read(Types.ROW_NAMED(["b", "c"], [Types.STRING(), Types.INT()]), batch_size=batch_size)
    assert [tuple(row) for row in read_file(other, content)] == [(None, None)] * 7
    assert len(read_file(other, content, offset=5)) == 2


CHANGED = [
    (Types.INT(), Types.STRING(), 5, "5"),
    (Types.INT(), Types.LONG(), 5, 5),
    (Types.LONG(), Types.INT(), 5, 5),
    (Types.LONG(), Types.INT(), 1 << 40, ConnectorError),
    (Types.INT(), Types.DOUBLE(), 5, 5.0),
    (Types.LONG(), Types.DOUBLE(), (1 << 53) + 1, ConnectorError),
    (Types.DOUBLE(), Types.INT(), 1.5, ConnectorError),
    (Types.DOUBLE(), Types.INT(), 2.0, 2),
    (Types.DOUBLE(), Types.FLOAT(), 0.1, 0.10000000149011612),
    (Types.DOUBLE(), Types.FLOAT(), 1e300, ConnectorError),
    (Types.FLOAT(), Types.DOUBLE(), 0.5, 0.5),
    (Types.INT(), Types.BIG_DEC(), 5, Decimal(5)),
    (Types.INT(), Types.BIG_INT(), 5, 5),
    (Types.BIG_DEC(), Types.BIG_INT(), Decimal("1.5"), ConnectorError),
    (Types.BIG_DEC(), Types.BIG_INT(), Decimal("2"), 2),
    (Types.BIG_DEC(), Types.DOUBLE(), Decimal("0.5"), ConnectorError),
    (Types.STRING(), Types.INT(), "5", ConnectorError),
    (Types.STRING(), Types.BOOLEAN(), "true", ConnectorError),
    (Types.BOOLEAN(), Types.INT(), True, ConnectorError),
    (Types.LONG(), Types.SQL_TIMESTAMP(), 5, ConnectorError),
    (Types.SQL_TIMESTAMP(), Types.SQL_DATE(), datetime(2020, 1, 1, 5), ConnectorError),
    (Types.INSTANT(), Types.SQL_TIMESTAMP(), Instant(5, 1), ConnectorError),
    (Types.INSTANT(), Types.SQL_TIMESTAMP(), Instant(5, 1000), datetime(1970, 1, 1, 0, 0, 5, 1)),
    (Types.SQL_TIMESTAMP(), Types.INSTANT(), datetime(1969, 12, 31, 23, 59, 59, 1), Instant(-1, 1000)),
    (Types.LIST(Types.INT()), Types.LIST(Types.STRING()), [5], ["5"]),
    (Types.LIST(Types.INT()), Types.INT(), [5], ConnectorError),
    (Types.MAP(Types.STRING(), Types.INT()), Types.LIST(Types.INT()), {"a": 1}, ConnectorError),
    (
        Types.ROW_NAMED(["x"], [Types.INT()]),
        Types.ROW_NAMED(["x", "y"], [Types.LONG(), Types.INT()]),
        Row(5),
        named_row(5, None),
    ),
    (Types.ROW_NAMED(["x"], [Types.INT()]), Types.TUPLE([Types.INT(), Types.INT()]), Row(5), ConnectorError),
    (BYTES, Types.STRING(), b"x", ConnectorError),
]


@pytest.mark.parametrize("kind", list(FORMATS))
@pytest.mark.parametrize(("was", "declared", "value", "expected"), CHANGED)
def test_columns_of_another_type_are_converted_or_refused(kind, was, declared, value, expected):
    write, read = FORMATS[kind]
    content = written(write(Types.ROW_NAMED(["a"], [was])), [(value,), (None,)])
    read_format = read(Types.ROW_NAMED(["a"], [declared]))
    if kind == "parquet":
        read_format.is_utc_timestamp = True
    if expected is ConnectorError:
        with pytest.raises(ConnectorError, match=r"file a: column 'a' is .* in the file and declared as"):
            read_file(read_format, content)
    else:
        check(read_file(read_format, content), [(expected,), (None,)])


# --- Avro ------------------------------------------------------------------------------------------------------------


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
