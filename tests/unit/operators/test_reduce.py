"""The rolling reduce: one value per key, and the new value for every element, with the function in the loop or not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common.constants import MAX_LONG_VALUE
from penstock.datastream.fields import FieldAggregation
from penstock.datastream.functions import ReduceFunction
from penstock.graph.descriptions import ReduceDescription
from penstock.runtime.batch import Batch
from penstock.runtime.element_copies import as_it_is, copied_unless_tuple
from penstock.runtime.failure import describe_failure
from penstock.testing import OperatorHarness


def key_of(element):
    return element[0]


def in_place(held, value):
    held[1] += value[1]
    return held


def to_nothing(held, value):
    assert held is not None, "None is no value"
    return None if held[1] + value[1] == 0 else (held[0], held[1] + value[1])


class Joining(ReduceFunction):
    def __init__(self, between):
        self.between = between

    def reduce(self, value1, value2):
        return [value1[0], f"{value1[1]}{self.between}{value2[1]}"]


FUNCTIONS = [
    lambda held, value: (*held[:1], held[1] + value[1]),
    in_place,
    to_nothing,
    Joining("-"),
    FieldAggregation("sum", 1),
    FieldAggregation("max", 1),
    FieldAggregation("min_by", 1),
]
tuples = st.tuples(st.sampled_from("abc"), st.integers(-5, 5))
lists = tuples.map(list)


def model(function, elements):
    """A dictionary, and a copy of each value at its time."""
    reduce = function.reduce if isinstance(function, ReduceFunction) else function
    held, results = {}, []
    for element in elements:
        key = element[0]
        held[key] = element if held.get(key) is None else reduce(held[key], element)
        results.append(repr(held[key]))
    return results, {key: repr(value) for key, value in held.items()}


@settings(max_examples=300)
@given(
    st.sampled_from(FUNCTIONS),
    st.lists(st.lists(tuples, max_size=6), max_size=4) | st.lists(st.lists(lists, max_size=6), max_size=4),
    st.booleans(),
    st.integers(0, 4),
)
def test_it_emits_what_a_dictionary_holds_also_after_a_restart(function, batches, inlines, cut):
    elements = [element for batch in batches for element in batch]
    if function is in_place and any(isinstance(element, tuple) for element in elements):
        return
    copies = [[type(element)(element) for element in batch] for batch in batches]
    expected, state = model(function, elements)
    harness, results = harness_of(function, inlines), []
    for number, batch in enumerate(copies):
        if number == cut:
            results += map(repr, harness.output)
            harness = harness_of(function, inlines, restored=harness.snapshot())
        harness.batch([(element, None) for element in batch])
    assert [*results, *map(repr, harness.output)] == expected
    table = harness.context.keyed_state.table("_reduce")
    assert {key: repr(value) for _, key, value in table.all_entries()} == state


def harness_of(function, inlines=True, **more):
    harness = OperatorHarness(ReduceDescription(key_of, function), **more)
    harness.context.inlines_functions = inlines
    return harness


def test_at_the_end_of_time_a_key_that_amounts_to_none_has_no_value():
    harness = OperatorHarness(ReduceDescription(key_of, to_nothing, only_final=True))
    harness.batch([(element, None) for element in [("a", 1), ("b", 2), ("a", -1), ("c", 3), ("c", -3), ("c", 4)]])
    assert harness.watermark(MAX_LONG_VALUE).output == [("b", 2), ("c", 4)]


def test_what_was_emitted_is_not_what_the_operator_keeps():
    harness = harness_of(lambda held, value: [held[0], [*held[1], *value[1]]])
    for element in (["a", [1]], ["a", [2]]):
        harness.element(element)
        harness.output[-1][1].append("mine")
    assert harness.output == [["a", [1, "mine"]], ["a", [1, 2, "mine"]]]


@pytest.mark.parametrize("function", [lambda held, value: held[1] // value[1], FieldAggregation("sum", 2), in_place])
@pytest.mark.parametrize("inlines", [True, False])
def test_a_failure_shows_the_record(function, inlines):
    harness = harness_of(function, inlines)
    value = ("a", 0) if not isinstance(function, FieldAggregation) else ("a", 0, None)
    harness.batch([(("a", 1, 2), None)])
    with pytest.raises((ZeroDivisionError, TypeError)) as raised:
        harness.operator.process_batch(Batch([value], None, ["a"]))
    assert describe_failure(raised.value, 0, "task", 0, 1).record == repr(value)


def test_a_sum_without_its_field_fails_with_the_first_element():
    with pytest.raises(IndexError):
        harness_of(FieldAggregation("sum", 2)).element(("a", 1))


@pytest.mark.parametrize("copied", [as_it_is, copied_unless_tuple])
def test_tuples_of_a_declared_type_are_not_copied(copied):
    harness = harness_of(lambda held, value: (held[0], held[1] + value[1]))
    harness.context.copied_result = copied
    harness.batch([(("a", 1), None), (("a", 2), None)])
    table = harness.context.keyed_state.table("_reduce")
    assert harness.output == [("a", 1), ("a", 3)]
    assert next(value for *_, value in table.all_entries()) is harness.output[-1]
