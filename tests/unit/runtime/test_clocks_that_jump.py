"""Wall clocks that are set, in running jobs and while jobs are down: intervals stay what they are."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, Duration, WatermarkStrategy
from penstock.common.moment import SLACK_MS, Moment
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.datastream.connectors.source_v2 import Boundedness
from penstock.graph.descriptions import CollectSinkDescription, WatermarksDescription
from penstock.graph.job_graph import build_job_graph
from penstock.runtime.clocks import EpochClock
from penstock.runtime.protocol import EpochCommand, JobDeployment, TaskAck
from penstock.runtime.rows import ACKNOWLEDGEMENT, FAILURE, FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.split_watermarks import SplitWatermarks
from penstock.runtime.worker import Worker
from penstock.testing import JobInEpochs, MemoryFolder

HOUR_MS = 3_600_000
START = Moment(1_000 * HOUR_MS, 0)

moments = st.builds(Moment, st.integers(0, 10**6), st.integers(0, 10**6))


class Ticks:
    """The monotonic clock of a subtask, as the test sets it."""

    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms

    def __enter__(self) -> Ticks:
        self._patch = patch("penstock.runtime.clocks.monotonic_ms", self)
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


@given(moments, st.integers(0, 10**6), st.integers(0, 10**6), st.integers(-(10**9), 10**9))
def test_a_time_comes_sooner_if_the_clock_is_set_forward_and_no_later_if_it_is_set_back(set_at, wait, passed, step):
    later, now = set_at.at(set_at.wall_ms + wait), Moment(set_at.wall_ms + passed + step, set_at.tick_ms + passed)
    left = now.until(later)
    assert left <= max(wait - passed, 0) + SLACK_MS
    if step > -SLACK_MS:
        assert left == wait - passed - step


@given(st.lists(moments), moments)
def test_the_first_of_several_moments(several, now):
    first = Moment.first(several)
    assert (first is None) == (not several)
    if first is not None:
        assert now.until(first) == min(now.until(each) for each in several)


# --- watermarks ------------------------------------------------------------------------------------------------------


def test_watermarks_are_emitted_at_their_interval_although_the_clock_was_set_back() -> None:
    with Ticks() as ticks:
        clock = EpochClock()
        clock.start(START.wall_ms)
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        watermarks = SplitWatermarks(WatermarksDescription(strategy), clock)
        list(watermarks.stamped("split", ["element"], [5]))
        clock.start(START.wall_ms - HOUR_MS)
        watermarks.advance()
        assert watermarks.combined() != (4, False)
        ticks.now_ms += WatermarksDescription(strategy).auto_watermark_interval_ms
        watermarks.advance()
        assert watermarks.combined() == (4, False)


def test_splits_are_idle_after_their_time_not_when_the_clock_is_set_forward() -> None:
    with Ticks() as ticks:
        clock = EpochClock()
        clock.start(START.wall_ms)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(10))
        watermarks = SplitWatermarks(WatermarksDescription(strategy), clock)
        list(watermarks.stamped("split", ["element"], [5]))
        idle = []
        for step_ms in (0, HOUR_MS, 0, -HOUR_MS):
            clock.start(START.wall_ms + step_ms)
            ticks.now_ms += 4
            watermarks.emit_periodic()
            idle.append(watermarks.combined()[1])
        assert idle == [False] * 4
        ticks.now_ms += 4
        watermarks.emit_periodic()
        assert watermarks.combined()[1]


# --- timers ----------------------------------------------------------------------------------------------------------


class Later(KeyedProcessFunction):
    """Sets a timer in as many milliseconds as the element says; shows which ones fire."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + int(value))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield timestamp


class ModelOfTimers:
    """As in Flink: the next timer fires after its time has passed, the ones behind it when the wall clock shows it."""

    def __init__(self) -> None:
        self.timers: set[int] = set()
        self.next: Moment | None = None

    def epoch(self, delays: list[int], now: Moment) -> list[int]:
        fired = self._fire(now)  # What is due comes first: an element may set the same timer again.
        self.timers |= {now.wall_ms + delay for delay in delays}
        return sorted(fired + self._fire(now))  # As a job in epochs shows them.

    def _fire(self, now: Moment) -> list[int]:
        is_due = self.next is not None and now.tick_ms >= self.next.tick_ms + SLACK_MS
        reached_ms = max(now.wall_ms, self.next.wall_ms) if is_due and self.next else now.wall_ms
        fired = sorted(each for each in self.timers if each <= reached_ms)
        self.timers -= set(fired)
        next_ms = min(self.timers, default=None)
        if next_ms is None:
            self.next = None
        elif self.next is None or self.next.wall_ms != next_ms:
            self.next = now.at(next_ms)
        return fired


delays = st.lists(st.integers(0, 3 * SLACK_MS), max_size=3)
jumps = st.one_of(st.just(0), st.just(0), st.integers(-HOUR_MS, HOUR_MS), st.integers(-5, 5))
steps = st.lists(st.tuples(st.integers(0, 3 * SLACK_MS), jumps, delays, st.booleans()), min_size=1, max_size=10)


