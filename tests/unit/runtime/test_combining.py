"""Reducing before the exchange must not be seen in the results."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Duration, Time, Types, WatermarkStrategy
from penstock.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from penstock.graph.descriptions import WindowDescription
from penstock.testing.job_in_epochs import JobInEpochs

Event = tuple[str, int, int]
"""Key, value, timestamp."""

KEY, NUMBER, ANYTHING = Types.STRING(), Types.LONG(), Types.PICKLED_BYTE_ARRAY()

events = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99), st.integers(-50, 200)), min_size=1, max_size=60)
assigners = st.builds(
    lambda size, offset: TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset % size)),
    st.integers(1, 60),
    st.integers(0, 60),
)


def environment(combine: bool, max_records: int) -> StreamExecutionEnvironment:
    config = Configuration.from_dict(
        {
            "execution.target": "inline",
            "penstock.combine.enabled": str(combine).lower(),
            "penstock.epoch.max-records": str(max_records),
            "pipeline.auto-watermark-interval": "0",
        }
    )
    return StreamExecutionEnvironment.get_execution_environment(config)


def by_time_of_event(bound: int) -> WatermarkStrategy:
    return WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound)).with_timestamp_assigner(
        lambda event, _: event[2]
    )


def results_of(windowed: Any, combine: bool) -> Any:
    assert isinstance(windowed.transformation.operator, WindowDescription)
    assert windowed.transformation.operator.combines is combine
    return sorted(windowed.execute_and_collect())


def run(given: list[Event], assigner: WindowAssigner[Any, Any], bound: int, combine: bool, max_records: int) -> Any:
    # The first and the last value show the order in which elements were reduced.
    counts = (
        environment(combine, max_records)
        .from_collection(given)
        .assign_timestamps_and_watermarks(by_time_of_event(bound))
        .map(lambda event: (event[0], event[1], [event[1]], event[1]), Types.TUPLE([KEY, NUMBER, ANYTHING, NUMBER]))
        .key_by(lambda each: each[0])
        .window(assigner)
        .reduce(lambda left, right: (left[0], left[1] + right[1], left[2], right[3]))
        .set_parallelism(2)
    )
    return results_of(counts, combine)


@settings(max_examples=60, deadline=None)
@given(events, assigners, st.integers(0, 80), st.integers(1, 60))
def test_results_are_the_same_with_and_without_combining(
    given: list[Event], assigner: WindowAssigner[Any, Any], bound: int, max_records: int
) -> None:
    assert run(given, assigner, bound, True, max_records) == run(given, assigner, bound, False, max_records)


class Statistics(AggregateFunction):
    """Key, count, sum, smallest and largest value."""

    def create_accumulator(self) -> Any:
        return "", 0, 0, 1000, -1000

    def add(self, value: Any, accumulator: Any) -> Any:
        _, count, total, least, most = accumulator
        return value[0], count + 1, total + value[1], min(least, value[1]), max(most, value[1])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise AssertionError("Flink merges only where windows merge")


sliding = st.builds(
    lambda size, slide, offset: SlidingEventTimeWindows.of(
        Time.milliseconds(max(size, slide)),
        Time.milliseconds(min(size, slide)),
        Time.milliseconds(offset % min(size, slide)),
    ),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(0, 60),
)
functions = st.sampled_from(
    [
        lambda windowed: windowed.aggregate(Statistics()),
        lambda windowed: windowed.reduce(lambda a, b: (a[0], a[1] + b[1])),
        lambda windowed: windowed.reduce(lambda a, b: (a[0], max(a[1], b[1]))),
        lambda windowed: windowed.sum(1),
        lambda windowed: windowed.aggregate(Statistics(), Described()),
    ]
)


class Described(ProcessWindowFunction):
    """Windows show: that there are none without elements, and all that have some."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, *elements


@settings(max_examples=40, deadline=None)
@given(events, st.one_of(sliding, assigners), functions, st.integers(0, 80), st.integers(1, 60), st.integers(1, 2))
def test_what_does_not_depend_on_order_is_the_same_with_and_without_combining(
    given: list[Event], assigner: Any, function: Any, bound: int, max_records: int, sources: int
) -> None:
    # With several sources nothing may be late: what is depends on which source is ahead.
    bound = bound if sources == 1 else 300

    def results(combine: bool) -> Any:
        env = environment(combine, max_records)
        streams = [
            env.from_collection(given[at::sources])
            .assign_timestamps_and_watermarks(by_time_of_event(bound))
            .map(lambda event: (event[0], event[1]), Types.TUPLE([Types.STRING(), Types.LONG()]))
            for at in range(sources)
        ]
        keyed = streams[0].union(*streams[1:]).key_by(lambda pair: pair[0])
        return results_of(function(keyed.window(assigner)).set_parallelism(2), combine)

    assert results(True) == results(False)


