"""Tasks that are kept between epochs and tasks rebuilt from snapshots before each one do the same."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Duration, Time
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import MapFunction
from penstock.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.testing import JobInEpochs


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
    "tumbling windows": lambda s: (
        s.assign_timestamps_and_watermarks(EVENT_TIME)
        .key_by(lambda r: r[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .reduce(summed)
    ),
    "sliding windows with lateness": lambda s: (
        s.assign_timestamps_and_watermarks(MONOTONOUS)
        .key_by(lambda r: r[0])
        .window(SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10)))
        .allowed_lateness(7)
        .reduce(summed)
    ),
    "session windows": lambda s: (
        s.assign_timestamps_and_watermarks(EVENT_TIME)
        .key_by(lambda r: r[0])
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(8)))
        .reduce(summed)
    ),
    "count windows": lambda s: s.key_by(lambda r: r[0]).count_window(3).reduce(summed),
    "sliding count windows": lambda s: s.key_by(lambda r: r[0]).count_window(3, 2).reduce(summed),
    # The clock moves in steps far longer than an epoch takes, so it does not matter how long that is.
    "processing-time windows": lambda s: (
        s.key_by(lambda r: r[0]).window(TumblingProcessingTimeWindows.of(Time.days(2))).reduce(summed)
    ),
}
DAY_MS = 24 * 3600 * 1000


records = st.tuples(st.sampled_from("abcd"), st.integers(0, 60), st.just(1))
epochs = st.lists(st.lists(records, max_size=6), min_size=1, max_size=7)


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=25)
@given(parts=epochs, parallelism=st.integers(1, 3))
def test_task_rebuilt_before_every_epoch_gives_the_same(name, parts, parallelism):
    kept, rebuilt = JobInEpochs(JOBS[name], parallelism), JobInEpochs(JOBS[name], parallelism, rebuilds=True)
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
    whole, cut = JobInEpochs(JOBS[name], 2), JobInEpochs(JOBS[name], 2, rebuilds=True)
    sizes = [len(part) for part in parts]
    bounds = [0, *itertools.accumulate(sizes)]
    in_parts = [cut.epoch(in_order[start:end]) for start, end in itertools.pairwise(bounds)]
    in_parts.append(cut.epoch([], is_last=True))
    assert sorted(value for part in in_parts for value in part) == whole.epoch(in_order, is_last=True)


@pytest.mark.parametrize("name", JOBS)
@settings(max_examples=25)
@given(parts=epochs, parallelism=st.integers(1, 3), checkpoints=st.sets(st.integers(0, 6)), data=st.data())
def test_going_back_to_a_checkpoint_changes_nothing(name, parts, parallelism, checkpoints, data):
    """A failure after any epoch: the epochs since the last checkpoint are repeated and give the same again."""
    smooth, rough = JobInEpochs(JOBS[name], parallelism), JobInEpochs(JOBS[name], parallelism)
    expected = [smooth.epoch(part, at * DAY_MS) for at, part in enumerate(parts)]
    fails_after = data.draw(st.integers(0, len(parts) - 1))
    since = 0
    for at in range(fails_after + 1):
        assert rough.epoch(parts[at], at * DAY_MS, is_checkpoint=at in checkpoints) == expected[at]
        since = at + 1 if at in checkpoints else since
    rough.fail()
    for at in range(since, len(parts)):
        assert rough.epoch(parts[at], at * DAY_MS, is_checkpoint=at in checkpoints) == expected[at]
    end_ms = len(parts) * DAY_MS
    assert rough.epoch([], end_ms, is_last=True) == smooth.epoch([], end_ms, is_last=True)


def test_snapshot_of_an_epoch_that_changed_nothing_is_not_written():
    job = JobInEpochs(JOBS["keyed reduce"], 2)
    job.epoch([("a", 1, 1), ("b", 1, 1), ("c", 1, 1), ("d", 1, 1)])
    job.epoch([("a", 1, 1)])
    changed = {(ack.vertex, ack.subtask) for ack in job.acks if ack.handle is not None}
    assert len({subtask for vertex, subtask in changed if vertex == 1}) == 1


def test_epoch_without_checkpoint_writes_no_state():
    job = JobInEpochs(JOBS["keyed reduce"], 2)
    job.epoch([("a", 1, 1)], is_checkpoint=False)
    assert job.folder.files == {}
    assert job.epoch([("a", 1, 1)]) == ["('a', 1, 2)"]
    assert len([path for path in job.folder.files if "shared" in path]) == 3, "the source and two reduces"


def test_no_files_pile_up():
    job = JobInEpochs(JOBS["keyed reduce"], 1, rebuilds=True)
    for _ in range(300):
        job.epoch([("a", 1, 1)])
    assert len(job.folder.files) <= 3 * 202


@pytest.mark.parametrize("epochs_since", [0, 1])
def test_task_that_is_gone_says_so_instead_of_starting_without_its_state(epochs_since):
    job = JobInEpochs(JOBS["keyed reduce"], 1)
    job.epoch([("a", 1, 1)])
    for _ in range(epochs_since):
        job.epoch([("a", 1, 1)], is_checkpoint=False)
    job.replace_processes()
    with pytest.raises(AssertionError, match="lost its state: the process that held it since checkpoint 1 has ended"):
        job.epoch([("a", 1, 1)])
