from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Duration, Time
from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EndOfStreamTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindow,
    GlobalWindows,
    NeverTrigger,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowAssigner,
    WindowStagger,
)
from penstock.datastream.windowing.assigner import check_trigger


class At(WindowAssigner.WindowAssignerContext):
    """A context whose clock stands still."""

    def __init__(self, now):
        self.now = now

    def get_current_processing_time(self):
        return self.now

    def get_runtime_context(self):
        raise AssertionError("no state in these tests")


class LengthAsGap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return len(element)


def assign(assigner, timestamp=0, now=0, element="x"):
    return list(assigner.assign_windows(element, timestamp, At(now)))


ALL = [
    (TumblingEventTimeWindows.of(Time.seconds(5)), "TumblingEventTimeWindows(5000)", EventTimeTrigger()),
    (TumblingProcessingTimeWindows.of(Time.seconds(5)), "TumblingProcessingTimeWindows(5000)", ProcessingTimeTrigger()),
    (
        SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(1)),
        "SlidingEventTimeWindows(5000, 1000)",
        EventTimeTrigger(),
    ),
    (
        SlidingProcessingTimeWindows.of(Time.seconds(5), Time.seconds(1)),
        "SlidingProcessingTimeWindows(5000, 1000)",
        ProcessingTimeTrigger(),
    ),
    (EventTimeSessionWindows.with_gap(Time.seconds(5)), "EventTimeSessionWindows(5000)", EventTimeTrigger()),
    (
        ProcessingTimeSessionWindows.with_gap(Time.seconds(5)),
        "ProcessingTimeSessionWindows(5000)",
        ProcessingTimeTrigger(),
    ),
    (EventTimeSessionWindows.with_dynamic_gap(LengthAsGap()), "DynamicEventTimeSessionWindows()", EventTimeTrigger()),
    (
        ProcessingTimeSessionWindows.with_dynamic_gap(LengthAsGap()),
        "DynamicProcessingTimeSessionWindows()",
        ProcessingTimeTrigger(),
    ),
    (CountTumblingWindowAssigner.of(3), "CountTumblingWindowAssigner(3)", PurgingTrigger(CountTrigger(3))),
    (CountSlidingWindowAssigner.of(3, 2), "CountSlidingWindowAssigner(3, 2)", PurgingTrigger(CountTrigger(3))),
    (GlobalWindows.create(), "GlobalWindows()", NeverTrigger()),
    (GlobalWindows.create_with_end_of_stream_trigger(), "GlobalWindows()", EndOfStreamTrigger()),
]


@pytest.mark.parametrize(("assigner", "shown", "trigger"), ALL, ids=[a[1] for a in ALL])
def test_assigners_show_as_in_flinks_plans_and_bring_their_trigger(assigner, shown, trigger):
    assert str(assigner) == shown
    assert assigner.get_default_trigger(None) == trigger
    assert assigner.is_event_time() == ("EventTime" in shown)


@pytest.mark.parametrize("assigner", [a[0] for a in ALL if "Dynamic" not in a[1]], ids=str)
def test_assigners_are_values_that_survive_pickling(assigner):
    copy = pickle.loads(pickle.dumps(assigner))
    assert copy == assigner
    assert hash(copy) == hash(assigner)
    with pytest.raises(AttributeError):
        assigner.size = 7


def test_tumbling_event_time_goes_by_the_timestamp():
    assert assign(TumblingEventTimeWindows(10, 3), timestamp=12, now=99) == [TimeWindow(3, 13)]


def test_tumbling_processing_time_goes_by_the_clock():
    assert assign(TumblingProcessingTimeWindows(10), timestamp=12, now=99) == [TimeWindow(90, 100)]


def test_sliding_windows_come_latest_first():
    assert assign(SlidingEventTimeWindows(10, 4), timestamp=9) == [(8, 18), (4, 14), (0, 10)]
    assert assign(SlidingProcessingTimeWindows(10, 4), now=9) == [(8, 18), (4, 14), (0, 10)]


def test_an_element_between_sliding_windows_belongs_to_none():
    assert assign(SlidingEventTimeWindows(2, 5), timestamp=3) == []
    assert assign(SlidingEventTimeWindows(2, 5), timestamp=6) == [(5, 7)]


@given(st.integers(-500, 500), st.integers(1, 40), st.integers(1, 40), st.data())
def test_sliding_windows_are_all_those_that_hold_the_timestamp(timestamp, size, slide, data):
    offset = data.draw(st.integers(-slide + 1, slide - 1))
    found = assign(SlidingEventTimeWindows(size, slide, offset), timestamp)
    starts = [s for s in range(timestamp - size + 1, timestamp + 1) if (s - offset) % slide == 0]
    assert found == [TimeWindow(s, s + size) for s in reversed(starts)]