@settings(max_examples=40, deadline=None)
@given(events, st.one_of(sliding, assigners), st.booleans(), st.integers(0, 80), st.integers(1, 60), st.integers(1, 3))
def test_windows_of_all_elements_are_the_same_with_and_without_combining(
    given: list[Event], assigner: Any, reduces: bool, bound: int, max_records: int, parallelism: int
) -> None:
    # With several subtasks nothing may be late: what is depends on which of them is ahead.
    bound = bound if parallelism == 1 else 300

    def results(combine: bool) -> Any:
        windowed = (
            environment(combine, max_records)
            .from_collection(given)
            .assign_timestamps_and_watermarks(by_time_of_event(bound))
            .map(lambda event: event[1], Types.LONG())
            .set_parallelism(parallelism)
            .window_all(assigner)
        )
        return results_of(windowed.reduce(lambda a, b: a + b) if reduces else windowed.aggregate(Extent()), combine)

    assert results(True) == results(False)


class Extent(AggregateFunction):
    """Count, smallest and largest value."""

    def create_accumulator(self) -> Any:
        return 0, 1000, -1000

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + 1, min(accumulator[1], value), max(accumulator[2], value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise AssertionError("Flink merges only where windows merge")


@settings(max_examples=30, deadline=None)
@given(events, st.integers(1, 60), st.integers(1, 60), st.integers(1, 3))
def test_sessions_of_all_elements_are_the_same_with_and_without_combining(
    given: list[Event], gap: int, max_records: int, parallelism: int
) -> None:
    def results(combine: bool) -> Any:
        sessions = (
            environment(combine, max_records)
            .from_collection(given)
            .assign_timestamps_and_watermarks(by_time_of_event(300))
            .map(lambda event: (event[1], event[2], event[2]), Types.TUPLE([NUMBER, NUMBER, NUMBER]))
            .set_parallelism(parallelism)
            .window_all(EventTimeSessionWindows.with_gap(Time.milliseconds(gap)))
            .reduce(lambda a, b: (a[0] + b[0], min(a[1], b[1]), max(a[2], b[2])))
        )
        return results_of(sessions, combine)

    assert results(True) == results(False)


def test_a_partitioner_of_the_users_sees_every_element_of_a_window_of_all() -> None:
    class Seen:
        keys: ClassVar[list[int]] = []

    numbers = environment(True, 10).from_collection([1, 2, 3]).set_parallelism(1)
    timed = numbers.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    )
    dealt = timed.partition_custom(lambda key, count: Seen.keys.append(key) or 0, lambda number: number)
    sums = dealt.window_all(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(lambda a, b: a + b)
    assert (list(sums.execute_and_collect()), Seen.keys) == ([6], [1, 2, 3])


def windowed_by(combine: bool, has_keys: bool) -> Any:
    """What builds a job that adds the numbers of its source, which are also their times, in windows of 10 ms."""

    def build(source: Any) -> Any:
        source.get_execution_environment().get_configuration().set_string(
            "penstock.combine.enabled", str(combine).lower()
        )
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda text, _: int(text))
        timed = source.assign_timestamps_and_watermarks(strategy)
        timed = timed.map(lambda text: ("k", int(text)), Types.TUPLE([KEY, NUMBER])).set_parallelism(2)
        assigner = TumblingEventTimeWindows.of(Time.milliseconds(10))
        windowed = timed.key_by(lambda pair: pair[0]).window(assigner) if has_keys else timed.window_all(assigner)
        sums = windowed.reduce(lambda a, b: (a[0], a[1] + b[1]))
        assert sums.transformation.operator.combines is combine
        return sums

    return build


@pytest.mark.parametrize("has_keys", [True, False])
@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True), (True, True)])
def test_a_job_continues_when_combining_is_turned_on_or_off(before: bool, after: bool, has_keys: bool) -> None:
    first = JobInEpochs(windowed_by(before, has_keys))
    emitted = first.epoch(["1", "3", "12"])
    checkpoint = first.checkpoint
    first.close()
    second = JobInEpochs(windowed_by(after, has_keys), restored=checkpoint)
    emitted += second.epoch(["2", "14", "25"])
    emitted += second.epoch(["26"], is_last=True)
    second.close()
    assert sorted(emitted) == ["('k', 26)", "('k', 4)", "('k', 51)"]


def test_many_keys_with_few_elements_each_are_the_same_with_and_without_combining() -> None:
    """Then combining is given up, and accumulators of single elements are sent."""

    def results(combine: bool) -> Any:
        keyed = (
            environment(combine, 200_000)
            .from_collection(range(120_000))
            .assign_timestamps_and_watermarks(
                WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number // 100)
            )
            .map(lambda number: (f"{number % 70_000}", number), Types.TUPLE([Types.STRING(), Types.LONG()]))
            .key_by(lambda pair: pair[0])
        )
        windowed = keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(900), Time.milliseconds(500)))
        return results_of(windowed.aggregate(Statistics()), combine)

    assert results(True) == results(False)


