"""Latency markers: when they are due, what operators keep of them, and that they overtake nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import ChunkWriter, Watermark, read_chunk
from penstock.runtime.clocks import EpochClock
from penstock.runtime.latency import Granularity, LatencyMarker, LatencyStats, LatencyTracking, MarkerClock
from penstock.runtime.metric_reports import HistogramReport, histogram_of
from penstock.runtime.protocol import JobDeployment
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.stream_task import StreamTask

MARKER = LatencyMarker("a" * 32, 1, 1_000)


def test_a_marker_is_due_once_in_an_interval():
    now = iter([100, 149, 150, 199, 260])
    clock = MarkerClock(LatencyTracking(50), lambda: next(now))
    assert [clock.due_ms() for _ in range(5)] == [100, None, 150, None, 260]


def test_a_marker_is_due_if_the_clock_was_set_back():
    now = iter([100_000, 20, 69, 70])
    clock = MarkerClock(LatencyTracking(50), lambda: next(now))
    assert [clock.due_ms() for _ in range(4)] == [100_000, 20, None, 70]


@pytest.mark.parametrize(
    ("granularity", "variables"),
    [
        (Granularity.SINGLE, ()),
        (Granularity.OPERATOR, (("source_id", "a" * 32),)),
        (Granularity.SUBTASK, (("source_id", "a" * 32), ("source_subtask_index", "1"))),
    ],
)
def test_histograms_keep_apart_what_the_granularity_says(granularity, variables):
    stats = LatencyStats(LatencyTracking(50, granularity, history=2), lambda: 1_007)
    for _ in range(3):
        stats.report(MARKER)
    assert stats.take_changed() == {variables: (3, [7, 7])}
    assert stats.take_changed() == {}


def test_a_clock_that_is_behind_gives_no_negative_latency():
    stats = LatencyStats(LatencyTracking(50, Granularity.SINGLE), lambda: 900)
    stats.report(MARKER)
    assert stats.take_changed() == {(): (1, [0])}


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=128))
def test_quantiles_are_values_that_came(values):
    told = histogram_of(len(values), values)
    assert set(told.quantiles) <= set(values) and list(told.quantiles) == sorted(told.quantiles)
    assert (told.min, told.max) == (min(values), max(values)) and told.min <= told.mean <= told.max + 1e-9
    below = sum(value <= told.quantiles[0] for value in values)
    assert below >= len(values) / 2


events = st.lists(st.sampled_from(["record", "watermark", "marker"]), max_size=12)


@given(events)
def test_order_is_kept_on_the_way(order):
    writer = ChunkWriter()
    for at, kind in enumerate(order):
        if kind == "record":
            writer.add_batch([at], None, None)
        elif kind == "watermark":
            writer.add_watermark(at)
        else:
            writer.add_latency_marker(LatencyMarker("s", 0, at))
    chunk = writer.take()
    read: list[tuple[str, int]] = []
    for event in [] if chunk is None else read_chunk(chunk):
        if isinstance(event, Batch):
            read += [("record", value) for value in event.values]
        elif isinstance(event, Watermark):
            read.append(("watermark", event.timestamp))
        else:
            assert isinstance(event, LatencyMarker)
            read.append(("marker", event.marked_ms))
    # Of watermarks in a row the last one is enough.
    expected = [
        (kind, at)
        for at, kind in enumerate(order)
        if not (kind == "watermark" and order[at + 1 : at + 2] == ["watermark"])
    ]
    assert read == expected


def chunks_of_source(latency):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict({"parallelism.default": "1"}))
    env.from_sequence(1, 3).map(lambda value: value).rebalance().map(lambda value: value).print()
    graph = build_job_graph(env.get_stream_graph())
    clock = EpochClock()
    clock.start(1)
    task = StreamTask(JobDeployment("job", graph, latency=latency), 0, 0, clock)
    task.open()
    assignment = SourceAssignment(range(1, 4), True)
    rows = list(task.run_epoch([Row(0, 0, FROM_DRIVER, 0, 0, assignment.encode())]))
    return task, [type(event) for row in rows for event in read_chunk(row.chunk)]


def test_sources_mark_before_the_records_and_operators_behind_them_note_it():
    task, kinds = chunks_of_source(LatencyTracking(1_000))
    assert kinds.count(LatencyMarker) == 1 and kinds.index(LatencyMarker) < kinds.index(Batch)
    reports = {name: each for of_operator in task.outcome().metrics.values() for name, each in of_operator.items()}
    [histogram] = [each for each in reports.values() if isinstance(each, HistogramReport)]
    assert histogram.count == 1, "the map notes the marker, the source does not"


def test_nothing_is_marked_unless_asked_for():
    task, kinds = chunks_of_source(None)
    assert LatencyMarker not in kinds
    assert all(context.latency is None for context in task.chain.contexts.values())


def test_settings_are_checked():
    assert LatencyTracking.of(Configuration()) is None
    with pytest.raises(ConfigurationError, match="granularity: 'vertex' is not known; use single, operator or subtask"):
        LatencyTracking.of(
            Configuration.from_dict({"metrics.latency.interval": "1 s", "metrics.latency.granularity": "vertex"})
        )