@settings(max_examples=150, deadline=None)
@given(steps)
@example([(0, 0, [1], False), (1, 0, [0], False)])
@example([(0, 0, [1], False), (1001, -1001, [1], False)])
def test_timers_of_a_job_whose_clock_jumps_while_it_runs_and_while_it_is_down(steps):
    with Ticks() as ticks:
        job = JobInEpochs(lambda stream: stream.key_by(lambda _: "key").process(Later()))
        model, offset_ms = ModelOfTimers(), START.wall_ms
        for passed_ms, jump_ms, values, was_down in steps:
            ticks.now_ms += passed_ms
            offset_ms += jump_ms
            if was_down:
                job.fail()
                model.next = None  # A new process knows nothing of the time before.
            now = Moment(offset_ms + ticks.now_ms, ticks.now_ms)
            shown = job.epoch([str(each) for each in values], now.wall_ms)
            assert shown == [repr(each) for each in model.epoch(values, now)]
        job.close()


def test_a_timer_wakes_its_subtask_up_although_the_clock_was_set_back() -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(1)
    later = env.socket_text_stream("nowhere", 1).key_by(lambda _: "key").process(Later())
    later._sink("collected", CollectSinkDescription("collected"))
    worker = Worker(JobDeployment("0" * 32, build_job_graph(env.get_stream_graph())), MemoryFolder())

    def epoch(number: int, now_ms: int, values: list[str]) -> list[Any]:
        rows = [Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment(values, False).encode())] if values else []
        answers = list(worker.run_epoch(EpochCommand(number, now_ms, previous_epoch=number - 1), rows))
        assert not [row for row in answers if row.vertex == FAILURE]
        acks = [TaskAck.decode(row.chunk) for row in answers if row.vertex == ACKNOWLEDGEMENT]
        return [value for ack in acks for values in ack.outcome.collected.values() for value in values]

    with Ticks() as ticks:
        assert epoch(1, START.wall_ms, ["5000"]) == []
        ticks.now_ms = 5000
        assert epoch(2, START.wall_ms + 5000 - HOUR_MS, []) == []  # The clocks may differ a little.
        ticks.now_ms = 5000 + SLACK_MS
        assert epoch(3, START.wall_ms + 5000 + SLACK_MS - HOUR_MS, []) == [START.wall_ms + 5000]
        worker.close()


# --- idleness --------------------------------------------------------------------------------------------------------

TIMEOUT_MS = 1000
steps_of_splits = st.tuples(st.integers(0, 2), st.integers(0, 30))
downtimes = st.tuples(st.integers(-HOUR_MS, HOUR_MS), st.integers(0, 2 * HOUR_MS))


@settings(deadline=None)
@given(st.lists(st.one_of(st.lists(steps_of_splits, max_size=3), downtimes), min_size=1, max_size=20))
def test_no_split_is_idle_because_its_job_was_down_or_its_clock_was_set(happenings):
    """Each split is quiet for less than the timeout while the job runs: it holds the watermark back all the time."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(TIMEOUT_MS))
    with Ticks() as ticks:
        clock, offset_ms = EpochClock(), START.wall_ms
        clock.start(offset_ms)
        watermarks = SplitWatermarks(WatermarksDescription(strategy), clock)
        times = [0, 0, 0]
        for number in range(3):
            list(watermarks.stamped(str(number), ["element"], [0]))
        for happening in happenings:
            if isinstance(happening, tuple):
                memory = pickle.dumps(watermarks.memory())
                offset_ms, ticks.now_ms = offset_ms + happening[0], happening[1]  # On another machine, perhaps.
                clock = EpochClock()
                clock.start(offset_ms)
                watermarks = SplitWatermarks(WatermarksDescription(strategy), clock)
                watermarks.restore(pickle.loads(memory))
            else:
                for number, step_ms in happening:
                    times[number] += step_ms
                    list(watermarks.stamped(str(number), ["element"], [times[number]]))
            for _ in range(3):
                ticks.now_ms += TIMEOUT_MS // 100
                offset_ms += 1 - offset_ms % 3  # Clocks that are slewed, too.
                clock.start(offset_ms + ticks.now_ms)
                watermarks.emit_periodic()
                assert watermarks.combined() == (min(times) - 1, False)


# --- a whole job -----------------------------------------------------------------------------------------------------


class Polled(SimpleSource):
    """A list that has a new element whenever somebody asks for it again."""

    def splits(self) -> list[str]:
        return ["list"]

    def read(self, split: str, offset: int | None) -> Iterator[tuple[int, int]]:
        yield (offset or 0) + 1, offset or 0

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED


def test_sources_are_polled_although_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    step_ns = 0

    def time_ns() -> int:
        return time.time_ns() + step_ns

    monkeypatch.setattr("penstock.common.clocks.time", SimpleNamespace(time_ns=time_ns, monotonic_ns=time.monotonic_ns))
    config = {"execution.target": "inline", "penstock.source.idle-poll-interval": "1 ms"}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(config)).set_parallelism(1)
    polled = env.from_source(Polled(), WatermarkStrategy.no_watermarks(), "polled")
    with polled.execute_and_collect() as values:
        assert [next(values), next(values)] == [0, 1]
        step_ns = -HOUR_MS * 1_000_000
        assert [next(values) for _ in range(5)] == [2, 3, 4, 5, 6]
