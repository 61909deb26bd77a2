"""Keys have the form of their declared type, wherever they are selected. The expected keys are PyFlink's."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

import pytest

from penstock.common import Configuration, Duration, Row, TypeInformation, Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.fields import DeclaredKey
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows


def environment(parallelism: int = 1, **switches: bool) -> StreamExecutionEnvironment:
    settings = {"execution.target": "inline", "restart-strategy.type": "none"}
    settings |= {f"penstock.{name.replace('_', '-')}.enabled": str(on).lower() for name, on in switches.items()}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.set_parallelism(parallelism)
    return env


class Counting(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, ctx.get_current_key(), count


CASES: list[tuple[Callable[[int], Any], TypeInformation, list[Any]]] = [
    (lambda v: v / 2, Types.LONG(), [(1, 0, 1), (2, 1, 1), (3, 1, 2), (4, 2, 1), (5, 2, 2)]),
    (lambda v: v / 2, Types.INT(), [(1, 0, 1), (2, 1, 1), (3, 1, 2), (4, 2, 1), (5, 2, 2)]),
    (lambda v: v, Types.DOUBLE(), [(each, float(each), 1) for each in range(1, 6)]),
    (lambda v: v - 1, Types.BOOLEAN(), [(1, False, 1), (2, True, 1), (3, True, 2), (4, True, 3), (5, True, 4)]),
    (lambda v: 16777216 + v % 2, Types.FLOAT(), [(each, 16777216.0, each) for each in range(1, 6)]),
    (lambda v: None if v < 3 else v, Types.LONG(), [(1, None, 1), (2, None, 2), (3, 3, 1), (4, 4, 1), (5, 5, 1)]),
    (
        lambda v: (v // 2, v / 4),
        Types.TUPLE([Types.LONG(), Types.LONG()]),
        [(1, (0, 0), 1), (2, (1, 0), 1), (3, (1, 0), 2), (4, (2, 1), 1), (5, (2, 1), 2)],
    ),
]


@pytest.mark.parametrize(("selector", "key_type", "expected"), CASES)
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("inlines", [True, False])
def test_keys_have_their_declared_form(
    selector: Any, key_type: TypeInformation, expected: list[Any], parallelism: int, inlines: bool
) -> None:
    env = environment(parallelism, inline_functions=inlines)
    keyed = env.from_collection([1, 2, 3, 4, 5], Types.LONG()).key_by(selector, key_type)
    found = list(keyed.process(Counting()).execute_and_collect())
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_a_key_without_a_declared_type_stays_as_it_is() -> None:
    keyed = environment().from_collection([1, 2, 3], Types.LONG()).key_by(lambda v: v / 2)
    assert list(keyed.process(Counting()).execute_and_collect()) == [(1, 0.5, 1), (2, 1.0, 1), (3, 1.5, 1)]


class ByNumber(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[0])


class Keys(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield repr(key), sum(each[1] for each in elements)


WINDOWS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(100)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(100)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(100)),
}


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("key_type", [Types.LONG(), Types.BYTE()])
@pytest.mark.parametrize("selector", [lambda pair: pair[0] / 2, itemgetter(2)])
def test_windows_have_keys_of_their_declared_form(window: str, key_type: TypeInformation, selector: Any) -> None:
    for parallelism, inlines, combines in ((1, True, True), (2, True, True), (2, False, True), (2, True, False)):
        env = environment(parallelism, inline_functions=inlines, combine=combines)
        pairs = env.from_collection(list(range(8)), Types.LONG()).map(
            lambda n: (n, 1, n / 2), Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])
        )
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
        timed = pairs.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(ByNumber()))
        windowed = timed.key_by(selector, key_type).window(WINDOWS[window])
        found = windowed.reduce(lambda a, b: (a[0], a[1] + b[1], a[2]), Keys())
        assert sorted(found.execute_and_collect()) == [("0", 2), ("1", 2), ("2", 2), ("3", 2)]
        total = windowed.sum(1).map(lambda each: (int(each[2]), each[1]))
        assert sorted(total.execute_and_collect()) == [(0, 2), (1, 2), (2, 2), (3, 2)]


@pytest.mark.parametrize("key_type", [Types.LONG(), Types.STRING(), Types.DOUBLE()])
@pytest.mark.parametrize("place", [0, 1])
def test_keys_of_elements_in_columns_have_their_declared_form(key_type: TypeInformation, place: int) -> None:
    """Enough elements to be sent in columns."""
    kinds = {str(Types.LONG()): "int", str(Types.STRING()): "str", str(Types.DOUBLE()): "float"}
    for parallelism, columns in ((1, True), (2, True), (2, False)):
        env = environment(parallelism, columnar_exchange=columns)
        pairs = env.from_collection(list(range(20_000)), Types.LONG()).map(lambda n: (n % 3, str(n % 3)))
        if (place, key_type) == (1, Types.LONG()) or (place, key_type) == (1, Types.DOUBLE()):
            pairs = pairs.map(lambda pair: (pair[1], pair[0]))
        keyed = pairs.key_by(itemgetter(place), key_type)
        found = {type(key).__name__ for _, key, _ in keyed.process(Counting()).execute_and_collect()}
        assert found == {kinds[str(key_type)]}


class Both(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.get_current_key()

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.get_current_key()


def test_keys_of_connected_streams_have_their_declared_form() -> None:
    env = environment(2)
    first, second = env.from_collection([1, 3], Types.LONG()), env.from_collection(["5"], Types.STRING())
    joined = first.connect(second).key_by(lambda n: n / 2, lambda text: float(text) / 2, Types.LONG())
    assert sorted(joined.process(Both()).execute_and_collect(), key=str) == [("5", 2), (1, 0), (3, 1)]


def test_keys_of_chained_operators_and_side_outputs_have_their_declared_form() -> None:
    tag = OutputTag("side", Types.LONG())

    class Sideways(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
            yield tag, value

    env = environment()
    main = env.from_collection([1, 2, 3], Types.LONG()).key_by(lambda v: v / 2, Types.LONG()).process(Sideways())
    again = main.get_side_output(tag).key_by(lambda v: v / 2, Types.LONG()).process(Counting())
    assert list(again.execute_and_collect()) == [(1, 0, 1), (2, 1, 1), (3, 1, 2)]


def test_rows_are_keys_with_the_names_of_their_type() -> None:
    key_type = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()])
    keyed = environment().from_collection([1, 2, 3], Types.LONG()).key_by(lambda v: Row(v / 2, "x"), key_type)
    found = [(value, key.as_dict(), count) for value, key, count in keyed.process(Counting()).execute_and_collect()]
    assert found == [(1, {"a": 0, "b": "x"}, 1), (2, {"a": 1, "b": "x"}, 1), (3, {"a": 1, "b": "x"}, 2)]


@pytest.mark.parametrize("inlines", [True, False])
def test_a_key_that_does_not_fit_is_refused_where_key_by_was_called(inlines: bool) -> None:
    env = environment(inline_functions=inlines)
    keyed = env.from_collection([1, 2**40], Types.LONG()).key_by(lambda v: v, Types.INT())
    with pytest.raises(Exception, match=r"key_by.*record 1099511627776.*does not fit into INT"):
        list(keyed.process(Counting()).execute_and_collect())


def test_a_selector_with_a_declared_type_can_be_pickled_after_use() -> None:
    selector = DeclaredKey(itemgetter(0), Types.LONG())
    assert (selector((1.5,)), pickle.loads(pickle.dumps(selector))((2.5,))) == (1, 2)
