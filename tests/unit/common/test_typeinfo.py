from __future__ import annotations

import datetime
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Instant, Row, RowKind, Types
from penstock.common.typeinfo import BasicType, BasicTypeInfo, ExternalTypeInfo, LocalTimeTypeInfo, RowTypeInfo

BASIC = [Types.STRING, Types.BYTE, Types.BOOLEAN, Types.SHORT, Types.INT, Types.LONG, Types.FLOAT, Types.DOUBLE]
BASIC += [Types.CHAR, Types.BIG_INT, Types.BIG_DEC, Types.INSTANT]
OTHER = [Types.SQL_DATE, Types.SQL_TIME, Types.SQL_TIMESTAMP, Types.PICKLED_BYTE_ARRAY]

types = st.recursive(
    st.sampled_from([make() for make in BASIC + OTHER]),
    lambda inner: st.one_of(
        inner.map(Types.LIST),
        inner.map(Types.OBJECT_ARRAY),
        inner.map(ExternalTypeInfo),
        st.tuples(inner, inner).map(lambda pair: Types.MAP(*pair)),
        st.lists(inner, max_size=3).map(Types.TUPLE),
        st.lists(inner, max_size=3).map(Types.ROW),
    ),
    max_leaves=5,
)


@given(types)
def test_a_type_survives_pickling_and_hashes_as_its_equal(type_info):
    back = pickle.loads(pickle.dumps(type_info))
    assert back == type_info and hash(back) == hash(type_info) and repr(back) == repr(type_info)


@given(types, types)
def test_types_with_different_looks_differ(one, other):
    assert (one == other) == (repr(one) == repr(other))


def test_looks_as_in_pyflink():
    row = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.STRING())])
    assert str(row) == "RowTypeInfo(a: Integer, b: ListTypeInfo<String>)"
    assert str(Types.ROW([Types.LONG()])) == "RowTypeInfo(Long)"
    assert str(Types.TUPLE([Types.BIG_DEC(), Types.SQL_DATE()])) == "TupleTypeInfo(BigDecimal, DateTypeInfo)"
    assert str(Types.MAP(Types.INT(), Types.CHAR())) == "MapTypeInfo<Integer, Char>"
    assert str(Types.PRIMITIVE_ARRAY(Types.BYTE())) == "PrimitiveArrayTypeInfo<Byte>"
    assert str(Types.PICKLED_BYTE_ARRAY()) == "PickledByteArrayTypeInfo"
    assert str(LocalTimeTypeInfo(LocalTimeTypeInfo.TimeType.LOCAL_DATE)) == "LocalTimeTypeInfo<LOCAL_DATE>"


def test_row_fields_have_names_types_and_positions():
    named = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    assert named.get_field_names() == ["a", "b"]
    assert named.get_field_types() == [Types.INT(), Types.STRING()]
    assert named.get_field_index("b") == 1
    assert Types.ROW([Types.INT(), Types.INT()]).get_field_names() == ["f0", "f1"]
    assert named == Types.ROW([Types.INT(), Types.STRING()])
    with pytest.raises(ValueError, match="has no field 'c'"):
        named.get_field_index("c")


def test_wrong_types_are_refused_where_they_are_written():
    with pytest.raises(TypeError, match=r"PrimitiveArrayTypeInfo cannot hold String.*OBJECT_ARRAY"):
        Types.PRIMITIVE_ARRAY(Types.STRING())
    assert Types.BASIC_ARRAY(Types.STRING())
    with pytest.raises(TypeError, match="BasicArrayTypeInfo cannot hold ListTypeInfo"):
        Types.BASIC_ARRAY(Types.LIST(Types.INT()))
    with pytest.raises(TypeError, match=r"field 1 of TupleTypeInfo must have a type such as Types.STRING\(\)"):
        Types.TUPLE([Types.INT(), str])
    with pytest.raises(ValueError, match=r"2 names .* for 1 types"):
        Types.ROW_NAMED(["a", "b"], [Types.INT()])
    with pytest.raises(TypeError, match="takes a BasicType"):
        BasicTypeInfo("INT")


def test_instant_is_the_same_type_however_it_was_made():
    assert Types.INSTANT() == BasicTypeInfo(BasicType.INSTANT)
    assert hash(Types.INSTANT()) == hash(BasicTypeInfo(BasicType.INSTANT))


@given(st.dates())
def test_date_survives_its_internal_form(date):
    info = Types.SQL_DATE()
    assert info.from_internal_type(info.to_internal_type(date)) == date


@given(st.times())
def test_time_survives_its_internal_form(time):
    info = Types.SQL_TIME()
    assert info.from_internal_type(info.to_internal_type(time)) == time


@given(st.datetimes(datetime.datetime(1971, 1, 1), datetime.datetime(2100, 1, 1)))
def test_timestamp_survives_its_internal_form(moment):
    # Hours that a change to winter time repeats are ambiguous without a zone, so the comparison is in UTC.
    moment = moment.replace(tzinfo=datetime.timezone.utc)
    info = Types.SQL_TIMESTAMP()
    back = info.from_internal_type(info.to_internal_type(moment))
    assert back.astimezone(datetime.timezone.utc).replace(fold=0) == moment


@given(st.integers(-(10**13), 10**13))
def test_instant_survives_its_internal_form(millis):
    instant, info = Instant.of_epoch_milli(millis), Types.INSTANT()
    assert info.from_internal_type(info.to_internal_type(instant)) == instant


def test_none_stays_none():
    for info in (
        Types.SQL_DATE(),
        Types.SQL_TIME(),
        Types.SQL_TIMESTAMP(),
        Types.INSTANT(),
        Types.ROW([]),
        Types.INT(),
    ):
        assert info.to_internal_type(None) is None and info.from_internal_type(None) is None


def test_rows_tuples_dicts_and_objects_fit_a_row_type():
    class Event:
        def __init__(self) -> None:
            self.day, self.n = datetime.date(1970, 1, 2), 7

    info: RowTypeInfo = Types.ROW_NAMED(["day", "n"], [Types.SQL_DATE(), Types.INT()])
    day = datetime.date(1970, 1, 2)
    for value in (Row(day, 7), Row(n=7, day=day), (day, 7), [day, 7], {"day": day, "n": 7}, Event()):
        assert info.to_internal_type(value) == (RowKind.INSERT.value, 1, 7)
    assert info.to_internal_type(Row.of_kind(RowKind.DELETE, day, 7))[0] == RowKind.DELETE.value
    with pytest.raises(ValueError, match=r"5 does not fit RowTypeInfo"):
        info.to_internal_type(5)
    with pytest.raises(ValueError, match=r"has 1 fields, but .* declares 2"):
        info.to_internal_type((day,))


def test_tuples_and_lists_fit_a_tuple_type():
    info = Types.TUPLE([Types.SQL_DATE(), Types.INT()])
    assert info.to_internal_type([datetime.date(1970, 1, 3), 1]) == (2, 1)
    with pytest.raises(ValueError, match="does not fit TupleTypeInfo"):
        info.to_internal_type("ab")
