from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, RowKind

values = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.tuples(st.integers()))
names = st.text("abcdefgh", min_size=1, max_size=4)
rows = st.one_of(
    st.lists(values, max_size=5).map(lambda v: Row(*v)),
    st.dictionaries(names, values, min_size=1, max_size=5).map(lambda d: Row(**d)),
)


@given(rows, st.sampled_from(RowKind))
def test_pickled_row_comes_back_equal_with_its_kind_and_names(row, kind):
    row.set_row_kind(kind)
    for back in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row)):
        assert back == row
        assert (back.get_row_kind(), repr(back), hash(back)) == (kind, repr(row), hash(row))


@given(st.dictionaries(names, values, min_size=1, max_size=5))
def test_named_rows_are_equal_whatever_the_order_of_their_fields(fields):
    row = Row(**fields)
    reversed_row = Row(**dict(reversed(fields.items())))
    assert row == reversed_row and hash(row) == hash(reversed_row)
    assert row.as_dict() == fields == reversed_row.as_dict()


def test_fields_are_read_and_written_by_name_position_and_attribute():
    row = Row(name="Alice", age=11)
    row["age"] = 12
    row[0] = "Bob"
    assert (row.name, row["age"], row[0], row[0:2], list(row), len(row)) == (
        "Bob",
        12,
        "Bob",
        ["Bob", 12],
        ["Bob", 12],
        2,
    )
    assert "name" in row and "Bob" not in row
    assert "Bob" in Row("Bob")


def test_row_of_names_makes_named_rows():
    person = Row("name", "age")
    assert person("Alice", 11) == Row(name="Alice", age=11)
    with pytest.raises(ValueError, match="names 2 fields, got 3 values"):
        person(1, 2, 3)


def test_as_dict_goes_into_rows_lists_and_dicts_only_when_asked():
    row = Row(key=1, value=Row(a=2), items=[Row(b=3)], map={"k": Row(c=4)})
    assert row.as_dict(True) == {"key": 1, "value": {"a": 2}, "items": [{"b": 3}], "map": {"k": {"c": 4}}}
    assert row.as_dict()["value"] == Row(a=2)
    with pytest.raises(TypeError, match="no field names"):
        Row(1).as_dict()


def test_field_names_can_be_given_later():
    row = Row(1, 2)
    assert row.get_fields_by_names(["x"]) == [1, 2]
    row.set_field_names(["a", "b"])
    assert row.get_fields_by_names(["b", "a"]) == [2, 1]
    with pytest.raises(ValueError, match=r"no field 'c'; its fields are \['a', 'b'\]"):
        row.get_fields_by_names(["c"])


def test_kind_counts_for_equality():
    assert Row.of_kind(RowKind.DELETE, 1) != Row(1)
    assert Row.of_kind(RowKind.DELETE, a=1).get_row_kind() is RowKind.DELETE
    assert Row(1) != Row(a=1) and Row(1) != (1,)
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


def test_looks_as_in_pyflink():
    assert repr(Row("a", 1)) == "<Row('a', 1)>"
    assert str(Row(a="x", b=None)) == "Row(a='x', b=None)"


def test_wrong_use_is_explained():
    with pytest.raises(ValueError, match="either values or name=value pairs"):
        Row(1, a=2)
    with pytest.raises(ValueError, match="no field 'z'"):
        Row(a=1)["z"]
    with pytest.raises(KeyError, match="no field names"):
        Row(1)["z"] = 2
    with pytest.raises(AttributeError, match="no field 'z'"):
        _ = Row(a=1).z
    with pytest.raises(AttributeError):
        Row(a=1).a = 2
