from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Time, WatermarkStrategy
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

BATCH, STREAMING, AUTOMATIC = (
    RuntimeExecutionMode.BATCH, RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.AUTOMATIC,
)  # fmt: skip


def environment(mode: RuntimeExecutionMode, parallelism: int = 1) -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline"})
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
    return env.set_runtime_mode(mode)


def timed(env: StreamExecutionEnvironment, events: list[tuple[Any, int]]) -> Any:
    """Events (key, time) that may be 100 ms late, so that none is dropped."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Time.milliseconds(100)).with_timestamp_assigner(
        lambda event, _: event[1]
    )
    return env.from_collection(events).assign_timestamps_and_watermarks(strategy)


def keyed(env: StreamExecutionEnvironment, events: list[tuple[Any, int]]) -> Any:
    return timed(env, events).key_by(lambda event: event[0])


class CountPerTenMillis(KeyedProcessFunction):
    """A window of one's own: state and an event-time timer for each ten milliseconds."""

    def open(self, runtime_context):
        self._counts = runtime_context.get_state(ValueStateDescriptor("counts"))

    def process_element(self, value, ctx):
        end = ctx.timestamp() // 10 * 10 + 9
        counts = dict(self._counts.value() or {})
        counts[end] = counts.get(end, 0) + 1
        self._counts.update(counts)
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp, self._counts.value()[timestamp]


def add_up(left, right):
    return left[0], left[1] + right[1]


JOBS = {
    "tumbling": lambda s: s.window(TumblingEventTimeWindows.of(Time.milliseconds(10))).reduce(add_up),
    "sliding": lambda s: s.window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4))).reduce(
        add_up
    ),
    "sessions": lambda s: s.window(EventTimeSessionWindows.with_gap(Time.milliseconds(3))).reduce(add_up),
    "timers": lambda s: s.process(CountPerTenMillis()),
    "twice keyed": lambda s: (
        s.process(CountPerTenMillis())
        .key_by(lambda r: r[1])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
        .reduce(lambda a, b: ("all", a[1], a[2] + b[2]))
        .map(lambda r: (r[1], r[2]))
    ),
}

events = st.lists(st.tuples(st.sampled_from(["a", "b", "c", 1, 2.5]), st.integers(0, 60)), min_size=1, max_size=40)


@pytest.mark.parametrize("job", JOBS)
@settings(max_examples=15)
@given(events=events, parallelism=st.integers(1, 3))
def test_results_are_those_of_streaming_mode(job, events, parallelism):
    results = [
        Counter(JOBS[job](keyed(environment(mode, parallelism), events)).execute_and_collect())
        for mode in (BATCH, STREAMING, AUTOMATIC)
    ]
    assert results[0] == results[1] == results[2]


@settings(max_examples=15)
@given(events=events)
def test_a_reduce_emits_the_last_result_of_streaming_mode(events):
    rolling = list(keyed(environment(STREAMING), events).reduce(add_up).execute_and_collect())
    final = list(keyed(environment(BATCH), events).reduce(add_up).execute_and_collect())
    assert len(rolling) == len(events)
    assert Counter(final) == Counter(dict((key, (key, total)) for key, total in rolling).values())


def test_automatic_is_batch_only_if_all_sources_are_bounded():
    env = environment(AUTOMATIC)
    bounded = env.from_collection([1])
    bounded.print()
    assert env.get_stream_graph().is_batch
    bounded.map(str).union(env.socket_text_stream("localhost", 9)).print()
    assert not env.get_stream_graph().is_batch


def test_the_mode_may_be_set_after_the_operators():
    env = environment(STREAMING)
    counts = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda t: t[0]).sum(1)
    env.set_runtime_mode(BATCH)
    assert list(counts.execute_and_collect()) == [("a", 3)]


def test_a_batch_job_reads_all_its_input_at_once_whatever_the_size_of_epochs():
    env = environment(BATCH)
    env.get_configuration().set_string("penstock.epoch.max-records", "2")
    assert list(env.from_sequence(1, 9).key_by(lambda n: "all").reduce(max).execute_and_collect()) == [9]


def test_batch_mode_refuses_a_source_that_never_ends_and_names_it():
    env = environment(BATCH)
    env.socket_text_stream("localhost", 9).print()
    with pytest.raises(InvalidProgramError, match=r"BATCH mode, .*'Source: Socket Stream' is unbounded; use a bounded"):
        env.execute()


class Trace(KeyedProcessFunction):
    def open(self, runtime_context):
        self._seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value, ctx):
        self._seen.update((self._seen.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)
        ctx.timer_service().register_processing_time_timer(2**62)
        yield ctx.get_current_key(), "element", self._seen.value(), ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain().name, self._seen.value(), ctx.timer_service().current_watermark()


def test_a_key_is_done_with_all_its_timers_before_the_next_one_begins():
    lowest, highest = -(2**63), 2**63 - 1
    stream = keyed(environment(BATCH), [("a", 5), ("b", 99), ("a", 1)]).process(Trace())
    trace = list(stream.execute_and_collect())
    of_a = [
        ("a", "element", 1, lowest), ("a", "element", 2, lowest),
        ("a", "EVENT_TIME", 2, highest), ("a", "PROCESSING_TIME", 2, highest),
    ]  # fmt: skip
    of_b = [("b", "element", 1, lowest), ("b", "EVENT_TIME", 1, highest), ("b", "PROCESSING_TIME", 1, highest)]
    assert trace in (of_a + of_b, of_b + of_a)


class Sides(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield "left", value[1]

    def process_element2(self, value, ctx):
        yield "right", value[1]


def test_two_keyed_inputs_are_read_key_by_key_in_order_of_time():
    env = environment(BATCH)
    left, right = keyed(env, [("a", 4), ("b", 2), ("a", 1)]), keyed(env, [("b", 1), ("a", 3), ("a", 2)])
    seen = list(left.connect(right).process(Sides()).execute_and_collect())
    of_a = [("left", 1), ("right", 2), ("right", 3), ("left", 4)]
    of_b = [("right", 1), ("left", 2)]
    assert seen in (of_a + of_b, of_b + of_a)


LIMITS = MapStateDescriptor("limits")


class Check(BroadcastProcessFunction, KeyedBroadcastProcessFunction):  # type: ignore[misc]
    def process_element(self, value, ctx):
        yield value, ctx.get_broadcast_state(LIMITS).get("limit")

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(LIMITS).put("limit", value)


@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_broadcast_input_is_read_to_its_end_first(is_keyed):
    env = environment(BATCH, 2)
    numbers = env.from_sequence(1, 4)
    limits = env.from_sequence(1, 20000).filter(lambda n: n >= 19999).broadcast(LIMITS)
    stream = (numbers.key_by(lambda n: n) if is_keyed else numbers).connect(limits)
    assert sorted(stream.process(Check()).execute_and_collect()) == [(n, 20000) for n in range(1, 5)]


def test_memory_of_a_keyed_operator_does_not_grow_with_the_number_of_keys(monkeypatch):
    from penstock.runtime import stream_task

    held = []

    def end_key(operator, end=stream_task.end_key):
        held.append(len(operator.context.keyed_state))
        end(operator)

    monkeypatch.setattr(stream_task, "end_key", end_key)
    counts = environment(BATCH).from_sequence(1, 2000).key_by(lambda n: n % 500).process(Trace())
    assert sum(1 for _ in counts.execute_and_collect()) == 2000 + 2 * 500
    assert len(held) == 500 and max(held) == 3  # a value and two timers
