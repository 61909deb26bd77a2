"""Declared types take effect where a chain of functions ends, as in PyFlink, and touch nothing that fits already."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration, Row, Types
from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.declared_types import as_declared, batches_of, collected_as, converter_of
from penstock.runtime.outputs import declared_form

BITS = {Types.BYTE: 8, Types.SHORT: 16, Types.INT: 32, Types.LONG: 64}


@given(st.sampled_from(sorted(BITS, key=BITS.__getitem__)), st.integers(-(2**70), 2**70))
def test_whole_numbers_of_a_collection_wrap_as_java_does(make: Any, number: int) -> None:
    size = BITS[make] // 8
    low = (number % 2 ** BITS[make]).to_bytes(size, "big")
    assert collected_as(number, make()) == int.from_bytes(low, "big", signed=True)


@given(st.floats(width=32, allow_nan=False))
def test_numbers_of_single_precision_stay_what_they_are(number: float) -> None:
    assert as_declared(number, Types.FLOAT()) == number


@given(st.floats(-1e30, 1e30))
def test_float_is_single_precision(number: float) -> None:
    assert as_declared(number, Types.FLOAT()) == struct.unpack("f", struct.pack("f", number))[0]


types = st.recursive(
    st.sampled_from(
        [Types.BYTE(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(), Types.STRING(), Types.BOOLEAN()]
    ),
    lambda inner: st.builds(Types.TUPLE, st.lists(inner, min_size=1, max_size=3)) | st.builds(Types.LIST, inner),
    max_leaves=5,
)


def values_of(type_info: Any) -> Any:
    name = str(type_info)
    if name.startswith("Tuple"):
        return st.tuples(*map(values_of, type_info.get_field_types()))
    if name.startswith("List"):
        return st.lists(values_of(type_info.elem_type), max_size=3)
    numbers = st.integers(-200, 200) | st.booleans() | st.floats(-100, 100)
    return st.text() | st.none() | numbers if name == "String" else numbers


@given(st.data())
def test_many_at_once_are_converted_like_one_by_one(data: Any) -> None:
    """The generated check must let through only what the conversion leaves alone."""
    type_info = data.draw(types)
    values = data.draw(st.lists(values_of(type_info), max_size=5))
    convert = converter_of(type_info)
    assert convert is not None

    def outcome(action: Any) -> Any:
        try:
            return repr(action())
        except InvalidProgramError as error:
            return str(error)

    form = declared_form(type_info)
    assert form is not None
    assert outcome(lambda: form(values)) == outcome(lambda: [convert(value) for value in values])


def test_a_number_too_large_for_single_precision_is_infinite() -> None:
    form = declared_form(Types.TUPLE([Types.FLOAT(), Types.STRING()]))
    assert form is not None
    assert form([(0.5, "a"), (1e300, "b"), (-1e300, "c")]) == [(0.5, "a"), (float("inf"), "b"), (float("-inf"), "c")]


@given(st.data())
def test_converting_twice_changes_nothing(data: Any) -> None:
    type_info = data.draw(types)
    value = data.draw(values_of(type_info))
    try:
        once = as_declared(value, type_info)
    except InvalidProgramError:
        return
    assert repr(as_declared(once, type_info)) == repr(once)


def test_elements_that_fit_are_the_same_objects() -> None:
    convert_all = batches_of(Types.TUPLE([Types.STRING(), Types.INT()]))
    pairs = [("a", 1), ("b", 2)]
    assert convert_all is not None and all(one is other for one, other in zip(convert_all(pairs), pairs, strict=True))


@pytest.mark.parametrize("type_info", [None, Types.PICKLED_BYTE_ARRAY(), Types.BIG_INT(), Types.SQL_DATE()], ids=str)
def test_types_that_ask_for_nothing_cost_nothing(type_info: Any) -> None:
    assert batches_of(type_info) is None


@pytest.mark.parametrize(
    ("value", "type_info", "message"),
    [
        (3_000_000_000, Types.INT(), "3000000000 does not fit into INT, which has 32 bits; declare a larger type"),
        ("x", Types.INT(), "'x' of type str is no INT, which is the declared type"),
        ([1], Types.STRING(), r"\[1\] of type list is no STRING"),
        (1, Types.TUPLE([Types.INT()]), "1 of type int is no TupleTypeInfo"),
    ],
)
def test_what_does_not_fit_is_refused(value: Any, type_info: Any, message: str) -> None:
    with pytest.raises(InvalidProgramError, match=message):
        as_declared(value, type_info)


def test_numbers_become_what_is_declared() -> None:
    numbers = (1, 2.5, True, Decimal("1.50"))
    assert [as_declared(each, Types.STRING()) for each in numbers] == ["1", "2.5", "true", "1.50"]
    assert (as_declared(1.7, Types.INT()), as_declared(5, Types.DOUBLE())) == (1, 5.0)


class Count:
    def __init__(self, word: str, vc: int) -> None:
        self.word, self.vc = word, vc


def environment() -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})
    return StreamExecutionEnvironment.get_execution_environment(config)


@pytest.mark.parametrize("elements", [[{"word": "a", "vc": 1}] * 2, [Count("a", 1)] * 2], ids=["dict", "object"])
def test_dicts_and_objects_declared_as_rows_are_rows(elements: Any) -> None:
    row_type = Types.ROW_NAMED(["word", "vc"], [Types.STRING(), Types.INT()])
    rows = environment().from_collection(elements, row_type)
    assert list(rows.key_by(lambda row: row.word).sum("vc").execute_and_collect()) == [
        Row(word="a", vc=1),
        Row(word="a", vc=2),
    ]


def test_sum_of_an_attribute_keeps_the_object() -> None:
    counts = environment().from_collection([Count("a", 1), Count("a", 2)])
    sums = counts.key_by(lambda each: each.word).sum("vc").map(lambda each: (each.word, each.vc))
    assert list(sums.execute_and_collect()) == [("a", 1), ("a", 3)]


def test_sum_by_name_of_a_tuple_fails_at_the_first_record() -> None:
    sums = environment().from_collection([("a", 1)]).key_by(lambda pair: pair[0]).sum("amount")
    with pytest.raises(JobExecutionError, match=r"field 'amount' of \('a', 1\): a tuple has no field of that name"):
        list(sums.execute_and_collect())


def test_a_misfit_names_the_operator_and_the_record() -> None:
    numbers = environment().from_collection([1]).map(lambda n: n + 2**31, Types.INT()).name("grow")
    with pytest.raises(JobExecutionError, match=r"operator 'grow'.*at record 2147483649.* does not fit into INT"):
        list(numbers.execute_and_collect())


def test_flat_map_that_returns_a_number_says_what_to_return() -> None:
    numbers = environment().from_collection([1]).flat_map(lambda n: n).name("split")
    with pytest.raises(JobExecutionError, match=r"operator 'split'.*'int' object is not iterable; a function that"):
        list(numbers.execute_and_collect())
