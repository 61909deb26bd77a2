"""Watermark alignment: sources of a group wait for each other, and nothing is lost or late for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_job import SourceJob

from penstock.common import Configuration, Types
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.time import Duration
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkAlignment, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.hybrid_source import HybridSource
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.connectors.simple_source import SimpleSource
from penstock.datastream.connectors.source_v2 import SourceReader
from penstock.datastream.connectors.support.split_reading import SplitsReader
from penstock.jobmaster.sources.watermark_alignment import AlignmentGroups

DRIFT_MS = 50
AT_ONCE = 4
FEW_AT_ONCE = {"penstock.epoch.max-records": str(AT_ONCE)}


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
ALIGNED = STRATEGY.with_watermark_alignment("group", Duration.of_millis(DRIFT_MS))


class Clocks(SimpleSource):
    """(name, time) with the times 0, step, 2 * step and so on, by name."""

    reads_in_turns = True

    def __init__(self, **steps_and_counts):
        super().__init__()
        self.clocks = steps_and_counts

    def splits(self):
        return list(self.clocks)

    def read(self, split, offset):
        step, count = self.clocks[split]
        for number in range(offset or 0, count):
            yield number + 1, (split, number * step)

    def all(self):
        return sorted((name, number * step) for name, (step, count) in self.clocks.items() for number in range(count))


def latest(values):
    found = {}
    for name, time in values:
        found[name] = max(time, found.get(name, 0))
    return found


def one_epoch(job):
    """As soon as there is something to do; meanwhile time advances."""
    if not job.has_work():
        job.now_ms += 1000
    job.wait_for_work()
    job.epoch()


def watched_to_the_end(job, most_ahead, rebuilds=False):
    """Runs the job; while the slow clock advances, the fast one must never be further ahead than this."""
    while not job.coordinator.is_exhausted:
        one_epoch(job)
        if rebuilds and not job.coordinator.is_exhausted:
            job.rebuild()
        times = latest(job.values)
        if "fast" in times and times.get("slow", 0) < 29:
            assert times["fast"] - times.get("slow", 0) <= most_ahead
        if job.number > 500:
            raise AssertionError("it hangs")
    job.close()
    return job


@pytest.mark.parametrize("parallelism", [1, 2])
def test_split_that_is_ahead_waits_for_the_others(parallelism):
    source = Clocks(fast=(10, 40), slow=(1, 30))
    job = SourceJob(source, parallelism, ALIGNED, FEW_AT_ONCE)
    # An epoch may overshoot by what it reads.
    watched_to_the_end(job, DRIFT_MS + 10 * AT_ONCE)
    assert sorted(job.values) == source.all()


def test_without_alignment_it_does_not():
    with pytest.raises(AssertionError):
        watched_to_the_end(SourceJob(Clocks(fast=(10, 40), slow=(1, 30)), 1, STRATEGY, FEW_AT_ONCE), DRIFT_MS + 40)


@pytest.mark.parametrize("rebuilds", [False, True])
def test_sources_within_another_wait_too(rebuilds):
    source = HybridSource.builder(Clocks(first=(1, 3))).add_source(Clocks(fast=(10, 40), slow=(1, 30))).build()
    job = watched_to_the_end(SourceJob(source, 1, ALIGNED, FEW_AT_ONCE), DRIFT_MS + 10 * AT_ONCE, rebuilds)
    assert len(job.values) == 73


class WholeReader(SplitsReader):
    pause_or_resume_splits = SourceReader.pause_or_resume_splits


class AsAWhole(Clocks):
    def create_reader(self, context):
        return WholeReader(context, self._read_split, True, splits_end=True)


def test_reader_that_cannot_pause_splits_is_paused_as_a_whole():
    source = AsAWhole(fast=(10, 40), slow=(1, 30))
    job = watched_to_the_end(SourceJob(source, 2, ALIGNED, FEW_AT_ONCE), DRIFT_MS + 10 * AT_ONCE)
    assert sorted(job.values) == source.all()


class Jumping(Clocks):
    """The slow clock passes the fast one in one go, while that waits."""

    def read(self, split, offset):
        times = [10 * number for number in range(20)] if split == "fast" else [*range(19), *range(1000, 1010)]
        for number in range(offset or 0, len(times)):
            yield number + 1, (split, times[number])


def test_split_that_waits_is_not_idle():
    job = SourceJob(Jumping(fast=(), slow=()), 1, ALIGNED.with_idleness(Duration.of_seconds(2)), FEW_AT_ONCE)
    while not job.values:  # A subtask without splits is idle after a while.
        job.wait_for_work()
        job.epoch()
    while not job.coordinator.is_exhausted:
        job.now_ms += 1000
        job.epoch()
    watermark = -1
    for kind, _, time in job.subtasks[0].output.events:
        if kind == "watermark":
            watermark = time
        elif kind == "element":
            assert time > watermark, "it came late"
    assert len(job.values) == 49
    job.close()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["fail", "rebuild", 1, 2])), max_size=6),
    st.integers(1, 2),
)
def test_every_record_comes_once_whatever_fails(events, parallelism):
    source = Clocks(fast=(10, 20), slow=(1, 20))
    job = SourceJob(source, parallelism, ALIGNED, FEW_AT_ONCE)
    for epochs, event in events:
        for _ in range(epochs):
            if not job.coordinator.is_exhausted:
                one_epoch(job)
        if job.coordinator.is_exhausted:
            break
        if event == "fail":
            job.fail()
        elif event != "rebuild":
            job.crash(event)
        elif job.last is not None:
            job.rebuild()
    before = job.number
    while not job.coordinator.is_exhausted:
        one_epoch(job)
        assert job.number < before + 500, "it hangs"
    job.close()
    assert sorted(job.values) == source.all()


def test_sources_of_a_job_wait_for_each_other():
    configuration = Configuration().set_string("execution.target", "inline")
    configuration.set_string("penstock.epoch.max-records", str(AT_ONCE))
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    kind = Types.TUPLE([Types.STRING(), Types.LONG()])
    aligned = STRATEGY.with_watermark_alignment("group", Duration.of_millis(DRIFT_MS), Duration.of_millis(10))
    fast, slow = (
        env.from_source(Clocks(**clock), aligned, name, kind)
        for name, clock in (("fast", {"fast": (10, 40)}), ("slow", {"slow": (1, 30)}))
    )
    with fast.union(slow).execute_and_collect() as results:
        values = [tuple(value) for value in results]
    assert sorted(values) == Clocks(fast=(10, 40), slow=(1, 30)).all()
    for at, (name, time) in enumerate(values):
        seen = latest(values[:at])
        if name == "fast" and 0 < seen.get("slow", 0) < 25:
            assert time - seen["slow"] <= DRIFT_MS + 2 * 10 * AT_ONCE


def test_limit_is_that_of_the_slowest_that_counts():
    groups, alignment = AlignmentGroups(), WatermarkAlignment("g", 10)
    assert groups.limit(alignment) is None
    groups.report(alignment, "a", {0: 100, 1: 50})
    groups.report(alignment, "b", {0: 30})
    groups.report(WatermarkAlignment("other", 10), "c", {0: 1})
    assert groups.limit(alignment) == 40
    groups.report(alignment, "b", {0: None})
    assert groups.limit(alignment) == 60
    groups.forget(alignment, "a")
    assert groups.limit(alignment) is None


def test_numbers_are_refused():
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(UnsupportedFeatureError, match=r"with_watermark_alignment\('group', .* DataGeneratorSource"):
        env.from_source(NumberSequenceSource(0, 9), ALIGNED, "numbers")
