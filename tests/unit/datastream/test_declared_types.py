"""Declared types take effect where a chain of functions ends, as in PyFlink, and touch nothing that fits already."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration, Row, RowKind, Types
from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.declared_types import as_declared, batches_of, collected_as, converter_of
from penstock.runtime.outputs import declared_form

PAIR = Types.TUPLE([Types.INT(), Types.INT()])
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


def test_rows_that_fit_are_the_same_objects_and_share_their_names() -> None:
    convert_all = batches_of(Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]))
    assert convert_all is not None
    fitting = [Row(name="a", age=1), Row.of_kind(RowKind.DELETE, name="b", age=2)]
    found = convert_all(fitting)
    assert all(one is other for one, other in zip(found, fitting, strict=True))
    assert found[0]._fields is found[1]._fields and found[1].get_row_kind() is RowKind.DELETE
    others = [Row(age=1, name="a"), Row("a", 1), Row(name="a", age=1.0), ("a", 1)]
    assert [repr(convert_all([each])) for each in others] == ["[Row(name='a', age=1)]"] * 4


def test_a_row_without_names_stays_without_them_if_somebody_has_kept_it() -> None:
    kept = [Row("a", 1), Row.of_kind(RowKind.DELETE, "b", 2)]
    convert_all = batches_of(Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]))
    assert convert_all is not None
    found = convert_all(kept)
    assert found == [Row(name="a", age=1), Row.of_kind(RowKind.DELETE, name="b", age=2)]
    assert kept == [Row("a", 1), Row.of_kind(RowKind.DELETE, "b", 2)]


@pytest.mark.parametrize("type_info", [None, Types.PICKLED_BYTE_ARRAY(), Types.BIG_INT(), Types.SQL_DATE()], ids=str)
def test_types_that_ask_for_nothing_cost_nothing(type_info: Any) -> None:
    assert batches_of(type_info) is None


@pytest.mark.parametrize(
    ("value", "type_info", "message"),
    [
        (3_000_000_000, Types.INT(), "3000000000 does not fit into INT, which has 32 bits; declare a larger type"),
        ("x", Types.INT(), "'x' of type str does not fit INT, the declared type"),
        ([1], Types.STRING(), r"\[1\] of type list does not fit STRING"),
        (1, Types.TUPLE([Types.INT()]), "1 of type int does not fit TupleTypeInfo"),
        (math.inf, Types.LONG(), "inf of type float does not fit LONG"),
        (Decimal("-Infinity"), Types.INT(), r"Decimal\('-Infinity'\) of type Decimal does not fit INT"),
        (math.nan, Types.SHORT(), "nan of type float does not fit SHORT"),
        (10**400, Types.DOUBLE(), "000 of type int does not fit DOUBLE"),
        ((1, math.inf), PAIR, "field 1: inf of type float does not fit INT"),
        (
            Row(user=(1, "x")),
            Types.ROW_NAMED(["user"], [PAIR]),
            "field 'user': field 1: 'x' of type str does not fit INT",
        ),
        ([1, math.nan], Types.LIST(Types.LONG()), "item 1: nan of type float does not fit LONG"),
        ({"a": 1, 2: 3}, Types.MAP(Types.INT(), Types.INT()), "key 'a': 'a' of type str does not fit INT"),
        ({1: 2, 2: "b"}, Types.MAP(Types.INT(), Types.INT()), "value of 2: 'b' of type str does not fit INT"),
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


def test_an_element_of_a_collection_that_does_not_fit_is_named_by_its_place() -> None:
    with pytest.raises(InvalidProgramError, match="item 1: inf of type float does not fit LONG"):
        environment().from_collection([1, math.inf], Types.LONG())
    with pytest.raises(InvalidProgramError, match="item 0: field 1: nan of type float does not fit INT"):
        environment().from_collection([(1, math.nan)], PAIR)


@pytest.mark.parametrize(
    ("scalar", "type_info", "plain"),
    [
        (np.int64(3), Types.INT(), 3),
        (np.float32(2.5), Types.LONG(), 2),
        (np.float32(2.5), Types.DOUBLE(), 2.5),
        (np.float64(0.1), Types.FLOAT(), struct.unpack("f", struct.pack("f", 0.1))[0]),
        (np.bool_(True), Types.BOOLEAN(), True),
        (np.str_("x"), Types.STRING(), "x"),
        (np.array([1, 2]), Types.LIST(Types.LONG()), [1, 2]),
    ],
)
def test_scalars_of_arrays_become_plain_values(scalar: Any, type_info: Any, plain: Any) -> None:
    [alone] = [as_declared(scalar, type_info)]
    [in_a_tuple] = as_declared((scalar,), Types.TUPLE([type_info]))
    assert (alone, type(alone)) == (in_a_tuple, type(in_a_tuple)) == (plain, type(plain))


@pytest.mark.parametrize("value", [256, -1, "x", [], math.inf])
def test_what_is_no_byte_is_no_boolean(value: Any) -> None:
    with pytest.raises(InvalidProgramError, match="does not fit BOOLEAN"):
        as_declared(value, Types.BOOLEAN())


def test_a_number_is_true_if_its_whole_part_is_not_zero() -> None:
    assert [as_declared(number, Types.BOOLEAN()) for number in (0, 0.5, 1.5, 5, None)] == [
        False,
        False,
        True,
        True,
        None,
    ]


def test_a_misfit_within_an_element_names_the_element_and_the_field() -> None:
    pairs = environment().from_collection([1, 2]).map(lambda n: (n, math.inf), PAIR).name("divide")
    with pytest.raises(
        JobExecutionError, match=r"operator 'divide'.*at record \(1, inf\): .*field 1: inf of type float"
    ):
        list(pairs.execute_and_collect())


@given(st.data())
def test_whatever_does_not_fit_is_refused_in_the_same_words(data: Any) -> None:
    """No error of Python's own conversions gets through, in any depth of any type."""
    type_info = data.draw(types)
    odd = st.sampled_from([math.inf, -math.inf, math.nan, Decimal("NaN"), Decimal("sNaN"), 10**400, "x", b"x", [], {}])
    try:
        as_declared(data.draw(st.recursive(odd, lambda inner: st.lists(inner) | st.tuples(inner, inner))), type_info)
    except InvalidProgramError as refused:
        assert "declared" in str(refused) or "declare" in str(refused)


