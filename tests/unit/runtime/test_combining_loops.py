"""The loop of a chain combines what comes out of it: neither results nor reports of failures must show that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Duration, Time, Types, WatermarkStrategy
from penstock.datastream import AggregateFunction, DataStream, StreamExecutionEnvironment
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.runtime.chain_compiler import FusedOperator

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
Line = tuple[int, str]

lines = st.lists(st.tuples(st.integers(0, 120), st.text("ab 1", max_size=6)), min_size=1, max_size=30)


def environment(inlines: bool, max_records: int = 1000) -> StreamExecutionEnvironment:
    config = {
        "execution.target": "inline",
        "penstock.inline-functions.enabled": str(inlines).lower(),
        "penstock.epoch.max-records": str(max_records),
        "pipeline.auto-watermark-interval": "0",
    }
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config))


def timed(env: StreamExecutionEnvironment, given: list[Line], bound: int) -> DataStream:
    times = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound))
    return env.from_collection(given).assign_timestamps_and_watermarks(
        times.with_timestamp_assigner(lambda line, _: line[0])
    )


def split(line):
    for word in line[1].split():
        yield word, len(word)


def numbers(line):
    for place, word in enumerate(line[1].split(" ")):
        yield word, place + 0.7 if word else True


class Word(str):
    __slots__ = ()


CHAINS: list[Callable[[DataStream], DataStream]] = [
    lambda stream: stream.flat_map(split, PAIR),
    lambda stream: stream.flat_map(split),
    lambda stream: stream.flat_map(numbers, PAIR),
    lambda stream: stream.map(lambda line: (line[1][:1], 1), PAIR),
    lambda stream: stream.map(lambda line: (line[1][:1], None), PAIR).filter(lambda pair: pair[0] == "a"),
    lambda stream: stream.map(lambda line: (Word(line[1]), line[0]), PAIR).filter(lambda pair: len(pair[0]) > 1),
    lambda stream: stream.flat_map(split).map(lambda pair: [pair[0], pair[1]], PAIR),
    lambda stream: stream.flat_map(split).map(lambda pair: (pair[0], [pair[1]])),
]
assigners = st.sampled_from(
    [
        TumblingEventTimeWindows.of(Time.milliseconds(20)),
        TumblingEventTimeWindows.of(Time.milliseconds(7), Time.milliseconds(3)),
        SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(20)),
    ]
)


def with_both(a, b):
    return a[0], b[1] if a[1] is None else a[1] if b[1] is None else a[1] + b[1]


REDUCES: list[Any] = [lambda a, b: (a[0], a[1] + b[1]), with_both]


def results_of(stream: DataStream, assigner: Any, reduce: Any) -> Any:
    windowed = stream.key_by(lambda pair: pair[0]).window(assigner).reduce(reduce).set_parallelism(2)
    try:
        return sorted(map(repr, windowed.execute_and_collect()))
    except Exception as failure:
        return f"{failure}"


@settings(max_examples=30, deadline=None)
@given(
    lines, st.sampled_from(CHAINS), assigners, st.sampled_from(REDUCES), st.integers(0, 60), st.sampled_from([1, 7, 99])
)
def test_results_and_failures_are_the_same_with_and_without_the_loop(
    given: list[Line], chain: Any, assigner: Any, reduce: Any, bound: int, max_records: int
) -> None:
    inlined, called = (
        results_of(chain(timed(environment(inlines, max_records), given, bound)), assigner, reduce)
        for inlines in (True, False)
    )
    assert inlined == called


GIVEN = [(1, "a b"), (2, "b c"), (3, "a"), (4, "b b")]


def refuses_c(line):
    for word in line[1].split():
        yield word, 1 // (word != "c")


def failing_key(pair):
    return 1 // (pair[0] != "c")


def failing_reduce(a, b):
    return a[0], a[1] + 1 // (b[0] != "b")


@pytest.mark.parametrize(
    ("make", "select", "reduce"),
    [
        (refuses_c, lambda pair: pair[0], REDUCES[0]),
        (split, failing_key, REDUCES[0]),
        (split, lambda pair: pair[0], failing_reduce),
        (lambda line: [(word, 1 << 63 + len(word) % 2) for word in line[1]], lambda pair: pair[0], REDUCES[0]),
        (lambda line: [(word, b"x") for word in line[1]], lambda pair: pair[0], REDUCES[0]),
    ],
)
def test_failures_are_reported_as_without_the_loop(make: Any, select: Any, reduce: Any) -> None:
    said = []
    for inlines in (True, False):
        stream = timed(environment(inlines), GIVEN, 0).flat_map(make, PAIR)
        windowed = stream.key_by(select).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        with pytest.raises(Exception) as raised:
            list(windowed.reduce(reduce).execute_and_collect())
        said.append(str(raised.value))
    assert said[0] == said[1]


class Total(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


@pytest.mark.parametrize("function", [Total(), lambda a, b: (a[0], a[1] + b[1])])
def test_failures_of_a_window_are_reported_as_without_combining(function: Any) -> None:
    said = []
    for combines in ("true", "false"):
        env = environment(True)
        env.get_configuration().set_string("penstock.combine.enabled", combines)
        stream = (
            timed(env, GIVEN, 0).flat_map(split).map(lambda pair: (pair[0], pair[1] if pair[0] < "b" else None), PAIR)
        )
        windowed = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        result = windowed.aggregate(function) if isinstance(function, Total) else windowed.reduce(function)
        assert result.transformation.operator.combines is (combines == "true")  # type: ignore[attr-defined]
        with pytest.raises(Exception, match="TumblingEventTimeWindows") as raised:
            list(result.execute_and_collect())
        said.append(str(raised.value))
    assert said[0] == said[1]


WINDOWS: list[Callable[[Any], Any]] = [
    lambda stream: stream.key_by(failing_key).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).sum(1),
    lambda stream: stream.key_by(failing_key).window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).sum(1),
    lambda stream: (
        stream.key_by(failing_key).window(TumblingEventTimeWindows.of(Time.milliseconds(10))).aggregate(Total())
    ),
    lambda stream: stream.key_by(lambda pair: "k").window(TumblingEventTimeWindows.of(Time.milliseconds(10))).sum(2),
    lambda stream: (
        stream.key_by(lambda pair: "k").window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))).sum(2)
    ),
    lambda stream: stream.window_all(TumblingEventTimeWindows.of(Time.milliseconds(10))).reduce(lambda a, b: a + b[2]),
]


@pytest.mark.parametrize("windowed", WINDOWS)
@pytest.mark.parametrize("words", [["a", "b", "c", "d"], ["c", "d"]])
@pytest.mark.parametrize("is_declared", [True, False])
def test_failures_are_reported_with_operator_record_and_place_as_without_combining(
    windowed: Any, words: list[str], is_declared: bool
) -> None:
    said = []
    for combines in ("true", "false"):
        env = environment(True)
        env.get_configuration().set_string("penstock.combine.enabled", combines)
        env.get_config().set_auto_watermark_interval(10_000)  # All elements are in one batch.
        given = [(at, word) for at, word in enumerate(words)]
        with pytest.raises(Exception, match="record") as raised:
            list(
                windowed(
                    timed(env, given, 0).map(lambda line: (line[1], 1), PAIR if is_declared else None)
                ).execute_and_collect()
            )
        said.append(str(raised.value))
    assert said[0] == said[1]


def test_keys_that_cannot_be_hashed_are_reduced_like_others() -> None:
    for inlines in (True, False):
        stream = timed(environment(inlines, 2), GIVEN, 0).flat_map(split, PAIR).key_by(lambda pair: [pair[0]])
        windowed = stream.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        assert sorted(windowed.sum(1).execute_and_collect()) == [("a", 2), ("b", 4), ("c", 1)]


def test_the_loop_of_a_chain_combines(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it always gave up, all of the above would hold as well."""
    plainly: list[Any] = []
    collect = FusedOperator._collect
    monkeypatch.setattr(
        FusedOperator, "_collect", lambda self, *given: (plainly.append(given[0]), collect(self, *given))
    )
    stream = timed(environment(True), GIVEN, 0).flat_map(split, PAIR).key_by(lambda pair: pair[0])
    windowed = stream.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    assert sorted(windowed.sum(1).execute_and_collect()) == [("a", 2), ("b", 4), ("c", 1)]
    assert plainly == []


FRAME = sys._getframe


def where_it_runs(a: Any, b: Any) -> Any:
    return a[0], a[1], FRAME().f_code.co_name


def test_functions_are_called_where_inlining_is_off() -> None:
    def results(inlines: bool) -> Any:
        stream = timed(environment(inlines, 2), GIVEN, 0).flat_map(split).map(lambda pair: (*pair, ""))
        windowed = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        return {name for *_, name in windowed.reduce(where_it_runs).execute_and_collect()}

    assert "where_it_runs" not in results(True)
    assert results(False) - {""} == {"where_it_runs"}
