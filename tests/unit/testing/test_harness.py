"""The bench that users test their operators on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Time
from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from penstock.datastream import OutputTag
from penstock.datastream.connectors.sink_v2 import Sink, SinkWriter, SupportsCommitter
from penstock.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from penstock.graph.descriptions import SinkWriterDescription
from penstock.runtime.key_groups import KeyOwners
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import OperatorHarness

LATE = OutputTag("late")


def total(a, b):
    return a[0], a[1] + b[1]


def rolling(restored=None) -> OperatorHarness:
    return OperatorHarness.of(lambda stream: stream.key_by(lambda pair: pair[0]).reduce(total), restored)


def windowed(restored=None) -> OperatorHarness:
    return OperatorHarness.of(
        lambda stream: (
            stream.key_by(lambda pair: pair[0])
            .window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
            .side_output_late_data(LATE)
            .reduce(total)
        ),
        restored,
    )


def test_elements_go_through_the_operator_in_order():
    harness = OperatorHarness.of(lambda stream: stream.map(lambda value: value * 2))
    harness.element(1, at=10).element(2)
    assert harness.output == [2, 4]
    assert harness.output_with_timestamps == [(2, 10), (4, None)]


def test_state_and_timers_can_be_looked_at():
    harness = windowed().element(("a", 1), at=10).element(("b", 1), at=150)
    assert [(kind, time, key) for kind, time, key, _ in harness.timers] == [
        ("event-time", 99, "a"),
        ("event-time", 199, "b"),
    ]
    assert harness.state_entries == 2


def test_watermark_fires_and_is_passed_on():
    harness = windowed().element(("a", 1), at=10).element(("a", 2), at=20).watermark(99)
    assert harness.output_with_timestamps == [(("a", 3), 99)]
    assert (harness.watermarks, harness.current_watermark) == ([99], 99)
    assert (harness.timers, harness.state_entries) == ([], 0)


def test_late_elements_go_to_the_side_output():
    harness = windowed().watermark(500).element(("a", 1), at=10)
    assert (harness.output, harness.side_output(LATE)) == ([], [("a", 1)])


def test_clock_stands_still_until_it_is_moved():
    harness = OperatorHarness.of(
        lambda stream: (
            stream.key_by(lambda pair: pair[0])
            .window(TumblingProcessingTimeWindows.of(Time.milliseconds(100)))
            .reduce(total)
        ),
        processing_time=1000,
    )
    harness.element(("a", 1)).element(("a", 2))
    assert harness.output == []
    assert harness.processing_time(1098).output == []
    assert harness.processing_time(1099).output == [("a", 3)]


def test_end_of_input_fires_what_is_left():
    harness = windowed().element(("a", 1), at=10).end_input()
    assert (harness.output, harness.current_watermark) == ([("a", 1)], MAX_LONG_VALUE)


def test_no_watermark_yet_is_the_smallest_of_all():
    assert windowed().current_watermark == MIN_LONG_VALUE


def test_events_keep_the_order_of_elements_watermarks_and_idleness():
    class AtValue(TimestampAssigner):
        def extract_timestamp(self, value, record_timestamp):
            return value

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0)).with_timestamp_assigner(AtValue())
    harness = OperatorHarness.of(lambda stream: stream.assign_timestamps_and_watermarks(strategy))
    harness.element(5)
    harness.processing_time(1000)
    harness.element(9)
    harness.end_input()
    assert harness.recorded.events == [
        ("element", 5, 5),
        ("watermark", None, 4),
        ("element", 9, 9),
        ("watermark", None, MAX_LONG_VALUE),
    ]


def test_state_may_be_on_disk():
    harness = OperatorHarness.of(
        lambda stream: stream.key_by(lambda pair: pair[0]).reduce(total), state_backend=DiskBackend(cache_entries=1)
    )
    harness.batch([((key, 1), None) for key in "abcabcab"])
    assert harness.output[-3:] == [("c", 2), ("a", 3), ("b", 3)]
    assert harness.state_entries == 3
    harness.close()


class PartWriter(SinkWriter):
    def __init__(self):
        self._part = []

    def write(self, element, context):
        self._part.append(element)

    def flush(self, end_of_input):
        """All is in the part already."""

    def prepare_commit(self):
        part, self._part = self._part, []
        return [part] if part else []


class PartSink(Sink, SupportsCommitter):
    def create_writer(self, context):
        return PartWriter()

    def create_committer(self, context):
        raise AssertionError("commits are the driver's")


def test_sink_says_what_is_to_be_committed_with_a_checkpoint():
    harness = OperatorHarness(SinkWriterDescription(PartSink(), has_committer=True)).element("a").element("b")
    assert harness.prepare_commit(1) == [["a", "b"]]
    harness.snapshot(1)
    harness.notify_checkpoint_complete(1)
    assert harness.prepare_commit(2) == []


@pytest.mark.parametrize("backend", [HeapBackend(), DiskBackend(cache_entries=1)])
@given(keys=st.lists(st.sampled_from("abcdefgh"), max_size=30))
def test_subtasks_take_their_shares_of_former_subtasks_state(backend, keys):
    """From one subtask to three and on to two: every key continues with its sum, in one subtask."""

    def subtasks(parallelism, former=None):
        return [
            OperatorHarness.of(
                lambda stream: stream.key_by(lambda pair: pair[0]).reduce(total),
                former,
                subtask=subtask,
                parallelism=parallelism,
                state_backend=backend,
            )
            for subtask in range(parallelism)
        ]

    former = None
    for parallelism in (1, 3, 2):
        running = subtasks(parallelism, former)
        owners = KeyOwners(128, parallelism)
        for key in keys:
            running[owners[key]].element((key, 1))
        assert sum(harness.state_entries for harness in running) == len(set(keys))
        former = [harness.snapshot() for harness in running]
    sums = {key: total for harness in running for key, total in harness.output}
    assert sums == {key: 3 * keys.count(key) for key in keys}


pairs = st.lists(st.tuples(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), st.integers(0, 400)), max_size=30)


@pytest.mark.parametrize("build", [rolling, windowed])
@given(elements=pairs, cut=st.integers(0, 30))
def test_restoring_at_any_point_changes_nothing(build, elements, cut):
    before = build().feed(elements[:cut])
    after = build(before.snapshot()).feed(elements[cut:]).end_input()
    whole = build().feed(elements).end_input()
    assert sorted(before.output + after.output) == sorted(whole.output)