def test_sessions_begin_at_the_element_and_end_after_the_gap():
    assert assign(EventTimeSessionWindows(5), timestamp=7) == [(7, 12)]
    assert assign(ProcessingTimeSessionWindows(5), timestamp=7, now=70) == [(70, 75)]
    assert assign(DynamicEventTimeSessionWindows(LengthAsGap()), timestamp=7, element="abc") == [(7, 10)]
    assert assign(DynamicProcessingTimeSessionWindows(len), now=70, element="abc") == [(70, 73)]


def test_global_windows_hold_everything():
    assert assign(GlobalWindows.create(), 1) == assign(GlobalWindows.create(), 2) == [GlobalWindow.get()]


def test_spans_may_be_durations_and_timedeltas():
    assert TumblingEventTimeWindows.of(Duration.of_seconds(5), timedelta(seconds=1)) == TumblingEventTimeWindows(
        5000, 1000
    )


def test_days_of_another_time_zone_by_a_negative_offset():
    day = TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8))
    (window,) = assign(day, timestamp=0)
    assert window.start == -8 * 3_600_000


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TumblingEventTimeWindows(0), "TumblingEventTimeWindows: size must be positive, got 0"),
        (lambda: TumblingProcessingTimeWindows(-1), "TumblingProcessingTimeWindows: size must be positive"),
        (
            lambda: TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(5)),
            r"offset must be shorter than the size \(5000 ms\) in both directions, got 5000 ms",
        ),
        (lambda: TumblingEventTimeWindows(5, -5), "got -5 ms"),
        (lambda: SlidingEventTimeWindows(0, 5), "SlidingEventTimeWindows: size must be positive"),
        (lambda: SlidingEventTimeWindows(5, 0), "SlidingEventTimeWindows: slide must be positive"),
        (lambda: SlidingProcessingTimeWindows(9, 5, 5), r"offset must be shorter than the slide \(5 ms\)"),
        (lambda: EventTimeSessionWindows.with_gap(Time.seconds(0)), "EventTimeSessionWindows: gap must be positive"),
        (lambda: ProcessingTimeSessionWindows(-2), "ProcessingTimeSessionWindows: gap must be positive, got -2"),
        (lambda: CountTumblingWindowAssigner(0), "window_size must be positive"),
        (lambda: CountSlidingWindowAssigner(2, 0), "window_slide must be positive"),
        (lambda: TumblingEventTimeWindows.of(5), r"size must be a Time or Duration, e.g. Time.seconds\(5\), got 5"),
    ],
)
def test_impossible_sizes_are_refused_where_they_are_written(build, message):
    with pytest.raises(InvalidProgramError, match=message):
        build()


@pytest.mark.parametrize(
    "assigner", [TumblingEventTimeWindows(5), SlidingEventTimeWindows(5, 2), EventTimeSessionWindows(5)]
)
def test_element_without_event_time_is_an_error_that_says_what_to_do(assigner):
    with pytest.raises(InvalidProgramError, match=r"element 'x' has no event time, but .*\(5.*call assign_timestamps"):
        assign(assigner, timestamp=MIN_LONG_VALUE)


def test_dynamic_gap_must_be_positive():
    with pytest.raises(InvalidProgramError, match="the extractor returned 0 for element ''"):
        assign(DynamicEventTimeSessionWindows(LengthAsGap()), element="")


def test_aligned_windows_are_not_shifted():
    assert TumblingEventTimeWindows(10).stagger_offset_ms(13) == 0
    assert EventTimeSessionWindows(10).stagger_offset_ms(13) == 0


def test_natural_stagger_begins_windows_at_the_first_elements_clock_time():
    assigner = TumblingProcessingTimeWindows(10, 0, WindowStagger.NATURAL)
    shift = assigner.stagger_offset_ms(1234)
    assert shift == 4
    assert assign(assigner.shifted(shift), now=1234) == [(1234, 1244)]


def test_random_stagger_stays_within_a_window():
    assigner = TumblingEventTimeWindows(10, 9, WindowStagger.RANDOM)
    shifts = {assigner.stagger_offset_ms(0) for _ in range(200)}
    assert shifts <= set(range(10)) and len(shifts) > 1
    assert assigner.shifted(9) == TumblingEventTimeWindows(10, 8)


class EveryTwo(Trigger):
    """Says nothing about merging."""

    def on_element(self, element, timestamp, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def clear(self, window, ctx):
        """Keeps nothing."""


def test_trigger_that_cannot_merge_is_named_by_its_class_and_told_what_to_override():
    with pytest.raises(InvalidProgramError, match=r"but EveryTwo cannot be merged; override can_merge\(\)"):
        check_trigger(EventTimeSessionWindows.with_gap(Time.seconds(1)), EveryTwo())