def test_element_without_event_time_is_reported_as_it_is_where_accumulators_are_sent() -> None:
    env = environment(True, 10)
    pairs = env.from_collection([("a", 7)]).map(lambda pair: pair, Types.TUPLE([Types.STRING(), Types.LONG()]))
    windowed = pairs.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.seconds(1)))
    results = windowed.aggregate(Statistics())
    assert results.transformation.operator.combines  # type: ignore[attr-defined]
    with pytest.raises(Exception, match=r"\('a', 7\)"):
        list(results.execute_and_collect())


def run_sessions(given: list[Event], gap: int, bound: int, combine: bool, max_records: int, sources: int) -> Any:
    env = environment(combine, max_records)
    streams = [
        env.from_collection(given[at::sources]).assign_timestamps_and_watermarks(by_time_of_event(bound))
        for at in range(sources)
    ]
    type_info = Types.TUPLE([KEY, NUMBER, NUMBER, NUMBER])
    first, *others = [
        stream.map(lambda event: (event[0], event[1], event[2], event[2]), type_info) for stream in streams
    ]
    # The first and last times show the extent of the sessions.
    sessions = (
        first.union(*others)
        .key_by(lambda visit: visit[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(gap)))
        .reduce(lambda a, b: (a[0], a[1] + b[1], min(a[2], b[2]), max(a[3], b[3])))
        .set_parallelism(2)
    )
    return results_of(sessions, combine)


@settings(max_examples=60, deadline=None)
@given(events, st.integers(1, 60), st.integers(0, 80), st.integers(1, 60))
def test_sessions_are_the_same_with_and_without_combining(
    given: list[Event], gap: int, bound: int, max_records: int
) -> None:
    results = [run_sessions(given, gap, bound, combine, max_records, 1) for combine in (True, False)]
    assert results[0] == results[1]


class Visits(AggregateFunction):
    """Key, count, sum, and the first and last time."""

    def create_accumulator(self) -> Any:
        return "", 0, 0, 1000, -1000

    def add(self, value: Any, accumulator: Any) -> Any:
        _, count, total, first, last = accumulator
        return value[0], count + 1, total + value[1], min(first, value[2]), max(last, value[2])

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        key, count, total, first, last = acc_a
        return key, count + acc_b[1], acc_b[2] + total, min(first, acc_b[3]), max(last, acc_b[4])


@settings(max_examples=60, deadline=None)
@given(events, st.integers(1, 60), st.integers(0, 80), st.integers(1, 60), st.integers(1, 2), st.booleans())
def test_aggregates_of_sessions_are_the_same_with_and_without_combining(
    given: list[Event], gap: int, bound: int, max_records: int, sources: int, is_described: bool
) -> None:
    bound = bound if sources == 1 else 300  # What is late depends on which source is ahead.

    def results(combine: bool) -> Any:
        env = environment(combine, max_records)
        streams = [
            env.from_collection(given[at::sources])
            .assign_timestamps_and_watermarks(by_time_of_event(bound))
            .map(lambda event: event, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()]))
            for at in range(sources)
        ]
        keyed = streams[0].union(*streams[1:]).key_by(lambda visit: visit[0])
        sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(gap)))
        aggregated = sessions.aggregate(Visits(), Described()) if is_described else sessions.aggregate(Visits())
        return results_of(aggregated.set_parallelism(2), combine)

    assert results(True) == results(False)


class MergesToLast(Visits):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_b


class MergesWithDoubleCount(Visits):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0], acc_a[1] + acc_a[1], acc_a[2] + acc_b[2], min(acc_a[3], acc_b[3]), max(acc_a[4], acc_b[4])


class MergesFieldsOfOthers(Visits):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0], acc_a[1] + acc_b[2], acc_a[2] + acc_b[1], min(acc_a[3], acc_b[3]), max(acc_a[4], acc_b[4])


class MergesNothing(Visits):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("function", [MergesToLast, MergesWithDoubleCount, MergesFieldsOfOthers, MergesNothing])
def test_sessions_do_not_combine_unless_the_function_s_own_merge_does_the_same(function: Any) -> None:
    env = environment(True, 10)
    visits = env.from_collection([("a", 7, 1)]).map(
        lambda visit: visit, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    )
    keyed = visits.key_by(lambda visit: visit[0])
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5))).aggregate(function())
    assert not sessions.transformation.operator.combines  # type: ignore[attr-defined]
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5))).aggregate(function())
    assert tumbling.transformation.operator.combines  # type: ignore[attr-defined]


