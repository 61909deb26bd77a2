"""Times that users give are whole milliseconds, whatever kind of number they come as."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.common.timestamps import are_whole, whole_milliseconds
from penstock.common.watermark_generator import Watermark, WatermarkGenerator, time_of
from penstock.datastream import KeyedProcessFunction, ProcessWindowFunction, SourceFunction, StreamExecutionEnvironment
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows
from penstock.testing import OperatorHarness

numbers = st.integers(-(2**53), 2**53)
limits = st.sampled_from([-(2**63) + 1, 2**63 - 1]).flatmap(
    lambda limit: st.integers(-30, 30).map(lambda step: min(max(limit + step, -(2**63) + 1), 2**63 - 1))
)


@given(numbers.flatmap(lambda n: st.sampled_from([n, float(n), np.int64(n), np.float64(n)])))
def test_every_kind_of_number_is_a_time(number: Any) -> None:
    time = whole_milliseconds(number, "somebody")
    assert (type(time), time) == (int, int(number))


@given(st.lists(numbers), st.sampled_from([0.5, np.int64(1), None, "1", (), [1]]), st.data())
def test_one_that_is_no_integer_is_found_among_many(times: list[Any], other: Any, data: Any) -> None:
    assert are_whole(times)
    times.insert(data.draw(st.integers(0, len(times))), other)
    assert not are_whole(times)


@given(st.lists(st.integers(-(2**40), 2**43)), st.sampled_from([2**63, -(2**63) - 1, 10**30, -(10**30)]), st.data())
def test_one_of_more_than_64_bits_is_found_among_many(times: list[Any], other: int, data: Any) -> None:
    assert are_whole(times) and are_whole([*times, 2**63 - 1]) and are_whole([*times, -(2**63)])
    times.insert(data.draw(st.integers(0, len(times))), other)
    assert not are_whole(times)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("12", "somebody gave '12' of type str, but a time is a whole number of milliseconds since 1970"),
        (None, "gave None of type NoneType, but a time is a whole number"),
        (math.nan, "gave nan of type float"),
        (math.inf, "gave inf of type float"),
        (2**63, "somebody gave the time 9223372036854775808, but a time is .* to 9223372036854775807; check its unit"),
        (-(2**63) - 1, "gave the time -9223372036854775809, but .*, from -9223372036854775808 to"),
        (1e30, "gave the time 1000000000000000019884624838656, but"),
        ((n for n in ()), "of type generator, .*; return it, do not yield it"),
        (datetime.datetime(2026, 1, 1), r"of type datetime, .*; int\(moment.timestamp\(\) \* 1000\) is one"),
    ],
)
def test_what_is_no_time_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidProgramError, match=message):
        whole_milliseconds(given, "somebody")


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.target": "inline"})
    ).set_parallelism(1)


def timed(env: StreamExecutionEnvironment, values: list[Any], assigner: Any) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    return env.from_collection(values).assign_timestamps_and_watermarks(strategy)


class Bounds(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield f"{context.window().start!r} {context.window().end!r}"


def test_windows_of_elements_with_fractions_of_milliseconds_begin_at_whole_ones() -> None:
    stream = timed(environment(), [("a", 1.7), ("a", 12.2)], lambda value, _: value[1])
    windows = stream.key_by(lambda value: value[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    assert list(windows.process(Bounds()).execute_and_collect()) == ["0 10", "10 20"]


def test_an_assigner_that_yields_is_reported_with_the_record() -> None:
    def yields(value: Any, _: int) -> Any:
        yield value

    stream = timed(environment(), ["first"], yields)
    with pytest.raises(JobExecutionError, match=r"at record 'first'.*timestamp assigner.*return it, do not yield it"):
        list(stream.execute_and_collect())


class TwoTimers(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value + 10.7)
        ctx.timer_service().register_event_time_timer(value + 10)
        ctx.timer_service().register_event_time_timer(value + 20)
        ctx.timer_service().delete_event_time_timer(value + 20.5)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield repr(timestamp)


class TimersByMethod(TwoTimers):
    """The same by a detour that no generated loop takes."""

    def process_element(self, value: Any, ctx: Any) -> None:
        timers = ctx.timer_service()
        for set_timer, time in (
            (timers.register_event_time_timer, value + 10.7),
            (timers.register_event_time_timer, value + 10),
            (timers.delete_event_time_timer, value + 20.5),
        ):
            set_timer(time)


@pytest.mark.parametrize("function", [TwoTimers, TimersByMethod])
def test_timers_within_one_millisecond_are_one(function: Any) -> None:
    harness = OperatorHarness.of(lambda stream: stream.key_by(lambda _: "key").process(function()))
    harness.element(1, at=1).watermark(50)
    assert (harness.output, harness.timers) == (["11"], [])


def test_processing_time_timers_too() -> None:
    class Later(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> None:
            ctx.timer_service().register_processing_time_timer(100.9)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield repr(timestamp)

    harness = OperatorHarness.of(lambda stream: stream.key_by(lambda _: "key").process(Later()))
    harness.element(1).processing_time(100)
    assert harness.output == ["100"]


@pytest.mark.parametrize("watermark", [5, 5.9, np.int64(5), Watermark(5)])
def test_watermarks_are_emitted_as_objects_or_numbers(watermark: Any) -> None:
    assert (time_of(watermark), type(time_of(watermark))) == (5, int)


def test_a_generator_of_ones_own_may_emit_fractions() -> None:
    class Fractions(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
            output.emit_watermark(event_timestamp - 0.5)

        def on_periodic_emit(self, output: Any) -> None:
            pass

    class Seen(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield repr(ctx.timer_service().current_watermark())

    strategy = WatermarkStrategy.for_generator(lambda: Fractions()).with_timestamp_assigner(lambda value, _: value)
    stream = environment().from_collection([10, 20]).assign_timestamps_and_watermarks(strategy)
    assert list(stream.key_by(lambda _: 0).process(Seen()).execute_and_collect())[-1] == "9"


class Fractions(SourceFunction):
    def run(self, ctx: Any) -> None:
        ctx.collect_with_timestamp("element", 7.6)
        ctx.emit_watermark(7.6)

    def cancel(self) -> None:
        pass


def test_timestamps_and_watermarks_of_source_functions_are_whole() -> None:
    class Show(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield repr(ctx.timestamp())

    stream = environment().add_source(Fractions()).key_by(lambda _: 0).process(Show())
    assert list(stream.execute_and_collect()) == ["7"]


# --- the limits of time ----------------------------------------------------------------------------------------------

TOO_LATE = 2**63


@pytest.mark.parametrize("many", [1, 9000])
def test_a_time_of_more_than_64_bits_is_reported_with_the_record(many: int) -> None:
    values = [("a", 5)] * many + [("a", TOO_LATE)]
    stream = timed(environment(), values, lambda value, _: value[1]).key_by(lambda value: value[0]).reduce(max)
    message = r"at record \('a', 9223372036854775808\).*timestamp assigner .* gave the time 9223372036854775808, but"
    with pytest.raises(JobExecutionError, match=message):
        list(stream.execute_and_collect())


def test_times_of_more_than_64_bits_that_cancel_out_are_refused_when_they_are_sent() -> None:
    class TooLarge(SourceFunction):
        def run(self, ctx: Any) -> None:
            ctx.collect_with_timestamp("element", TOO_LATE)

        def cancel(self) -> None:
            pass

    with pytest.raises(JobExecutionError, match="a source function gave the time 9223372036854775808, but"):
        list(environment().add_source(TooLarge()).execute_and_collect())

    from penstock.runtime.chunk import _packed_timestamps

    with pytest.raises(InvalidProgramError, match="assigns timestamps gave the time 18446744073709551616, but"):
        _packed_timestamps([5, 2**64, -(2**64)])


class LateTimer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value)


class LateTimerByMethod(LateTimer):
    def process_element(self, value: Any, ctx: Any) -> None:
        for set_timer in (ctx.timer_service().register_event_time_timer,):
            set_timer(value)


class LateTimerByTheClock(LateTimer):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(value)


@pytest.mark.parametrize("function", [LateTimer, LateTimerByMethod, LateTimerByTheClock])
def test_a_timer_of_more_than_64_bits_is_reported_with_the_record(function: Any) -> None:
    stream = environment().from_collection([7, TOO_LATE]).key_by(lambda _: "key").process(function())
    message = "at record 9223372036854775808.*a function that sets or deletes a timer gave the time 9223372036854775808"
    with pytest.raises(JobExecutionError, match=message):
        list(stream.execute_and_collect())


def test_a_timer_at_the_end_of_time_fires_with_it() -> None:
    class AtTheEnd(LateTimer):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield repr(timestamp)

    harness = OperatorHarness.of(lambda stream: stream.key_by(lambda _: "key").process(AtTheEnd()))
    harness.element(2**63 - 1, at=1).watermark(2**63 - 2)
    assert harness.output == []
    assert harness.watermark(2**63 - 1).output == [repr(2**63 - 1)]


WINDOWS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(20)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)),
    "with gaps": SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(25)),
    "sessions": EventTimeSessionWindows.with_gap(Time.milliseconds(20)),
}


class Counted(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield sum(count for _, count in elements)


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("kind", ["reduced", "processed"])
@settings(max_examples=15, deadline=None)
@given(times=st.lists(limits, min_size=1, max_size=4), lateness=st.sampled_from([0, 7]))
def test_windows_at_the_limits_of_time_lose_nothing(name: str, kind: str, times: list[int], lateness: int) -> None:
    assigner = WINDOWS[name]
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: value[0])
    stream = environment().from_collection([(time, 1) for time in times]).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by(lambda _: "key").window(assigner).allowed_lateness(lateness)
    if kind == "processed":
        results = list(windows.process(Counted()).execute_and_collect())
    else:
        reduced = windows.reduce(lambda a, b: (max(a[0], b[0]), a[1] + b[1])).execute_and_collect()
        results = [count for _, count in reduced]
    copies = 1 if name == "sessions" else sum(len(assigner.windows_at(time)) for time in times) / len(times)
    assert sum(results) == copies * len(times)
