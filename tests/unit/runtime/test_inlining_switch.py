"""With `penstock.inline-functions.enabled: false`, every function is called, wherever a loop could do its work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.common import Configuration, Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.functions import AggregateFunction, KeyedProcessFunction
from penstock.datastream.window import TumblingEventTimeWindows

FRAME = sys._getframe
SEEN: list[str] = []
"""The names of the functions in which the code of user functions ran."""


def noted() -> bool:
    SEEN.append(FRAME(1).f_code.co_name)
    return True


def mapped(value: Any) -> Any:
    return noted() and value


def spread(value: Any) -> Iterator[Any]:
    if noted():
        yield value


def added(first: Any, second: Any) -> Any:
    return noted() and first


class Assigner(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return noted() and value


class Sum(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return noted() and accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a


class Process(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        if noted():
            yield value


ASSIGNED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Assigner())


class Plain(TimestampAssigner):
    """Never inlined: it has more than one statement."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        time = value
        return int(time)


def windowed(stream: DataStream) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Plain())
    timed = stream.assign_timestamps_and_watermarks(strategy)
    return timed.key_by(str).window(TumblingEventTimeWindows.of(Time.days(1)))


PLACES: dict[str, tuple[str, Callable[[DataStream], DataStream]]] = {
    "map": ("mapped", lambda s: s.map(mapped)),
    "filter": ("mapped", lambda s: s.filter(mapped)),
    "flat_map": ("spread", lambda s: s.flat_map(spread)),
    "key_by": ("mapped", lambda s: s.key_by(mapped).reduce(lambda a, b: a)),
    "declared key": ("mapped", lambda s: s.key_by(mapped, Types.LONG()).reduce(lambda a, b: a)),
    "timestamps": ("extract_timestamp", lambda s: s.assign_timestamps_and_watermarks(ASSIGNED)),
    "reduce": ("added", lambda s: s.key_by(lambda n: 0).reduce(added)),
    "window": ("added", lambda s: windowed(s.map(lambda n: 1)).reduce(added)),
    "aggregate": ("add", lambda s: windowed(s).aggregate(Sum())),
    "process": ("process_element", lambda s: s.key_by(lambda n: 0).process(Process())),
}


def names_seen(job: Callable[[StreamExecutionEnvironment], DataStream], inlines: bool) -> set[str]:
    SEEN.clear()
    settings = {"execution.target": "inline", "penstock.inline-functions.enabled": str(inlines).lower()}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    list(job(env).execute_and_collect())
    assert SEEN
    return set(SEEN)


@pytest.mark.parametrize("place", PLACES)
def test_functions_are_called_where_inlining_is_off(place: str) -> None:
    name, job = PLACES[place]
    assert names_seen(lambda env: job(env.from_collection([1, 2, 3])), inlines=False) == {name}


@pytest.mark.parametrize("place", sorted(set(PLACES) - {"process"}))  # Its loop has the name of the method.
def test_functions_are_inlined_where_inlining_is_on(place: str) -> None:
    """Otherwise the test before would hold whatever the switch does."""
    name, job = PLACES[place]
    assert name not in names_seen(lambda env: job(env.from_collection([1, 2, 3])), inlines=True)


def from_source(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_source(NumberSequenceSource(1, 3), ASSIGNED, "numbers")


def test_assigners_of_sources_are_called_where_inlining_is_off() -> None:
    assert names_seen(from_source, inlines=False) == {"extract_timestamp"}
    assert "extract_timestamp" not in names_seen(from_source, inlines=True)
