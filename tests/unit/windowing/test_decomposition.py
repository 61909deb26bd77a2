"""Which functions of windows may be given partial results: only those of which it is known."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.common import Row, Time, Types
from penstock.datastream import AggregateFunction, DataStream, OutputTag, ReduceFunction, StreamExecutionEnvironment
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.graph.descriptions import AccumulatorMerge, WindowDescription

SLIDING = SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2))
TUMBLING = TumblingEventTimeWindows.of(Time.seconds(2))
SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(1))
PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
FACTOR = 3


def mapped(type_info: Any = PAIR) -> DataStream:
    env = StreamExecutionEnvironment.get_execution_environment()
    return env.from_collection([("a", 1)]).map(lambda pair: pair, type_info)


def window_of(stream: DataStream, function: Any, selector: Any = 0, assigner: Any = SLIDING) -> WindowDescription:
    windowed = stream.key_by(selector).window(assigner)
    if isinstance(function, AggregateFunction):
        result = windowed.aggregate(function)
    elif isinstance(function, tuple):
        result = getattr(windowed, function[0])(function[1])
    else:
        result = windowed.reduce(function)
    operator: Any = result.transformation.operator
    assert isinstance(operator, WindowDescription)
    return operator


class SumOfSeconds(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        word, count = value2
        return word, count + value1[1]


TRIPLE = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])


@pytest.mark.parametrize("assigner", [SLIDING, TUMBLING, SESSIONS])
@pytest.mark.parametrize(
    ("type_info", "function", "selector"),
    [
        (PAIR, lambda a, b: (a[0], a[1] + b[1]), lambda pair: pair[0]),
        (PAIR, lambda a, b: (b[0], b[1] + a[1]), 0),
        (PAIR, lambda a, b: (a[0], min(a[1], b[1])), lambda pair: pair[0]),
        (PAIR, lambda a, b: (a[0], max(b[1], a[1])), lambda pair: (pair[0], 1)),
        (PAIR, SumOfSeconds(), 0),
        (PAIR, ("sum", 1), 0),
        (PAIR, ("min", -1), lambda pair: pair[0]),
        (TRIPLE, lambda a, b: (a[0], a[1] + b[1], max(a[2], b[2])), 0),
        (TRIPLE, lambda a, b: (a[0], a[1] + b[1], a[2]), lambda each: (each[2], each[0])),
        (Types.LONG(), lambda a, b: a + b, lambda number: number % 3),
        (Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()]), ("sum", "count"), "word"),
    ],
)
def test_reduces_combine_if_order_and_grouping_cannot_matter(
    type_info: Any, function: Any, selector: Any, assigner: Any
) -> None:
    assert window_of(mapped(type_info), function, selector, assigner).combines


FLOATS = Types.TUPLE([Types.STRING(), Types.DOUBLE()])


@pytest.mark.parametrize("assigner", [SLIDING, SESSIONS])
@pytest.mark.parametrize(
    ("type_info", "function", "selector"),
    [
        (FLOATS, lambda a, b: (a[0], a[1] + b[1]), 0),  # The sum depends on the order.
        (FLOATS, lambda a, b: (a[0], min(a[1], b[1])), 0),  # -0.0 and 0.0, and NaN.
        (FLOATS, ("max", 1), 0),
        (None, lambda a, b: (a[0], a[1] + b[1]), 0),  # Nobody said that these are whole numbers.
        (Types.TUPLE([Types.STRING(), Types.BIG_INT()]), lambda a, b: (a[0], a[1] + b[1]), 0),
        (PAIR, lambda a, b: (a[0], a[1] + b[1]), lambda pair: pair[1]),  # The first word is not that of all.
        (PAIR, lambda a, b: (a[0], a[1] + b[1]), lambda pair: pair[0] + "x"),
        (PAIR, lambda a, b: (a[0], a[1] - b[1]), 0),
        (PAIR, lambda a, b: (a[0], a[1] + b[1] + 1), 0),
        (PAIR, lambda a, b: (a[0], a[1] * b[1]), 0),
        (PAIR, lambda a, b: (a[0], b[1]), 0),
        (PAIR, lambda a, b: (a[0], a[1] + len(b[0])), 0),
        (PAIR, lambda a, b: (a[0], a[1] + FACTOR * b[1]), 0),
        (PAIR, lambda a, b: a if a[1] >= b[1] else b, 0),
        (PAIR, lambda a, b: (a[0], a[1] if b[1] is None else a[1] + b[1]), 0),
        (PAIR, lambda a, b: (a[0], a[1] + b[1], 0), 0),
        (PAIR, lambda a, b: [a[0], a[1] + b[1]], 0),
        (PAIR, ("max_by", 1), 0),
        (TRIPLE, ("sum", 1), 0),
        (TRIPLE, lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]), 0),
        (Types.ROW([Types.STRING(), Types.LONG()]), lambda a, b: Row(a[0], a[1] + b[1]), 0),
        (Types.STRING(), lambda a, b: a + b, lambda text: text[0]),
    ],
)
def test_other_reduces_do_not_combine(type_info: Any, function: Any, selector: Any, assigner: Any) -> None:
    assert not window_of(mapped(type_info), function, selector, assigner).combines


ANYTHING = Types.TUPLE([Types.PICKLED_BYTE_ARRAY(), Types.LONG()])


@pytest.mark.parametrize(
    ("type_info", "function", "selector"),
    [
        (PAIR, lambda a, b: (a[0], a[1] + b[1]), lambda pair: pair[1]),
        (PAIR, lambda a, b: (b[0], min(a[1], b[1])), lambda pair: len(pair[0])),
        (PAIR, lambda a, b: (a[0], b[1]), 0),
        (PAIR, ("max_by", 1), 0),
        (PAIR, ("min_by", 0), 1),
        (TRIPLE, ("sum", 1), 0),
        (ANYTHING, ("sum", 1), 0),
        (ANYTHING, lambda a, b: (a[0], a[1] + b[1]), 0),
    ],
)
def test_reduces_of_tumbling_windows_combine_also_if_order_matters(
    type_info: Any, function: Any, selector: Any
) -> None:
    assert window_of(mapped(type_info), function, selector, TUMBLING).combines


@pytest.mark.parametrize(
    ("type_info", "function"),
    [
        (PAIR, lambda a, b: (a[0], a[1] + 1)),  # A partial result would count as one.
        (PAIR, lambda a, b: (a[0], a[1] + len(b[0]))),
        (PAIR, lambda a, b: (a[0], a[1] - b[1])),
        (PAIR, lambda a, b: (a[0], b[1] - a[1])),
        (PAIR, lambda a, b: (a[0], a[1] + 2 * b[1])),
        (PAIR, lambda a, b: (a[0], a[1] * b[1])),
        (PAIR, lambda a, b: (a[0], f"{a[1]},{b[1]}")),
        (PAIR, lambda a, b: (a[0], 7)),
        (TRIPLE, lambda a, b: (b[2], a[1] + b[1], a[0])),
        (FLOATS, lambda a, b: (a[0], a[1] + b[1])),
        (FLOATS, ("sum", 1)),
        (FLOATS, ("max_by", 1)),
        (ANYTHING, ("max", 0)),
        (None, lambda a, b: (a[0], a[1] + b[1])),
        (None, ("sum", 1)),
    ],
)
def test_reduces_of_tumbling_windows_do_not_combine_if_grouping_matters(type_info: Any, function: Any) -> None:
    assert not window_of(mapped(type_info), function, 0, TUMBLING).combines


def total(a: Any, b: Any) -> Any:
    return a[0], a[1] + b[1]


def test_elements_have_their_declared_type_unless_a_source_or_a_side_output_emits_them() -> None:
    source = StreamExecutionEnvironment.get_execution_environment().from_collection([("a", 1)], PAIR)
    one, other, with_floats = [source.map(lambda pair: pair, type_info) for type_info in (PAIR, PAIR, FLOATS)]
    late = OutputTag("late", PAIR)
    assert window_of(one.filter(lambda pair: True).union(other.rebalance()), total).combines
    assert not window_of(source, total).combines
    assert not window_of(source.rebalance().filter(lambda pair: True), total).combines
    assert not window_of(one.union(with_floats), total).combines
    assert not window_of(one.get_side_output(late), total).combines


class CountAndSum(AggregateFunction):
    """Key, count and sum; `merge` is never asked for, as in Flink."""

    def create_accumulator(self) -> Any:
        return "", 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], accumulator[1] + 1, accumulator[2] + 2 * value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[2] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError


class Largest(CountAndSum):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return max(accumulator, value[1])


@pytest.mark.parametrize("assigner", [SLIDING, TumblingEventTimeWindows.of(Time.seconds(2))])
def test_accumulators_are_merged_by_what_add_does(assigner: Any) -> None:
    operators = [window_of(mapped(), function, assigner=assigner) for function in (CountAndSum(), Largest())]
    assert [each.merge for each in operators] == [
        AccumulatorMerge(("any", "sum", "sum"), is_tuple=True),
        AccumulatorMerge(("max",), is_tuple=False),
    ]
    assert all(each.combines for each in operators)


class FromOne(CountAndSum):
    def create_accumulator(self) -> Any:
        return "", 1, 0


class InPlace(CountAndSum):
    def create_accumulator(self) -> Any:
        return ["", 0, 0]

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator[1] += 1
        return accumulator


class WithSettings(CountAndSum):
    def __init__(self) -> None:
        self.factor = 2

    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], accumulator[1] + self.factor, accumulator[2]


class Crossed(CountAndSum):
    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], accumulator[2] + 1, accumulator[1] + value[1]


class Newest(CountAndSum):
    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], value[1], accumulator[2]


class Doubled(CountAndSum):
    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], accumulator[1] + accumulator[1], accumulator[2]


class Capped(CountAndSum):
    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], min(accumulator[1] + 1, 10), accumulator[2]


class Opened(CountAndSum):
    def open(self, runtime_context: Any) -> None:
        self.opened = True


@pytest.mark.parametrize("function", [FromOne, InPlace, WithSettings, Crossed, Newest, Doubled, Capped, Opened])
def test_accumulators_of_which_it_is_not_known_are_not_merged(function: Any) -> None:
    operator = window_of(mapped(), function())
    assert not operator.combines and operator.merge is None


def test_sessions_that_aggregate_do_not_combine() -> None:
    sessions = EventTimeSessionWindows.with_gap(Time.seconds(1))
    assert not window_of(mapped(), CountAndSum(), assigner=sessions).combines
