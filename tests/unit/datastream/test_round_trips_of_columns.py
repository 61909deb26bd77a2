"""Parquet and ORC files give back what was written to them, or refuse it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from round_trips import (
    BASIC,
    BYTES,
    MAPS,
    MISFITS,
    VALUES,
    check,
    has_micros,
    named_row,
    nested,
    read_file,
    tables,
    written,
)

from penstock.common import Row, Types
from penstock.common.exceptions import ConnectorError, UnsupportedFeatureError
from penstock.common.time import Instant
from penstock.datastream.formats.orc import OrcBulkWriters, OrcColumnarRowInputFormat
from penstock.datastream.formats.parquet import (
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)

FORMATS = {
    "parquet": (ParquetBulkWriters.for_row_type, ParquetColumnarRowInputFormat),
    "orc": (OrcBulkWriters.for_row_type, OrcColumnarRowInputFormat),
}
TUPLES = BASIC.map(lambda each: (Types.TUPLE([each[0], Types.INT()]), st.tuples(each[1], VALUES[Types.INT()])))


def holds(row_type, wanted):
    """True if a type is somewhere in a row type."""
    return any(str(wanted) in str(each) for each in row_type.get_field_types())


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