def test_visit_without_event_time_is_reported_as_it_is_where_accumulators_of_sessions_are_sent() -> None:
    env = environment(True, 10)
    visits = env.from_collection([("a", 7, 1)]).map(
        lambda visit: visit, Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    )
    sessions = visits.key_by(lambda visit: visit[0]).window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    with pytest.raises(Exception, match=r"\('a', 7, 1\)"):
        list(sessions.aggregate(Visits()).execute_and_collect())


@settings(max_examples=20, deadline=None)
@given(events, st.integers(1, 60))
def test_sessions_of_several_sources_are_the_same_with_and_without_combining(given: list[Event], gap: int) -> None:
    # With a bound that nothing is later than, since what is late depends on which source is ahead.
    results = [run_sessions(given, gap, 300, combine, 7, 2) for combine in (True, False)]
    assert results[0] == results[1]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, None, None]), st.integers(0, 40)), min_size=1, max_size=12),
    st.sampled_from(
        [
            TumblingEventTimeWindows.of(Time.milliseconds(20)),
            SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)),
            EventTimeSessionWindows.with_gap(Time.milliseconds(9)),
        ]
    ),
    st.booleans(),
    st.booleans(),
    st.integers(1, 12),
)
def test_elements_that_are_none_are_the_same_with_and_without_combining(
    given: list[Any], assigner: WindowAssigner[Any, Any], has_loop_before: bool, has_keys: bool, max_records: int
) -> None:
    """None is no value, so it begins no sum; added to a sum, it fails. Epochs end anywhere between elements."""

    def sums(combine: bool) -> Any:
        timed = (
            environment(combine, max_records)
            .from_collection(given)
            .assign_timestamps_and_watermarks(
                WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100)).with_timestamp_assigner(
                    lambda event, _: event[1]
                )
            )
            .map(lambda event: event[0], NUMBER)
        )
        if not has_loop_before:
            kept = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100))
            timed = timed.assign_timestamps_and_watermarks(kept.with_timestamp_assigner(lambda _, time: time))
        windowed = timed.key_by(lambda number: 0).window(assigner) if has_keys else timed.window_all(assigner)
        try:
            return results_of(windowed.reduce(lambda a, b: a + b), combine)
        except Exception as failure:
            return type(failure), "NoneType" in str(failure)

    assert sums(True) == sums(False)


class Sum(Extent):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator + value[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class KeyAndResult(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, *elements


any_keys = st.sampled_from(
    [1, True, None, "a", [1], [1, None], (1, [2]), {"a": [1]}, {2}, bytearray(b"a"), float("nan")]
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(any_keys, st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=30),
    st.sampled_from(
        [TumblingEventTimeWindows.of(Time.milliseconds(30)), EventTimeSessionWindows.with_gap(Time.seconds(1))]
    ),
    st.booleans(),
    st.integers(1, 60),
)
def test_keys_of_any_kind_are_the_same_with_and_without_combining(
    given: list[Any], assigner: WindowAssigner[Any, Any], has_loop_before: bool, max_records: int
) -> None:
    def sums(combine: bool) -> list[str]:
        type_info = Types.TUPLE([ANYTHING, NUMBER, NUMBER])
        stream = environment(combine, max_records).from_collection(given).map(lambda event: event, type_info)
        timed = stream.assign_timestamps_and_watermarks(by_time_of_event(0))
        timed = timed.map(lambda event: (event[0], event[1] + 1, 0), type_info) if has_loop_before else timed
        windowed = timed.key_by(lambda event: event[0]).window(assigner)
        is_tumbling = isinstance(assigner, TumblingEventTimeWindows)
        result = windowed.sum(1) if is_tumbling else windowed.aggregate(Sum(), KeyAndResult())
        assert result.transformation.operator.combines is combine
        return sorted(map(repr, result.execute_and_collect()))

    assert sums(True) == sums(False)


def test_windows_with_lateness_late_output_or_other_triggers_do_not_combine() -> None:
    from penstock.datastream import OutputTag
    from penstock.datastream.window import CountTrigger, TumblingProcessingTimeWindows

    keyed = StreamExecutionEnvironment.get_execution_environment().from_collection([1]).key_by(lambda x: x)
    tumbling = TumblingEventTimeWindows.of(Time.seconds(1))
    streams = [
        keyed.window(tumbling).allowed_lateness(5),
        keyed.window(tumbling).side_output_late_data(OutputTag("late")),
        keyed.window(tumbling).trigger(CountTrigger.of(3)),
        keyed.window(TumblingProcessingTimeWindows.of(Time.seconds(1))),
        keyed.window(SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2))),
    ]
    for stream in streams:
        operator = stream.reduce(lambda a, b: a + b).transformation.operator
        assert not operator.combines