def test_flat_map_that_returns_a_number_says_what_to_return() -> None:
    numbers = environment().from_collection([1]).flat_map(lambda n: n).name("split")
    with pytest.raises(JobExecutionError, match=r"operator 'split'.*'int' object is not iterable; a function that"):
        list(numbers.execute_and_collect())


def test_wrapped_numbers_of_a_collection_are_in_fields_items_and_entries_too() -> None:
    short = Types.SHORT()
    assert collected_as((43878, "a"), Types.TUPLE([short, Types.STRING()])) == (-21658, "a")
    assert collected_as(Row(Row(43878)), Types.ROW([Types.ROW([short])]))[0][0] == -21658
    assert collected_as([43878, 1], Types.BASIC_ARRAY(short)) == [-21658, 1]
    assert collected_as({43878: 43879}, Types.MAP(short, short)) == {-21658: -21657}
    assert tuple(collected_as((1 << 40, 300), Types.ROW([Types.INT(), Types.BYTE()]))) == (0, 44)


TEXTS = Types.ROW_NAMED(["name", "count"], [Types.STRING(), Types.STRING()])


@pytest.mark.parametrize("step", [Row, lambda *fields: fields])
def test_fields_of_rows_are_converted_where_a_chain_ends_and_not_before(step: Any) -> None:
    named = environment().from_collection(["a"]).map(lambda name: step(name, 5), TEXTS)
    counted = named.filter(lambda row: row.count == 5).map(lambda row: step(row.name, row["count"] + 1), TEXTS)
    assert [tuple(row) for row in counted.execute_and_collect()] == [("a", "6")]


def test_a_filter_at_the_end_of_a_chain_of_rows_hands_on_converted_fields() -> None:
    named = environment().from_collection(["a"]).map(lambda name: Row(name, 5), TEXTS)
    assert [tuple(row) for row in named.filter(lambda row: True).execute_and_collect()] == [("a", "5")]
    keyed = named.filter(lambda row: row[1] == 5).key_by(lambda row: row.count).map(lambda row: row.count)
    assert list(keyed.execute_and_collect()) == ["5"]


def test_rows_in_fields_are_rows_within_a_chain() -> None:
    inner = Types.ROW_NAMED(["x"], [Types.STRING()])
    kinds = Types.ROW_NAMED(["one", "many"], [inner, Types.LIST(inner)])
    rows = environment().from_collection([1]).map(lambda n: ((n,), [(n,), (n + 1,)]), kinds)
    assert list(rows.map(lambda row: (row.one.x, [each.x for each in row.many])).execute_and_collect()) == [(1, [1, 2])]


def test_a_collection_keeps_its_order_however_parallel_the_job_is() -> None:
    numbers = environment().set_parallelism(4).from_collection(list(range(20)))
    assert numbers.execute_and_collect(limit=3) == [0, 1, 2]
    assert list(numbers.execute_and_collect()) == list(range(20))
