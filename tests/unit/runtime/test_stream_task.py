"""Tasks that are kept between epochs and tasks rebuilt from snapshots before each one do the same."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.handles import HandleBook
from penstock.common import Duration, Time
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import DataStream, MapFunction, StreamExecutionEnvironment
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.jobmaster.stage_executor import InlineExecutor, run_whole_epoch
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, TaskAck, TaskHost, forget_run

run_numbers = itertools.count()


class MemoryStorage:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def write(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def read(self, name: str) -> bytes:
        return self.files[name]


class Driver:
    """Runs a job's epochs in this process; `rebuilds` throws the tasks away after every epoch."""

    def __init__(self, graph: JobGraph, rebuilds: bool) -> None:
        self._deployment = JobDeployment("0" * 32, graph)
        self._rebuilds = rebuilds
        self._executor = InlineExecutor()
        self.storage = MemoryStorage()
        self._executor.deploy(self._deployment, self.storage)
        self.book = HandleBook()
        self._epoch = 0
        self._run_id = ""
        self.acks: list[TaskAck] = []

    def epoch(self, records: list[Any], now_ms: int = 0, is_last: bool = False) -> list[str]:
        """What the sinks collected, in no particular order among keys."""
        if self._rebuilds or not self._run_id:
            self.close()
            self._run_id = f"run {next(run_numbers)}"
        self._epoch += 1
        command = EpochCommand(
            self._epoch, self._run_id, "attempt", self.book.orders(), now_ms, keeps_state=not is_last
        )
        rows = [Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment(records, is_last).encode())]
        host = TaskHost(self._deployment, self.storage, command)
        result = run_whole_epoch(self._executor, host, self._deployment, command, rows)
        assert result.failures == []
        self.acks = result.acks
        for name in self.book.complete(result.acks):
            del self.storage.files[name]
        return sorted(repr(value) for ack in result.acks for part in ack.outcome.collected.values() for value in part)

    def close(self) -> None:
        forget_run(self._run_id)


class WithSubtask(MapFunction):
    """Shows which subtask an element came to."""

    def open(self, runtime_context):
        self._subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value):
        return self._subtask, value


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


BOUNDED = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
EVENT_TIME = BOUNDED.with_timestamp_assigner(SecondField())
MONOTONOUS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


def summed(a, b):
    return a[0], max(a[1], b[1]), a[2] + b[2]


JOBS = {
    "keyed reduce": lambda s: s.key_by(lambda r: r[0]).reduce(summed),
    "round robin": lambda s: s.rebalance().map(WithSubtask()),
    "round robin, then keyed": lambda s: s.rebalance().map(lambda r: r).key_by(lambda r: r[0]).reduce(summed),
    "rescale": lambda s: s.rescale().map(WithSubtask()),
    "tumbling windows": lambda s: s.assign_timestamps_and_watermarks(EVENT_TIME)
    .key_by(lambda r: r[0])
    .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    .reduce(summed),
    "sliding windows with lateness": lambda s: s.assign_timestamps_and_watermarks(MONOTONOUS)
    .key_by(lambda r: r[0])
    .window(SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)))
    .allowed_lateness(7)
    .reduce(summed),
    "session windows": lambda s: s.assign_timestamps_and_watermarks(EVENT_TIME)
    .key_by(lambda r: r[0])
    .window(EventTimeSessionWindows.with_gap(Time.milliseconds(8)))
    .reduce(summed),
    "count windows": lambda s: s.key_by(lambda r: r[0]).count_window(3).reduce(summed),
    "sliding count windows": lambda s: s.key_by(lambda r: r[0]).count_window(3, 2).reduce(summed),
    # The clock moves in steps far longer than an epoch takes, so it does not matter how long that is.
    "processing-time windows": lambda s: s.key_by(lambda r: r[0])
    .window(TumblingProcessingTimeWindows.of(Time.days(2)))
    .reduce(summed),
}
DAY_MS = 24 * 3600 * 1000


def job_graph(build, parallelism: int) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    stream: DataStream = build(env.socket_text_stream("nowhere", 1))
    stream._sink("collected", CollectSinkDescription("collected"))
    return build_job_graph(env.get_stream_graph())


records = st.tuples(st.sampled_from("abcd"), st.integers(0, 60), st.just(1))
epochs = st.lists(st.lists(records, max_size=6), min_size=1, max_size=7)


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=25)
@given(parts=epochs, parallelism=st.integers(1, 3))
def test_task_rebuilt_before_every_epoch_gives_the_same(name, parts, parallelism):
    graph = job_graph(JOBS[name], parallelism)
    kept, rebuilt = Driver(graph, rebuilds=False), Driver(graph, rebuilds=True)
    for at, part in enumerate(parts):
        assert kept.epoch(part, at * DAY_MS) == rebuilt.epoch(part, at * DAY_MS)
        assert [ack.outcome.next_processing_time for ack in kept.acks] == [
            ack.outcome.next_processing_time for ack in rebuilt.acks
        ]
        assert [ack.outcome.watermark for ack in kept.acks] == [ack.outcome.watermark for ack in rebuilt.acks]
    assert kept.epoch([], len(parts) * DAY_MS, is_last=True) == rebuilt.epoch([], len(parts) * DAY_MS, is_last=True)


@pytest.mark.parametrize("name", ["keyed reduce", "tumbling windows", "session windows", "count windows"])
@settings(max_examples=25)
@given(parts=epochs)
def test_cutting_the_input_into_epochs_changes_no_result(name, parts):
    """Watermarks come at the end of epochs, so the windows' contents may only differ by late elements: none here."""
    in_order = sorted((r for part in parts for r in part), key=lambda r: r[1])
    graph = job_graph(JOBS[name], 2)
    whole, cut = Driver(graph, rebuilds=False), Driver(graph, rebuilds=True)
    sizes = [len(part) for part in parts]
    bounds = [0, *itertools.accumulate(sizes)]
    in_parts = [cut.epoch(in_order[start:end]) for start, end in itertools.pairwise(bounds)]
    in_parts.append(cut.epoch([], is_last=True))
    assert sorted(value for part in in_parts for value in part) == whole.epoch(in_order, is_last=True)


def test_snapshot_of_an_epoch_that_changed_nothing_is_not_written():
    driver = Driver(job_graph(JOBS["keyed reduce"], 2), rebuilds=False)
    driver.epoch([("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("d", 1, 1)])
    driver.epoch([("a", 1, 1)])
    changed = {(ack.vertex, ack.subtask) for ack in driver.acks if ack.handle is not None}
    assert len({subtask for vertex, subtask in changed if vertex == 1}) == 1


def test_no_files_pile_up():
    driver = Driver(job_graph(JOBS["keyed reduce"], 1), rebuilds=True)
    for _ in range(100):
        driver.epoch([("a", 1, 1)])
    assert len(driver.storage.files) <= 2 * 22


def test_last_epoch_writes_no_state():
    driver = Driver(job_graph(JOBS["tumbling windows"], 2), rebuilds=False)
    assert driver.epoch([("a", 3, 1), ("a", 4, 1)], is_last=True) == ["('a', 4, 2)"]
    assert driver.storage.files == {}
    assert all(ack.outcome.is_finished for ack in driver.acks)
