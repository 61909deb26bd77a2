"""Which Spark type shows Python values, and what each value becomes."""

from __future__ import annotations

import datetime
import decimal
import enum
import pickle
from collections import namedtuple
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row
from penstock.datastream.window import TimeWindow
from penstock.runtime.state.codec import decode_state
from penstock.state_processor.shapes import merged, shape_of

Point = namedtuple("Point", "x y")
NOON = datetime.datetime(2024, 5, 1, 12)


class Colour(enum.Enum):
    RED = 1


@dataclass
class Total:
    count: int
    words: list[str]


class Plain:
    def __init__(self):
        self.seen = 3


def column(*values):
    """The type of a column with these values, and what they are in it."""
    shape = merged(map(shape_of, values))
    return shape.ddl, pa.array([shape.converted(value) for value in values], shape.arrow).to_pylist()


CASES = [
    (True, "boolean", True),
    (7, "bigint", 7),
    (2.5, "double", 2.5),
    ("a", "string", "a"),
    (b"a", "binary", b"a"),
    (None, "string", None),
    (NOON.date(), "date", NOON.date()),
    (NOON, "timestamp_ntz", NOON),
    (NOON.replace(tzinfo=datetime.timezone.utc), "timestamp", NOON.replace(tzinfo=datetime.timezone.utc)),
    (decimal.Decimal("1.5"), "decimal(38,18)", decimal.Decimal("1.5")),
    (decimal.Decimal("-12345678901234567890.5"), "decimal(38,18)", decimal.Decimal("-12345678901234567890.5")),
    (decimal.Decimal("0.100000000000000000000"), "decimal(38,18)", decimal.Decimal("0.1")),
    (decimal.Decimal("0.1000000000000000001"), "string", '"0.1000000000000000001"'),
    (Colour.RED, "string", "RED"),
    ((1, "a"), "struct<`_1`:bigint,`_2`:string>", {"_1": 1, "_2": "a"}),
    (Point(1, 2), "struct<`x`:bigint,`y`:bigint>", {"x": 1, "y": 2}),
    (TimeWindow(0, 5), "struct<`_1`:bigint,`_2`:bigint>", {"_1": 0, "_2": 5}),
    (Row(n=1, name="x"), "struct<`n`:bigint,`name`:string>", {"n": 1, "name": "x"}),
    (Row(1, 2.0), "struct<`_1`:bigint,`_2`:double>", {"_1": 1, "_2": 2.0}),
    (Total(2, ["a"]), "struct<`count`:bigint,`words`:array<string>>", {"count": 2, "words": ["a"]}),
    ([1, None], "array<bigint>", [1, None]),
    ({3}, "array<bigint>", [3]),
    ({"a": (1,)}, "map<string,struct<`_1`:bigint>>", [("a", {"_1": 1})]),
    ({(1, 2): 3}, "map<struct<`_1`:bigint,`_2`:bigint>,bigint>", [({"_1": 1, "_2": 2}, 3)]),
    (Row(**{"a`b": 1}), "struct<`a``b`:bigint>", {"a`b": 1}),
    # No type of their own.
    (1 << 70, "string", str(1 << 70)),
    ((), "string", "[]"),
    ({None: 1}, "string", '{"null": 1}'),
    (Plain(), "string", '{"seen": 3}'),
    (decimal.Decimal("1e30"), "string", '"1E+30"'),
]


@pytest.mark.parametrize(("value", "ddl", "shown"), CASES, ids=lambda each: str(each)[:30])
def test_value_has_a_type(value, ddl, shown):
    assert column(value) == (ddl, [shown])


def test_none_is_a_value_of_every_type():
    assert column(None, 1, None) == ("bigint", [None, 1, None])


def test_whole_numbers_among_fractions_are_fractions():
    assert column(1, 2.5) == ("double", [1.0, 2.5])


def test_values_without_a_type_in_common_are_json():
    assert column(1, "a", (2, None)) == ("string", ["1", '"a"', "[2, null]"])
    assert column((1,), (1, 2)) == ("string", ["[1]", "[1, 2]"])
    assert column([1, "a"]) == ("array<string>", [["1", '"a"']])


def test_fields_that_some_objects_lack_are_null_there():
    assert column(Row(a=1), Row(b="x", a=2)) == (
        "struct<`a`:bigint,`b`:string>",
        [{"a": 1, "b": None}, {"a": 2, "b": "x"}],
    )


def test_empty_containers_take_the_type_of_the_others():
    assert column([], [1]) == ("array<bigint>", [[], [1]])
    assert column({}, {"a": 1.5}) == ("map<string,double>", [[], [("a", 1.5)]])


def test_object_without_a_form_in_json_is_pickled():
    ddl, (shown,) = column(complex(1, 2))
    assert (ddl, decode_state(shown)) == ("binary", complex(1, 2))


def test_nothing_is_lost_where_some_values_have_no_form_in_json():
    ddl, shown = column(1, [complex(1, 2)])
    assert (ddl, [decode_state(each) for each in shown]) == ("binary", [1, [complex(1, 2)]])


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.decimals(),
        st.text(max_size=3),
        st.binary(max_size=3),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(lambda a, b: Row(a=a, b=b), inner, inner),
        st.builds(complex, st.floats(0, 1)),
    ),
    max_leaves=6,
)


@given(st.lists(values, min_size=1, max_size=6))
def test_any_values_fit_into_one_column(several):
    _, shown = column(*several)
    assert [each is None for each in shown] == [each is None for each in several]


@given(st.lists(values, max_size=6))
def test_type_is_the_same_when_parts_were_looked_at_in_other_processes(several):
    parts = [merged(map(shape_of, several[at::2])) for at in range(2)]
    together = merged(pickle.loads(pickle.dumps(parts)))
    assert merged(map(shape_of, several[0::2] + several[1::2])).ddl == together.ddl
