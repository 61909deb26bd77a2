"""The looks with a declared type were recorded from PyFlink 2.3's print()."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Instant, Row, RowKind, Types
from penstock.common.formatting import format_value

T = Types


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (("hi", 1), "(hi,1)"),
        (("a", ("b", None, True)), "(a,(b,None,True))"),
        ((), "()"),
        (Row("a", 1), "+I[a, 1]"),
        (Row(name="a", n=(1, 2)), "+I[a, (1,2)]"),
        (Row.of_kind(RowKind.UPDATE_BEFORE, 1), "-U[1]"),
        (["a", ("b", 1)], "['a', ('b', 1)]"),
        ({"a": True}, "{'a': True}"),
        (None, "None"),
        (1e10, "10000000000.0"),
        ("plain", "plain"),
    ],
)
def test_untyped_tuples_and_rows_look_as_in_flink_and_the_rest_as_in_python(value, text):
    assert format_value(value) == text
    assert format_value(value, T.PICKLED_BYTE_ARRAY()) == text


@pytest.mark.parametrize(
    ("value", "type_info", "text"),
    [
        ("a", T.STRING(), "a"),
        (True, T.BOOLEAN(), "true"),
        (-5, T.INT(), "-5"),
        (2**40, T.LONG(), "1099511627776"),
        (1.0, T.DOUBLE(), "1.0"),
        (1e7, T.DOUBLE(), "1.0E7"),
        (1e-3, T.DOUBLE(), "0.001"),
        (1e-4, T.DOUBLE(), "1.0E-4"),
        (123456789.125, T.DOUBLE(), "1.23456789125E8"),
        (9999999.0, T.DOUBLE(), "9999999.0"),
        (1e100, T.DOUBLE(), "1.0E100"),
        (math.nan, T.DOUBLE(), "NaN"),
        (-math.inf, T.DOUBLE(), "-Infinity"),
        (-0.0, T.DOUBLE(), "-0.0"),
        (0.1 + 0.2, T.DOUBLE(), "0.30000000000000004"),
        (1.2345e-10, T.DOUBLE(), "1.2345E-10"),
        (-1234567.5, T.DOUBLE(), "-1234567.5"),
        (0.1, T.FLOAT(), "0.1"),
        (3.14159, T.FLOAT(), "3.14159"),
        (1e-5, T.FLOAT(), "1.0E-5"),
        (16777216.0, T.FLOAT(), "1.6777216E7"),
        (1e300, T.FLOAT(), "Infinity"),
        (Decimal("1.50"), T.BIG_DEC(), "1.50"),
        (["a", "b"], T.LIST(T.STRING()), "[a, b]"),
        ([], T.LIST(T.STRING()), "[]"),
        ({"x": 1, "y": 2}, T.MAP(T.STRING(), T.INT()), "{x=1, y=2}"),
        ({"a": True}, T.MAP(T.STRING(), T.BOOLEAN()), "{a=true}"),
        (datetime.date(2020, 1, 2), T.SQL_DATE(), "2020-01-02"),
        (datetime.time(3, 4, 5, 123000), T.SQL_TIME(), "03:04:05"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5), T.SQL_TIMESTAMP(), "2020-01-02 03:04:05.0"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5, 120000), T.SQL_TIMESTAMP(), "2020-01-02 03:04:05.12"),
        (Instant.of_epoch_milli(1577934245123), T.INSTANT(), "2020-01-02T03:04:05.123Z"),
        (Instant.of_epoch_milli(0), T.INSTANT(), "1970-01-01T00:00:00Z"),
        (Instant(0, 1_000), T.INSTANT(), "1970-01-01T00:00:00.000001Z"),
        (
            ("a", (1, True), Row("z", None)),
            T.TUPLE([T.STRING(), T.TUPLE([T.INT(), T.BOOLEAN()]), T.ROW([T.STRING(), T.INT()])]),
            "(a,(1,true),+I[z, null])",
        ),
        (
            ([1, 2], ["x"], b"ab\xff"),
            T.TUPLE([T.PRIMITIVE_ARRAY(T.INT()), T.BASIC_ARRAY(T.STRING()), T.PRIMITIVE_ARRAY(T.BYTE())]),
            "([1, 2],[x],[97, 98, -1])",
        ),
        (None, T.STRING(), "null"),
        (None, T.LIST(T.INT()), "null"),
        (None, T.ROW([T.INT()]), "null"),
    ],
)
def test_declared_types_look_as_in_java(value, type_info, text):
    assert format_value(value, type_info) == text


def test_a_tuple_list_or_dict_declared_as_row_prints_as_a_row():
    row_type = T.ROW_NAMED(["a", "b"], [T.STRING(), T.BOOLEAN()])
    for value in (("x", True), ["x", True], {"b": True, "a": "x"}, Row("x", True)):
        assert format_value(value, row_type) == "+I[x, true]"


def test_field_names_of_a_row_type_pick_the_fields_of_a_dict_though_equal_types_may_name_them_otherwise():
    types = [T.ROW_NAMED(names, [T.INT(), T.INT()]) for names in (["a", "b"], ["b", "a"])]
    assert types[0] == types[1]
    assert [format_value({"a": 1, "b": 2}, t) for t in types] == ["+I[1, 2]", "+I[2, 1]"]


def test_a_value_that_does_not_fit_its_declared_type_still_prints():
    assert format_value(5, T.TUPLE([T.INT()])) == "5"
    assert format_value((1, True), T.TUPLE([T.INT()])) == "(1,true)"
    assert format_value("ab", T.LIST(T.STRING())) == "ab"
    assert format_value([True, {"k": None}], T.STRING()) == "[true, {k=null}]"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_reads_back_from_its_text(number):
    assert float(format_value(number, T.DOUBLE())) == number


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_float_reads_back_from_its_text(number):
    text = format_value(number, T.FLOAT())
    assert struct.pack("f", float(text)) == struct.pack("f", number)
    assert len(text.lstrip("-").replace(".", "").split("E")[0].strip("0")) <= 9
