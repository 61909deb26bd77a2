"""What is remembered of epochs: sums stay true, whatever their lengths, and old ones go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.epoch_history import COARSE_MS, FINE_LENGTH, FINE_MS, EpochHistory, EpochReport, Total
from penstock.runtime.protocol import EpochOutcome, TaskAck

START = 1_700_000_000_000
BOTH = frozenset({0, 1})


def two_vertices():
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({}))
    env.from_collection([1]).key_by(lambda value: value).sum(0).print()
    graph = build_job_graph(env.get_stream_graph())
    assert [vertex.id for vertex in graph.vertices] == [0, 1]
    return graph


def outcome(records: int = 0, watermark: int = 0) -> EpochOutcome:
    return EpochOutcome(False, None, records, records, watermark, [], {}, {}, {}, bytes_in=10 * records)


def epoch(start: int, end: int, records: int = 0, first: tuple[int, int] | None = None, watermark: int = 0):
    """An epoch from `start` to `end`: vertex 0 runs for the time `first`, then vertex 1 to the end."""
    begin, done = first or (start, end)
    acks = [
        TaskAck(0, 0, 1, None, outcome(records, watermark), START + begin, START + done),
        TaskAck(1, 0, 1, None, outcome(records, watermark), START + done, START + end),
    ]
    return EpochReport(BOTH, START + start, 0, end - start, 0, False, acks)


def added(*reports: EpochReport) -> EpochHistory:
    history = EpochHistory(two_vertices())
    for report in reports:
        history.add(report, state_size=100)
    return history


lengths = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 4_000), st.integers(0, 10_000)), max_size=20)


@given(lengths)
def test_no_record_is_lost_or_counted_twice_however_long_epochs_are(epochs):
    reports, at = [], 0
    for pause, length, records in epochs:
        reports.append(epoch(at + pause, at + pause + length, records))
        at += pause + length
    history = added(*reports)
    for is_fine in (True, False):
        _, _, buckets = history.buckets(is_fine, 0, START + at + COARSE_MS)
        told = sum(bucket.vertices[0][Total.RECORDS_IN] for bucket in buckets if 0 in bucket.vertices)
        assert told == pytest.approx(sum(records for *_, records in epochs))
        assert sum(bucket.epochs for bucket in buckets) == pytest.approx(len(epochs))
        assert sum(bucket.durations.total() for bucket in buckets) == len(epochs)


def test_epoch_that_lasts_for_seconds_is_spread_over_them():
    history = added(epoch(0, 4_000, records=400))
    _, start, buckets = history.buckets(True, 0, START + 4_000)
    assert (start, [bucket.vertices[0][Total.RECORDS_IN] for bucket in buckets]) == (START, [100] * 4)


def test_memory_is_bounded():
    reports = [epoch(at, at + 10, records=1) for at in range(0, 2 * FINE_MS * FINE_LENGTH, 500)]
    history = added(*reports)
    assert len(history._fine._buckets) <= FINE_LENGTH
    with_subtasks = [bucket for bucket in history._fine._buckets.values() if bucket.subtasks]
    assert len(with_subtasks) <= 16


def test_only_buckets_that_are_over_and_new_are_reported():
    history = added(epoch(0, 10), epoch(1_000, 1_010), epoch(2_000, 2_010))
    _, start, buckets = history.buckets(True, START, START + 2_500)
    assert (start, len(buckets)) == (START + 1_000, 1)


def test_seconds_without_an_epoch_are_reported_as_empty():
    history = added(epoch(0, 10, records=5), epoch(3_000, 3_010, records=5))
    _, _, buckets = history.buckets(True, 0, START + 4_000)
    assert [bucket.epochs for bucket in buckets] == [1, 0, 0, 1]


def test_vertex_that_waits_for_those_behind_it_while_epochs_follow_each_other_is_backpressured():
    busy = [epoch(at, at + 100, first=(at, at + 20)) for at in range(0, 2_000, 100)]
    recent = added(*busy).recent(START + 2_000)
    assert recent[0, 0][Total.BUSY_MS] == pytest.approx(200)
    assert recent[0, 0][Total.BACKPRESSURED_MS] == pytest.approx(800, abs=50)
    assert recent[1, 0][Total.BACKPRESSURED_MS] == 0, "nobody is behind the last vertex"


def test_vertex_that_waits_for_input_is_not_backpressured():
    with_pauses = [epoch(at, at + 50, first=(at, at + 10)) for at in range(0, 2_000, 100)]
    recent = added(*with_pauses).recent(START + 2_000)
    assert recent[0, 0][Total.BACKPRESSURED_MS] == 0
    assert recent[0, 0][Total.BUSY_MS] == pytest.approx(100)


def test_vertex_that_waits_for_a_limited_rate_is_not_backpressured_although_epochs_follow_each_other():
    short = [replace(epoch(at, at + 5, first=(at, at + 1)), has_more=False) for at in range(0, 2_000, 7)]
    assert added(*short).recent(START + 2_000)[0, 0][Total.BACKPRESSURED_MS] == 0
    held = [replace(each, has_more=True) for each in short]
    assert added(*held).recent(START + 2_000)[0, 0][Total.BACKPRESSURED_MS] > 0


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=50), st.sampled_from([0.5, 0.99]))
def test_quantiles_of_durations_are_nearly_exact(durations, share):
    history = EpochHistory(two_vertices())
    for duration in durations:
        history.add(epoch(1_000_500 - duration, 1_000_500), 0)
    _, _, buckets = history.buckets(True, 0, START + 1_001_000)
    ordered = sorted(durations)
    exact = ordered[min(len(ordered) - 1, -(-int(share * 100) * len(ordered) // 100) - 1)]
    assert buckets[-1].duration_ms(share) == pytest.approx(exact, rel=0.06)


def test_lowest_watermark_counts():
    late = TaskAck(0, 1, 1, None, outcome(watermark=5), START, START + 10)
    report = epoch(0, 10, watermark=9)
    history = added(EpochReport(BOTH, START, 0, 10, 0, False, [*report.acks, late]))
    _, _, (bucket,) = history.buckets(True, 0, START + 1_000)
    assert bucket.watermarks == {0: 5, 1: 9}
