"""What a format writes, it reads back as it was, or it refuses to write it: for all types and for awkward values."""

from __future__ import annotations

import io
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from round_trips import BASIC, BYTES, MAPS, MISFITS, TEXTS, VALUES, check, named_row, nested, read_file, tables, written

from penstock.common import Row, Types
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.serialization import SimpleStringSchema
from penstock.datastream.connectors import LineEncoder, StreamFormat
from penstock.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from penstock.datastream.formats.csv_schema import CsvColumn
from penstock.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema

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
    for row in rows:  # Rows that cannot be distinguished from others are refused one by one.
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
