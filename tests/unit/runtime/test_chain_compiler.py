"""A fused chain does what its operators do one by one, and a failure in it is reported as precisely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream import FlatMapFunction, MapFunction
from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.batch import Batch
from penstock.runtime.chain_compiler import FusedOperator, is_fusable
from penstock.runtime.failure import TaskFailure, describe_failure
from penstock.runtime.operators import build_operator
from penstock.runtime.operators.base import OperatorContext, TaskInfo
from penstock.testing.harness import RecordingOutput

TASK = TaskInfo("0" * 32, "job", "task", 0, 1, 128)


def add(number: int) -> MapDescription:
    return MapDescription(lambda value: value + number)


def keep_multiples(number: int) -> FilterDescription:
    return FilterDescription(lambda value: value % number == 0)


def repeat(times: int) -> FlatMapDescription:
    return FlatMapDescription(lambda value: [value + n for n in range(times)])


def generate(times: int) -> FlatMapDescription:
    def generator(value):
        for n in range(times):
            yield value * n

    return FlatMapDescription(generator)


def nothing_for_odd(_: int) -> FlatMapDescription:
    return FlatMapDescription(lambda value: None if value % 2 else (value,))


operators = st.builds(
    lambda make, number: make(number),
    st.sampled_from([add, keep_multiples, repeat, generate, nothing_for_odd]),
    st.integers(1, 3),
)


def contexts_of(descriptions) -> list[OperatorContext]:
    return [OperatorContext(TASK, f"op {at}", f"{at:032x}", int) for at, _ in enumerate(descriptions)]


def fuse(descriptions: list[OperatorDescription]) -> tuple[FusedOperator, RecordingOutput]:
    contexts, output = contexts_of(descriptions), RecordingOutput()
    operator = FusedOperator(descriptions, contexts)
    operator.setup(contexts[0], output)
    operator.open()
    return operator, output


def one_by_one(descriptions: list[OperatorDescription], batch: Batch) -> list:
    for description, context in zip(descriptions, contexts_of(descriptions), strict=True):
        operator, output = build_operator(description), RecordingOutput()
        operator.setup(context, output)
        operator.open()
        operator.process_batch(batch)
        timestamps = None if batch.timestamps is None else [timestamp for _, timestamp in output.records]
        batch = Batch([value for value, _ in output.records], timestamps)
    return output.records


@given(st.lists(operators, min_size=1, max_size=6), st.lists(st.integers(-20, 20), max_size=12), st.booleans())
def test_fused_chain_gives_what_its_operators_give(descriptions, values, has_timestamps):
    batch = Batch(values, [1000 + at for at in range(len(values))] if has_timestamps else None)
    operator, output = fuse(descriptions)
    operator.process_batch(batch)
    assert output.records == one_by_one(descriptions, batch)


@given(st.lists(operators, min_size=1, max_size=4), st.lists(st.booleans(), min_size=2, max_size=4))
def test_batches_with_and_without_timestamps_may_alternate(descriptions, kinds):
    operator, output = fuse(descriptions)
    expected: list = []
    for has_timestamps in kinds:
        batch = Batch([1, 2, 3, 6], [10, 20, 30, 60] if has_timestamps else None)
        operator.process_batch(batch)
        expected += one_by_one(descriptions, batch)
    assert output.records == expected


def test_function_objects_are_opened_used_and_closed():
    class Logged(MapFunction):
        log: list[str] = []

        def open(self, runtime_context):
            self.log.append(f"open {runtime_context.get_index_of_this_subtask()}")

        def map(self, value):
            return value * 2

        def close(self):
            self.log.append("close")

    class Twice(FlatMapFunction):
        def flat_map(self, value):
            yield value
            yield value

    operator, output = fuse([MapDescription(Logged()), FlatMapDescription(Twice())])
    operator.process_batch(Batch([1, 2]))
    operator.close()
    assert [value for value, _ in output.records] == [2, 2, 4, 4]
    assert Logged.log == ["open 0", "close"]


def test_all_functions_are_closed_although_one_fails_to_close():
    closed: list[str] = []

    class Closing(MapFunction):
        def __init__(self, name):
            self.name = name

        def map(self, value):
            return value

        def close(self):
            closed.append(self.name)
            if self.name != "last":
                raise OSError(f"{self.name} cannot be closed")

    operator, _ = fuse([MapDescription(Closing(name)) for name in ("first", "second", "last")])
    with pytest.raises(OSError, match="first cannot be closed"):
        operator.close()
    assert closed == ["first", "second", "last"]


def test_operator_with_a_key_is_not_fused():
    assert is_fusable(MapDescription(str))
    assert not is_fusable(MapDescription(str, key_selector=str))


# --- failures --------------------------------------------------------------------------------------------------------


def failure_of(descriptions: list[OperatorDescription], values: list, timestamps: list | None = None) -> TaskFailure:
    operator, _ = fuse(descriptions)
    with pytest.raises(Exception) as caught:
        operator.process_batch(Batch(values, timestamps))
    return describe_failure(caught.value, 0, "the task", 0, 1)


def refuse_seven(value):
    if value == 7:
        raise ValueError("no sevens")
    return value


def yield_up_to_seven(value):
    yield value
    if value == 7:
        raise ValueError("no sevens")


def list_refusing_seven(value):
    return [refuse_seven(value)]


def keep_all_but_seven(value):
    return bool(refuse_seven(value)) or True


FAILING = {
    "map": MapDescription(refuse_seven),
    "filter": FilterDescription(keep_all_but_seven),
    "flat_map": FlatMapDescription(list_refusing_seven),
    "generator": FlatMapDescription(yield_up_to_seven),
}
PASSING = {
    "map": MapDescription(lambda value: value + 1),
    "filter": FilterDescription(lambda value: True),
    "flat_map": FlatMapDescription(lambda value: [value]),
}


@pytest.mark.parametrize("with_timestamps", [False, True])
@pytest.mark.parametrize("kind", FAILING)
@pytest.mark.parametrize("place", range(3))
def test_failure_names_operator_and_record(kind, place, with_timestamps):
    chain: list[OperatorDescription] = [FilterDescription(lambda value: True)] * 3
    chain[place] = FAILING[kind]
    failure = failure_of(chain, [5, 6, 7, 8], [1, 2, 3, 4] if with_timestamps else None)
    assert (failure.operator, failure.record) == (f"op {place}", "7")
    assert (failure.exception_type, failure.message, failure.is_user_error) == ("ValueError", "no sevens", True)


@pytest.mark.parametrize("before", PASSING)
@pytest.mark.parametrize("kind", FAILING)
def test_failure_behind_another_operator_shows_the_record_as_it_came_in(before, kind):
    first = 6 if before == "map" else 7
    failure = failure_of([PASSING[before], FAILING[kind]], [1, first])
    assert (failure.operator, failure.record) == ("op 1", "7")


def test_users_frames_are_shown_and_ours_are_not():
    failure = failure_of([MapDescription(refuse_seven), MapDescription(str)], [7])
    assert "refuse_seven" in failure.user_traceback
    assert "penstock/runtime" not in failure.user_traceback
    assert "<penstock chain" not in failure.user_traceback
    assert failure.user_traceback.endswith("ValueError: no sevens\n")


def test_flat_map_that_returns_no_iterable_is_named_too():
    failure = failure_of([FlatMapDescription(lambda value: 3), MapDescription(str)], [7])
    assert (failure.operator, failure.record) == ("op 0", "7")
    assert "'int' object is not iterable" in failure.message


def test_long_records_are_cut_and_a_failing_repr_hides_nothing():
    class Shy:
        def __repr__(self):
            raise RuntimeError("not for you")

    def fail(_):
        raise ValueError("bad")

    cut = failure_of([MapDescription(fail), MapDescription(str)], ["x" * 10_000]).record
    assert cut is not None and len(cut) < 600 and cut.endswith("...")
    assert failure_of([MapDescription(fail), MapDescription(str)], [Shy()]).record == (
        "<Shy whose repr() raised RuntimeError>"
    )


def test_exception_itself_travels_to_the_driver():
    error = failure_of([MapDescription(refuse_seven), MapDescription(str)], [7]).exception()
    assert isinstance(error, ValueError) and str(error) == "no sevens"


def test_exception_that_cannot_travel_is_reported_as_text():
    class Stubborn(Exception):
        def __reduce__(self):
            raise TypeError("stays here")

    def fail(_):
        raise Stubborn("why")

    failure = failure_of([MapDescription(fail), MapDescription(str)], [1])
    assert failure.exception() is None
    assert (failure.exception_type, failure.message) == ("Stubborn", "why")
