"""Values of every type, and how the tests of formats write them, read them and compare."""

from __future__ import annotations

import io
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.common.time import Instant
from penstock.datastream.connectors.file_system.formats import FileToRead

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


def has_micros(value):
    if isinstance(value, (list, tuple, Row)):
        return any(map(has_micros, value))
    if isinstance(value, dict):
        return any(map(has_micros, [*value, *value.values()]))
    return isinstance(value, time) and value.microsecond % 1000 != 0


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
