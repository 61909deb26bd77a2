"""A failure in a generated loop is reported as if the functions had been called, and no function runs a second time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.common import Configuration, Duration, Types, WatermarkStrategy
from penstock.common.time import Time
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.datastream.functions import AggregateFunction, KeyedProcessFunction
from penstock.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

EFFECTS: list[Any] = []
"""What the functions have done; the jobs run in this process."""


def noted(what: Any) -> bool:
    EFFECTS.append(what)
    return True


class Ticket(dict):  # type: ignore[type-arg]
    """An element that functions change in place."""


def stamp(ticket: Any) -> Any:
    return ticket.update(stamps=ticket["stamps"] + 1) or ticket


def refuse(ticket: Any) -> Any:
    return noted(("refuse", ticket["id"])) and 12 // (ticket["id"] - 3)


def is_refused(ticket: Any) -> bool:
    return bool(noted(("filter", ticket["id"])) and 12 // (ticket["id"] - 3))


def split(ticket: Any) -> Iterator[Any]:
    yield ticket["id"]
    yield 12 // (ticket["id"] - 3)


def statements(ticket: Any) -> Iterator[Any]:
    for each in range(2):
        quotient = (
            12
            // (ticket["id"] - 3)
        )  # fmt: skip
        yield each, quotient


def unpacking(ticket: Any) -> Iterator[Any]:
    for first, second in ([0, 1], range(ticket["id"] % 3 or 2)):
        yield second, first


def all_at_once(ticket: Any) -> Iterator[Any]:
    yield from range(12 // (ticket["id"] - 3))


def exhausted(ticket: Any) -> Iterator[Any]:
    yield next(iter([ticket["id"]] if ticket["id"] < 3 else []))


def spread(ticket: Any) -> tuple[Any, ...]:
    return ticket["id"] + 1, "x", ticket["stamps"]


def items(parts: Any) -> Any:
    return (
        parts[1],
        12 // (parts[0] - 4),
    )


def shared(first: Any, second: Any) -> Any:
    return noted(("reduce", second["id"])) and {"id": first["id"] // (second["id"] - 3), "stamps": 0}


class Sum(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + 12 // (value["id"] - 3)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class ById(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return noted(("time", value["id"])) and value["id"] // (value["id"] - 3)  # type: ignore[no-any-return]


def before_it_is_set() -> Any:
    def inner(ticket: Any) -> Any:
        return ticket["id"] + offset

    if EFFECTS == ["never"]:
        offset = 1
    return inner


def first_below(ticket: Any) -> Any:
    return next(each for each in (1, 2) if each >= ticket["id"])


class Exhausted(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield next(each for each in (1, 2) if each >= value["id"])


class ExhaustedList(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        return [first_below(value)]


class ExhaustedTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value["id"])
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield next(each for each in (1, 2) if each >= timestamp)


def timed(stream: DataStream) -> DataStream:
    class ByPlace(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value["id"])

    ahead = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1)).with_timestamp_assigner(ByPlace())
    return stream.assign_timestamps_and_watermarks(ahead)


SESSIONS = EventTimeSessionWindows.with_gap(Time.seconds(1))
TUMBLING = TumblingEventTimeWindows.of(Time.seconds(1))


def windowed(stream: DataStream, kind: Any = TUMBLING) -> Any:
    return timed(stream).key_by(lambda ticket: "all").window(kind)


JOBS: dict[str, Callable[[DataStream], DataStream]] = {
    "map": lambda s: s.map(stamp).map(refuse),
    "map of an unbuilt tuple": lambda s: s.map(stamp).map(spread).map(items),
    "filter": lambda s: s.map(stamp).filter(is_refused),
    "several yields": lambda s: s.map(stamp).flat_map(split).map(lambda n: n + 1),
    "generator": lambda s: s.map(stamp).flat_map(statements).map(lambda n: n[1]),
    "generator that unpacks": lambda s: s.map(stamp).flat_map(unpacking),
    "yield from": lambda s: s.flat_map(all_at_once).map(lambda n: n + 1),
    "after a generator": lambda s: s.flat_map(lambda t: [t, t]).map(stamp).map(refuse),
    "StopIteration in a generator": lambda s: s.map(stamp).flat_map(exhausted),
    "variable of an enclosing function that has no value": lambda s: s.map(stamp).map(before_it_is_set()),
    "StopIteration in a map": lambda s: s.map(stamp).map(first_below),
    "StopIteration in a filter": lambda s: s.filter(first_below),
    "StopIteration in a key selector": lambda s: s.key_by(first_below).map(lambda t: t),
    "StopIteration in a reduce": lambda s: s.key_by(lambda t: 0).reduce(lambda a, b: first_below(b)),
    "StopIteration in a process function": lambda s: s.key_by(lambda t: 0).process(Exhausted()),
    "StopIteration in a process function without yield": lambda s: s.key_by(lambda t: 0).process(ExhaustedList()),
    "StopIteration in a timer": lambda s: timed(s).key_by(lambda t: 0).process(ExhaustedTimer()),
    "key_by": lambda s: s.map(stamp).key_by(refuse).map(lambda t: t),
    "reduce": lambda s: s.map(stamp).key_by(lambda t: "all").reduce(shared),
    "timestamps": lambda s: s.map(stamp).assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ById())
    ),
    "window": lambda s: windowed(s.map(stamp)).reduce(shared),
    "aggregate": lambda s: windowed(s.map(stamp)).aggregate(Sum()),
    "session": lambda s: windowed(s.map(stamp), SESSIONS).reduce(shared),
    "session aggregate": lambda s: windowed(s.map(stamp), SESSIONS).aggregate(Sum()),
    "key of a window": lambda s: timed(s.map(stamp)).key_by(refuse).window(SESSIONS).reduce(shared),
    "key of a tumbling window": lambda s: (
        timed(s.map(stamp))
        .map(stamp)
        .key_by(refuse)
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .reduce(shared)
    ),
}


def report(job: Callable[[DataStream], DataStream], inlines: bool, combines: bool) -> tuple[str, list[Any]]:
    """What a failing job says, and what its functions have done."""
    EFFECTS.clear()
    settings = {
        "execution.target": "inline",
        "penstock.inline-functions.enabled": str(inlines).lower(),
        "penstock.combine.enabled": str(combines).lower(),
        "restart-strategy.type": "none",
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.get_config().set_auto_watermark_interval(10_000)  # All elements are in one batch.
    tickets = [Ticket(id=number, stamps=0) for number in range(1, 6)]
    with pytest.raises(Exception, match=r"record|timer") as raised:
        list(job(env.from_collection(tickets, Types.PICKLED_BYTE_ARRAY())).execute_and_collect())
    return str(raised.value), list(EFFECTS)


@pytest.mark.parametrize("combines", [True, False])
@pytest.mark.parametrize("name", JOBS)
def test_a_failure_in_a_loop_is_that_of_a_call(name: str, combines: bool) -> None:
    in_loop, effects = report(JOBS[name], True, combines)
    called, effects_of_calls = report(JOBS[name], False, combines)
    assert in_loop == called
    assert effects == effects_of_calls
    most = 2 if name == "after a generator" else 1
    assert all(count <= most for count in map(effects.count, effects))


@pytest.mark.parametrize("inlines", [True, False])
def test_the_report_shows_the_element_as_it_came_to_the_function(inlines: bool) -> None:
    said, _ = report(JOBS["map"], inlines, True)
    assert "{'id': 3, 'stamps': 1}" in said
    assert "refuse" in said
    said, _ = report(JOBS["map of an unbuilt tuple"], inlines, True)
    assert "record (4, 'x', 1)" in said


def test_a_multi_line_function_is_shown_with_the_line_that_failed() -> None:
    said, _ = report(JOBS["map of an unbuilt tuple"], True, True)
    assert "12 // (parts[0] - 4)," in said


@pytest.mark.parametrize("window", [TUMBLING, SESSIONS])
@pytest.mark.parametrize("key", [lambda t: noted(t["id"]) and 0, lambda t: noted(t["id"]) and [0]])
def test_a_key_is_selected_once_for_each_element(window: Any, key: Any) -> None:
    for combines, parallelism in itertools.product(("true", "false"), (1, 2)):
        EFFECTS.clear()
        settings = {"execution.target": "inline", "penstock.combine.enabled": combines}
        env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
        env.set_parallelism(parallelism)
        tickets = [Ticket(id=number, stamps=0) for number in range(5)]
        stream = timed(env.from_collection(tickets, Types.PICKLED_BYTE_ARRAY()))
        list(stream.key_by(key).window(window).reduce(lambda a, b: a).execute_and_collect())
        assert sorted(EFFECTS) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("make", [lambda n: n, lambda n: (n, n)])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_key_of_elements_in_columns_is_selected_once(make: Any, parallelism: int) -> None:
    EFFECTS.clear()
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"execution.target": "inline"}))
    env.set_parallelism(parallelism)
    numbers = 20_000  # Enough to be sent in columns, if the keys, which are floats, could be.
    keyed = env.from_collection(list(range(numbers))).map(make).key_by(lambda n: noted(n) and 0.5)
    list(keyed.map(lambda n: n).filter(lambda n: False).execute_and_collect())
    assert len(EFFECTS) == len(set(EFFECTS)) == numbers
