"""The statements of a generator function stand in the loop of its chain: only the clock shows it."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream import FlatMapFunction
from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription, OperatorDescription
from penstock.runtime.batch import Batch
from penstock.runtime.chain_compiler import FusedOperator
from penstock.runtime.failure import describe_failure
from penstock.runtime.operators.base import OperatorContext, TaskInfo
from penstock.testing.harness import RecordingOutput

most = 4


def fused(*descriptions: OperatorDescription, inlines: bool = True) -> FusedOperator:
    task = TaskInfo("0" * 32, "job", "task", 0, 1, 128)
    contexts = [
        OperatorContext(task, f"op {at}", f"{at:032x}", int, inlines_functions=inlines)
        for at, _ in enumerate(descriptions)
    ]
    operator = FusedOperator(descriptions, contexts)
    operator.setup(contexts[0], RecordingOutput())
    operator.open()
    return operator


def records_of(operator: FusedOperator, batch: Batch) -> Any:
    operator.process_batch(batch)
    return operator.output.records  # type: ignore[attr-defined]


# --- what is inlined -------------------------------------------------------------------------------------------------


def in_a_loop(number):
    """A docstring is no hindrance."""
    for each in range(number % most):
        yield each, number


def in_nested_loops(number):
    for first in range(number % 3):
        if first == number:
            continue
        for second in range(first + 1):
            if second > 1:
                break
            yield first * 10 + second, number


def goes_on_after_its_yield(number):
    total = 0
    for each in range(number % most):
        yield total, each
        total += each
        if total > 3:
            total -= number


def in_a_while(number):
    left: int = number % 5
    while left > 0:
        left -= 1
        if left == 2:
            pass
        else:
            yield left, 0


def changes_its_parameter(number):
    number = number % 4 + 1
    number *= 2
    for each in [v0 + len(f"{number}") for v0 in range(number)]:
        yield each, number


def yields_from(number):
    start = number - 1
    yield from [(each, start) for each in sorted({start, number})]


def yields_other_than_tuples(number):
    for each in "ab", f"{number}!", None, [number], (number, [number]):
        kept = each
        yield kept


def takes_apart(number):
    pairs = {"a": number, "b": number + 1}
    for name, (first, second) in [(name, (each, each)) for name, each in pairs.items()]:
        yield name, first + second


def with_outer(step: int) -> Callable[[int], Any]:
    def stepping(number):
        for each in range(0, number % 7, step):
            yield each + step, most

    return stepping


class Repeating(FlatMapFunction):
    def __init__(self, times: int) -> None:
        self.times = times
        self.seen = 0

    def flat_map(self, value):
        for _ in range(self.times):
            self.seen += 1
            yield self.seen, value


GENERATORS: list[Callable[[], Any]] = [
    lambda: in_a_loop,
    lambda: in_nested_loops,
    lambda: goes_on_after_its_yield,
    lambda: in_a_while,
    lambda: changes_its_parameter,
    lambda: yields_from,
    lambda: yields_other_than_tuples,
    lambda: takes_apart,
    lambda: with_outer(2),
    lambda: Repeating(3),
]


def first_of(value: Any) -> Any:
    return (value[0], repr(value)) if isinstance(value, (tuple, str)) else (0, value)


FOLLOWING: list[list[OperatorDescription]] = [
    [],
    [FilterDescription(lambda value: value is not None)],
    [MapDescription(lambda value: (first_of(value), 1, "x"))],
    [MapDescription(first_of), FilterDescription(lambda pair: pair[0] != 1), MapDescription(lambda pair: pair[1])],
    [
        MapDescription(lambda value: (repr(value), 1)),
        FilterDescription(lambda pair: len(pair[0]) % 2 == pair[1]),
        FlatMapDescription(lambda pair: [pair[0], pair] if pair[0] else None),
        FilterDescription(lambda value: len(value) > 1),
    ],
    [FlatMapDescription(lambda value: None if value is None else [value]), MapDescription(lambda value: (value, 2))],
    [MapDescription(lambda value: (value, 1, value)), FilterDescription(lambda it: f"{it[1]}{it[0]}" == f"1{it[2]}")],
]


@given(
    st.sampled_from(GENERATORS),
    st.sampled_from(FOLLOWING),
    st.lists(st.integers(0, 9), max_size=5),
    st.booleans(),
    st.booleans(),
)
def test_a_chain_gives_the_same_with_the_statements_of_a_generator_as_with_calls(
    make, following, values, has_timestamps, is_second
):
    batch = Batch(values, list(range(len(values))) if has_timestamps else None)
    before = [FlatMapDescription(lambda value: [value, value + 1])] if is_second else []
    chain = [*before, FlatMapDescription(make()), *following]
    inlined = fused(*chain)
    assert records_of(inlined, batch) == records_of(fused(*chain, inlines=False), batch)
    assert all(f"f{len(before)}(" not in source.text for source in inlined.generated_sources())


# --- what is not -----------------------------------------------------------------------------------------------------


def ends_early(number):
    for each in range(number):
        if each == 2:
            return
        yield each


def yields_twice(number):
    yield from range(number)
    yield number // 2 if number else len("a")


def sends_itself(number):
    for each in range(number):
        yield (yield each)


def keeps_functions(number):
    for each in range(number):
        yield lambda: each  # noqa: B023


def may_lack_a_variable(number):
    for each in range(number):
        if each:
            last = each
        yield last


def catches(number):
    for each in range(number):
        try:
            yield each
        finally:
            pass


def has_a_global_of_the_loops(number):
    for each in range(number):
        yield each + timestamp  # type: ignore[name-defined]  # noqa: F821


def looks_at_its_variables(number):
    for each in range(number):
        yield len(locals()) + each


def has_a_variable_like_an_outer_one(outer: int) -> Callable[[int], Any]:
    def comprehending(number):
        for each in [outer for outer in range(number)]:
            yield each + outer

    return comprehending


@pytest.mark.parametrize(
    "function",
    [
        ends_early,
        yields_twice,
        sends_itself,
        keeps_functions,
        may_lack_a_variable,
        catches,
        has_a_global_of_the_loops,
        looks_at_its_variables,
        has_a_variable_like_an_outer_one(5),
    ],
)
def test_other_generators_are_called(function):
    assert all("f0(v0)" in source.text for source in fused(FlatMapDescription(function)).generated_sources())


def test_loops_are_not_nested_deeper_than_python_allows():
    chain = [FlatMapDescription(in_nested_loops if at else in_a_loop) for at in range(12)]
    chain = [each for flat_map in chain for each in (flat_map, MapDescription(lambda pair: pair[0] + 1))]
    assert records_of(fused(*chain), Batch([6])) == records_of(fused(*chain, inlines=False), Batch([6]))


def with_branches(count: int) -> Callable[[int], Any]:
    """A generator with so many `elif`s, each of which is a level of its syntax tree."""
    branches = "".join(f"    elif number == {at}:\n        found = {at % 7}\n" for at in range(1, count))
    text = f"def choosing(number):\n    if number == 0:\n        found = 0\n{branches}    else:\n        found = -1\n"
    text, filename, scope = f"{text}    yield found\n", f"<{count} branches>", dict[str, Any]()
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), scope)
    choosing: Callable[[int], Any] = scope["choosing"]
    return choosing


@pytest.mark.parametrize(("branches", "filters", "is_inlined"), [(40, 5, True), (50, 45, False), (300, 0, False)])
def test_blocks_are_not_nested_deeper_than_python_allows(branches, filters, is_inlined):
    chain = [FlatMapDescription(with_branches(branches)), *[FilterDescription(lambda found: found < 6)] * filters]
    batch = Batch(list(range(-1, branches + 1)))
    inlined = fused(*chain)
    assert records_of(inlined, batch) == records_of(fused(*chain, inlines=False), batch)
    assert all(("f0(" not in source.text) is is_inlined for source in inlined.generated_sources())


# --- turns and failures ----------------------------------------------------------------------------------------------

turns: list[Any] = []


def noting(number):
    for each in range(number):
        turns.append(("made", each))
        yield each


def note_as_got(each):
    turns.append(("got", each))


def test_generator_and_receiver_take_turns():
    chain = [FlatMapDescription(noting), MapDescription(note_as_got)]
    seen = []
    for inlines in (True, False):
        turns.clear()
        records_of(fused(*chain, inlines=inlines), Batch([2, 1]))
        seen.append(list(turns))
    assert seen[0] == seen[1] == [(what, each) for each in (0, 1, 0) for what in ("made", "got")]


def divides(number):
    for each in range(number):
        yield each, 12 // (each - 2)


@pytest.mark.parametrize("inlines", [True, False])
def test_a_failure_among_the_statements_shows_the_function_and_the_record(inlines):
    operator = fused(MapDescription(lambda x: x + 1), FlatMapDescription(divides), inlines=inlines)
    with pytest.raises(ZeroDivisionError) as raised:
        operator.process_batch(Batch([0, 2]))
    failure = describe_failure(raised.value, 0, "task", 0, 1)
    assert (failure.operator, failure.record) == ("op 1", "3")
    assert "yield each, 12 // (each - 2)" in failure.user_traceback


@pytest.mark.parametrize("inlines", [True, False])
def test_a_failure_behind_a_tuple_that_was_not_built_shows_the_tuple(inlines):
    chain = [FlatMapDescription(in_a_loop), MapDescription(lambda pair: 1 // (pair[0] - 1))]
    with pytest.raises(ZeroDivisionError) as raised:
        fused(*chain, inlines=inlines).process_batch(Batch([2]))
    failure = describe_failure(raised.value, 0, "task", 0, 1)
    assert (failure.operator, failure.record) == ("op 1", "(1, 2)")


# --- what others change between two yields, or between two elements --------------------------------------------------

so_far: list[int] = []


def counts_turns(number):
    yield so_far[-1]
    yield so_far[-1] + number


def takes_a_turn(value):
    so_far.append(len(so_far))
    return value


def first_iterable_may_lack_its_variable(number):
    if number == 0:
        words = [number]
    yield [words for words in words]


def cell_may_be_empty(number):
    if number == 0:
        last = number
    yield [last + each for each in range(2)]


@pytest.mark.parametrize("inlines", [True, False])
def test_each_yield_sees_what_was_done_with_the_one_before(inlines):
    so_far[:] = [0]
    operator = fused(FlatMapDescription(counts_turns), MapDescription(takes_a_turn), inlines=inlines)
    assert [value for value, _ in records_of(operator, Batch([10, 20]))] == [0, 11, 2, 23]


@pytest.mark.parametrize("inlines", [True, False])
@pytest.mark.parametrize("function", [first_iterable_may_lack_its_variable, cell_may_be_empty])
def test_a_variable_that_is_not_set_for_an_element_is_not_that_of_the_element_before(function, inlines):
    with pytest.raises(NameError):
        fused(FlatMapDescription(function), inlines=inlines).process_batch(Batch([0, 1]))
