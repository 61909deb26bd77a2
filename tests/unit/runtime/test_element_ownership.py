"""What a function does to its elements is seen by nobody else, unless objects are reused."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutating_pipelines import STAGES, Pipeline, environment, expected, run

from penstock.common import Time, Types, WatermarkStrategy
from penstock.datastream.functions import KeyedProcessFunction, MapFunction, SourceFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows

ELEMENTS = [
    *(["a", 1, ["x"]], ["b", 2, ["y"]], ["a", 3, []], ["a", 9, ["z"]]),
    *(["a", 12, [1]], ["b", 13, []], ["a", 30, [2]]),
]


class RunningLists(KeyedProcessFunction):
    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("list"))

    def process_element(self, value, ctx):
        held = self.state.value() or []
        held.append(value)
        self.state.update(held)
        yield held


def test_results_are_not_the_state_they_came_from():
    stream = environment().from_collection([1, 2, 3]).key_by(lambda _: "a").process(RunningLists())
    assert list(stream.execute_and_collect()) == [[1], [1, 2], [1, 2, 3]]


def add_in_place(one, other):
    one[1] += other[1]
    return one


@pytest.mark.parametrize("combines", [True, False])
def test_reduce_of_a_window_that_changes_its_argument_is_not_seen_by_another_branch(combines):
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: element[1])
    numbers = environment(combines).from_collection([["a", number] for number in (1, 2, 3, 4)])
    numbers = numbers.assign_timestamps_and_watermarks(times)
    window = TumblingEventTimeWindows.of(Time.seconds(1))
    sums = numbers.key_by(lambda element: element[0]).window(window).reduce(add_in_place)
    results = sorted(element[1] for element in sums.union(numbers.map(lambda element: element)).execute_and_collect())
    assert results == [1, 2, 3, 4, 10]


def test_elements_of_a_collection_that_are_the_same_object_are_not_the_same_element():
    twice = ["a", 0, []]
    assert (
        run(Pipeline(("touch", "touch")), [twice, twice], environment()) == [repr(["a", 0, ["touched", "touched"]])] * 2
    )


class Emitting(SourceFunction):
    """Emits one list again and again, longer each time."""

    def run(self, ctx):
        numbers = []
        for number in range(3):
            numbers.append(number)
            ctx.collect(numbers)

    def cancel(self):
        pass


def test_source_function_may_continue_with_what_it_has_emitted():
    assert list(environment().add_source(Emitting()).execute_and_collect()) == [[0], [0, 1], [0, 1, 2]]


class Remembering(MapFunction):
    """Keeps what it is given, in the class: each subtask has its own copy of the object."""

    def map(self, value):
        self.seen.append(value)
        return value


class First(Remembering):
    seen: ClassVar[list[Any]] = []


class Second(Remembering):
    seen: ClassVar[list[Any]] = []


@pytest.mark.parametrize("reuses", [True, False])
def test_functions_of_a_chain_get_the_very_object_only_if_objects_are_reused(reuses):
    env = environment()
    if reuses:
        env.get_config().enable_object_reuse()
    First.seen.clear()
    Second.seen.clear()
    results = list(env.from_collection([[1]]).map(First()).map(Second()).execute_and_collect())
    assert results == First.seen == Second.seen == [[1]]
    assert (First.seen[0] is Second.seen[0]) is reuses


class Growing(MapFunction):
    """Emits a list that it keeps, in a tuple."""

    def __init__(self):
        self.kept = []

    def map(self, value):
        self.kept.append(value)
        return self.kept, value


class Spoiling(MapFunction):
    def __init__(self):
        self.last = None

    def map(self, value):
        value[0].append("spoiled")
        self.last = len(value[0]), value[1]
        return self.last


@pytest.mark.parametrize("declared", [None, Types.TUPLE([Types.LONG(), Types.LONG()])])
def test_the_declared_type_of_a_later_function_does_not_save_the_copies_of_an_earlier_one(declared):
    counts = environment().from_collection([1, 2, 3]).map(Growing()).map(Spoiling(), declared)
    assert list(counts.execute_and_collect()) == [(2, 1), (3, 2), (4, 3)]


class Shelf:
    """All shelves give the same list, in several ways."""

    held = ["kept"]

    @property
    def shown(self):
        return type(self).held

    def get(self, _):
        return type(self).held


def from_a_class_attribute():
    return lambda shelf: shelf.held


def from_a_property():
    return lambda shelf: shelf.shown


def from_a_method_named_as_one_of_a_dictionary():
    return lambda shelf: shelf.get(0)


def from_a_closure():
    kept = ["kept"]
    return lambda _: kept


def from_a_default():
    return lambda _, kept=["kept"]: kept


KEEPERS = [
    *(from_a_class_attribute, from_a_property, from_a_method_named_as_one_of_a_dictionary, from_a_closure),
    from_a_default,
]


def count_spoiled(value):
    value.append("spoiled")
    return len(value)


@pytest.mark.parametrize("keeper", KEEPERS)
def test_what_a_function_takes_from_where_it_is_kept_is_copied(keeper):
    shelves = environment().from_collection([1, 2, 3]).map(lambda _: Shelf())
    assert list(shelves.map(keeper()).map(count_spoiled).execute_and_collect()) == [2, 2, 2]


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("combines", [True, False])
def test_stage_among_stages_that_spoil_what_they_had(name, combines):
    pipeline = Pipeline(("touch",), (Pipeline((name,), (Pipeline(("touch",)),)), Pipeline(("touch",))))
    assert run(pipeline, ELEMENTS, environment(combines)) == expected(pipeline, ELEMENTS)


def is_well_formed(pipeline: Pipeline) -> bool:
    is_open = not any(STAGES[name].is_last for name in pipeline.stages)
    return (is_open or not pipeline.branches) and not any(STAGES[name].is_last for name in pipeline.stages[:-1])


names = st.sampled_from(list(STAGES))
linear = st.builds(Pipeline, st.lists(names, min_size=1, max_size=3).map(tuple)).filter(is_well_formed)
pipelines = st.recursive(
    linear,
    lambda inner: st.builds(
        Pipeline, st.lists(names, max_size=2).map(tuple), st.lists(inner, min_size=1, max_size=2).map(tuple)
    ).filter(is_well_formed),
    max_leaves=4,
)
# Two times are never exactly the gap of sessions apart: whether such sessions are one depends on watermarks.
times = st.sampled_from([0, 3, 6])
streams = st.lists(
    st.tuples(st.sampled_from("ab"), times, st.lists(st.integers(0, 9), max_size=2)), min_size=1, max_size=8
)


def in_order(drawn):
    """Elements with times that do not fall."""
    time, elements = 0, []
    for key, later, log in drawn:
        time += later
        elements.append([key, time, list(log)])
    return elements


@given(pipelines, streams.map(in_order), st.booleans(), st.booleans(), st.sampled_from([1, 3, 1000]))
@settings(max_examples=80, deadline=None)
def test_functions_that_spoil_everything_change_no_result(pipeline, elements, combines, chains, epoch_records):
    assert run(pipeline, elements, environment(combines, chains, epoch_records)) == expected(pipeline, elements)
