"""What a window operator does, case by case."""

from __future__ import annotations

import pytest
from window_cases import LATE, Contents, Texts, join, key_of

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.common.typeinfo import Types
from penstock.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaTrigger,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    Evictor,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    WindowStagger,
)
from penstock.graph.descriptions import WindowDescription
from penstock.testing import OperatorHarness

SIDE = OutputTag("side", Types.STRING())


def windows(assigner, trigger=None, **more):
    if not {"reduce_function", "aggregate_function", "window_function"} & set(more):
        more["window_function"] = Contents()
    return WindowDescription(key_of, assigner, trigger or assigner.get_default_trigger(), **more)


def text(letters, key="a"):
    """An element whose number is 0."""
    return key, 0, letters


# --- lateness -------------------------------------------------------------------------------------------------------


def test_element_of_a_closed_window_is_dropped_and_counted():
    h = OperatorHarness(windows(TumblingEventTimeWindows(10)))
    h.element(text("x"), at=3).watermark(9).element(text("y"), at=4)
    assert h.output == [("a", 0, 10, ("x",))]
    assert h.metrics["numLateRecordsDropped"] == 1
    assert h.timers == [] and h.state_entries == 0


def test_element_of_a_closed_window_goes_to_the_late_side_output_with_its_timestamp():
    h = OperatorHarness(windows(TumblingEventTimeWindows(10), late_tag=LATE))
    h.watermark(9).element(text("y"), at=4)
    assert h.recorded.side == {"late": [(text("y"), 4)]}
    assert "numLateRecordsDropped" not in h.metrics


def test_window_stays_open_until_the_watermark_reaches_its_last_timestamp():
    h = OperatorHarness(windows(TumblingEventTimeWindows(10)))
    h.element(text("x"), at=3).watermark(8).element(text("y"), at=4)
    assert h.output == []
    h.watermark(9)
    assert h.output_with_timestamps == [(("a", 0, 10, ("x", "y")), 9)]


def test_allowed_late_element_fires_its_window_again_at_once():
    h = OperatorHarness(windows(TumblingEventTimeWindows(10), allowed_lateness_ms=5))
    h.element(text("x"), at=3).watermark(13).element(text("y"), at=4)
    assert h.output == [("a", 0, 10, ("x",)), ("a", 0, 10, ("x", "y"))]
    h.watermark(14).element(text("z"), at=4)
    assert len(h.output) == 2
    assert h.timers == [] and h.state_entries == 0


def test_element_between_sliding_windows_is_late_only_if_its_time_has_passed():
    h = OperatorHarness(windows(SlidingEventTimeWindows(2, 5)))
    h.watermark(10).element(text("x"), at=13).element(text("y"), at=9)
    assert h.output == []
    assert h.metrics["numLateRecordsDropped"] == 1


def test_element_between_sliding_windows_may_be_as_late_as_is_allowed():
    h = OperatorHarness(windows(SlidingEventTimeWindows(2, 5), allowed_lateness_ms=5))
    h.watermark(10).element(text("y"), at=9)
    assert "numLateRecordsDropped" not in h.metrics
    h.watermark(14).element(text("y"), at=9)
    assert h.metrics == {"numLateRecordsDropped": 1}


def test_element_late_for_some_sliding_windows_counts_in_the_others():
    h = OperatorHarness(windows(SlidingEventTimeWindows(10, 5)))
    h.watermark(10).element(text("x"), at=9).watermark(100)
    assert h.output == [("a", 5, 15, ("x",))]
    assert "numLateRecordsDropped" not in h.metrics


# --- sessions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
def test_an_element_between_two_sessions_joins_them(together):
    elements = [(text("x"), 0), (text("z"), 14), (text("y"), 7)]
    h = OperatorHarness(windows(EventTimeSessionWindows(10)))
    h.batch(elements) if together else h.feed(elements)
    assert [(timer[1], timer[3]) for timer in h.timers] == [(23, TimeWindow(0, 24))]
    h.watermark(23)
    assert h.output == [("a", 0, 24, ("x", "z", "y"))]
    assert h.timers == [] and h.state_entries == 0


def test_a_late_element_joins_two_sessions_that_are_still_kept():
    h = OperatorHarness(windows(EventTimeSessionWindows(10), allowed_lateness_ms=100))
    h.feed([(text("x"), 0), (text("z"), 14)]).watermark(12)
    assert h.output == [("a", 0, 10, ("x",))]
    h.element(text("y"), at=7)
    assert len(h.output) == 1  # The joined session has not ended yet.
    h.watermark(23)
    assert h.output[1:] == [("a", 0, 24, ("x", "z", "y"))]
    h.element(text("w"), at=3)
    assert h.output[2:] == [("a", 0, 24, ("x", "z", "y", "w"))]
    h.watermark(123)
    assert h.timers == [] and h.state_entries == 0


def test_a_late_element_lives_on_in_the_open_session_it_touches():
    h = OperatorHarness(windows(EventTimeSessionWindows(10)))
    h.element(text("x"), at=10).watermark(18).element(text("y"), at=1)
    h.watermark(19)
    assert h.output == [("a", 1, 20, ("x", "y"))]
    assert "numLateRecordsDropped" not in h.metrics


def test_a_session_of_exactly_the_same_span_keeps_its_elements():
    h = OperatorHarness(windows(DynamicEventTimeSessionWindows(lambda element: element[1])))
    h.feed([(("a", 5, "x"), 0), (("a", 7, "y"), 3), (("a", 10, "z"), 0)]).watermark(50)
    assert h.output == [("a", 0, 10, ("x", "y", "z"))]


def test_count_trigger_adds_up_over_joined_sessions():
    h = OperatorHarness(windows(EventTimeSessionWindows(10), CountTrigger(4)))
    h.feed([(text("x"), 0), (text("y"), 1), (text("z"), 16), (text("w"), 8)])
    assert h.output == [("a", 0, 26, ("x", "y", "z", "w"))]


def test_sessions_by_the_clock_end_after_the_gap():
    h = OperatorHarness(windows(ProcessingTimeSessionWindows(10)))
    h.element(text("x")).processing_time(5).element(text("y")).processing_time(13)
    assert h.output == []
    h.processing_time(14)
    assert h.output_with_timestamps == [(("a", 0, 15, ("x", "y")), 14)]
    assert h.timers == [] and h.state_entries == 0


def test_a_trigger_that_cannot_merge_is_refused_over_sessions():
    with pytest.raises(InvalidProgramError, match=r"EventTimeSessionWindows\(10\) merges windows, but DeltaTrigger\("):
        OperatorHarness(windows(EventTimeSessionWindows(10), DeltaTrigger.of(1, max)))


def test_per_window_state_is_refused_where_windows_merge():
    class Remember(ProcessWindowFunction):
        def process(self, key, context, elements):
            context.window_state().get_state(ValueStateDescriptor("mine"))

    h = OperatorHarness(windows(EventTimeSessionWindows(10), window_function=Remember()))
    with pytest.raises(UnsupportedFeatureError, match=r"per-window state 'mine' is not allowed.*context.global_state"):
        h.element(text("x"), at=0).watermark(50)


# --- contents -------------------------------------------------------------------------------------------------------


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2, key=lambda element: len(element[2]))


class ShowWindow(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.start, list(inputs))]


class ShowProcess(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, list(elements)


class ShowAll(AllWindowFunction):
    def apply(self, window, inputs):
        yield window.start, list(inputs)


class ShowProcessAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        yield context.window().start, list(elements)


CONTENTS = [
    ({"reduce_function": Longest()}, ("a", 0, "yy")),
    ({"reduce_function": join}, ("a", 0, "xyyz")),
    ({"aggregate_function": Texts()}, ["x", "yy", "z"]),
    ({}, [("a", 0, "x"), ("a", 0, "yy"), ("a", 0, "z")]),
]


@pytest.mark.parametrize(
    "assigner", [TumblingEventTimeWindows(10), EventTimeSessionWindows(4), TumblingProcessingTimeWindows(10)]
)
@pytest.mark.parametrize(("contents", "expected"), CONTENTS)
@pytest.mark.parametrize(
    ("function", "show"),
    [
        (ShowWindow(), lambda elements: ("a", 0, elements)),
        (ShowProcess(), lambda elements: ("a", 0, elements)),
        (ShowAll(), lambda elements: (0, elements)),
        (ShowProcessAll(), lambda elements: (0, elements)),
    ],
)
def test_window_functions_get_the_key_the_window_and_its_contents(assigner, contents, expected, function, show):
    is_all = isinstance(function, AllWindowFunction | ProcessAllWindowFunction)
    h = OperatorHarness(windows(assigner, window_function=function, is_all=is_all, **contents))
    h.feed([(text("x"), 0), (text("yy"), 1), (text("z"), 2)]).watermark(20).processing_time(20)
    assert h.output == [show([expected] if contents else expected)]


@pytest.mark.parametrize(("contents", "expected"), CONTENTS[:3])
def test_without_a_window_function_the_aggregate_itself_is_emitted(contents, expected):
    h = OperatorHarness(windows(TumblingEventTimeWindows(10), **contents))
    h.feed([(text("x"), 0), (text("yy"), 1), (text("z"), 2)]).watermark(20)
    assert h.output_with_timestamps == [(expected, 9)]


def test_aggregates_of_joined_sessions_are_merged():
    h = OperatorHarness(windows(EventTimeSessionWindows(10), aggregate_function=Texts()))
    h.batch([(text("x"), 0), (text("z"), 14), (text("y"), 7)]).watermark(50)
    assert h.output == [["x", "z", "y"]]


@pytest.mark.parametrize("trigger", [None, CountTrigger(1)])
def test_an_emitted_accumulator_does_not_change_any_more(trigger):
    h = OperatorHarness(
        windows(TumblingEventTimeWindows(10), trigger, aggregate_function=Texts(), allowed_lateness_ms=9)
    )
    h.watermark(10).feed([(text("x"), 0), (text("y"), 1)])
    assert h.output == [["x"], ["x", "y"]]


def test_a_window_that_aggregates_to_none_emits_nothing():
    class Nothing(AggregateFunction):
        def create_accumulator(self):
            return 0

        def add(self, value, accumulator):
            return accumulator

        def get_result(self, accumulator):
            return None

        def merge(self, acc_a, acc_b):
            return acc_a

    h = OperatorHarness(windows(TumblingEventTimeWindows(10), aggregate_function=Nothing()))
    assert h.element(text("x"), at=1).watermark(20).output == []
    assert h.state_entries == 0


def test_functions_are_opened_and_closed_once():
    calls = []

    class Recorded(ProcessWindowFunction):
        def open(self, runtime_context):
            calls.append(("open", runtime_context.get_index_of_this_subtask()))

        def process(self, key, context, elements):
            return None

        def close(self):
            calls.append("close")

    h = OperatorHarness(windows(TumblingEventTimeWindows(10), window_function=Recorded()), subtask=3, parallelism=4)
    h.element(text("x"), at=1).watermark(20)
    h.close()
    assert calls == [("open", 3), "close"]
    assert h.output == []


# --- contexts -------------------------------------------------------------------------------------------------------


def test_side_outputs_by_yield_and_by_context_carry_the_windows_last_timestamp():
    class Both(ProcessWindowFunction):
        def process(self, key, context, elements):
            context.output(SIDE, "by context")
            yield SIDE, "by yield"
            yield "main", key

    h = OperatorHarness(windows(TumblingEventTimeWindows(10), window_function=Both()))
    h.element(text("x"), at=1).watermark(20)
    assert h.recorded.side == {"side": [("by context", 9), ("by yield", 9)]}
    assert h.output_with_timestamps == [(("main", "a"), 9)]


def test_side_outputs_by_context_need_a_tag():
    class Named(ProcessWindowFunction):
        def process(self, key, context, elements):
            context.output("odd", key)

    h = OperatorHarness(windows(TumblingEventTimeWindows(10), window_function=Named())).element(text("x"), at=1)
    with pytest.raises(TypeError, match=r"context\.output needs an OutputTag, got 'odd'; write OutputTag"):
        h.watermark(20)


@pytest.mark.parametrize("trigger", [None, PurgingTrigger.of(CountTrigger.of(1))])
def test_window_state_is_apart_from_global_state_and_dropped_by_clear(trigger):
    seen = ValueStateDescriptor("count", Types.LONG())

    class Count(ProcessWindowFunction):
        def process(self, key, context, elements):
            for store in (context.window_state(), context.global_state()):
                state = store.get_state(seen)
                state.update((state.value() or 0) + 1)
                yield state.value()

        def clear(self, context):
            context.window_state().get_state(seen).clear()

    h = OperatorHarness(
        windows(TumblingEventTimeWindows(10), trigger, window_function=Count(), allowed_lateness_ms=100)
    )
    h.watermark(15).feed([(text("x"), 1), (text("y"), 2), (text("z"), 11)])
    h.watermark(19)
    assert h.output == [1, 1, 2, 2, 1, 3]
    h.watermark(1000)
    assert h.timers == [] and h.state_entries == 1  # The global count stays.


def test_a_trigger_and_a_function_may_use_the_same_state_name():
    class Count(ProcessWindowFunction):
        def process(self, key, context, elements):
            state = context.window_state().get_state(ValueStateDescriptor("count"))
            state.update("mine")
            yield state.value()

    h = OperatorHarness(windows(TumblingEventTimeWindows(10), CountTrigger(2), window_function=Count()))
    h.feed([(text("x"), 1), (text("y"), 2), (text("z"), 3)])
    assert h.output == ["mine"]


# --- count and global windows ---------------------------------------------------------------------------------------


def test_count_windows_fire_when_full_and_leave_only_the_counter():
    h = OperatorHarness(windows(CountTumblingWindowAssigner(2), reduce_function=join))
    h.feed([(text(letter), None) for letter in "pqrst"])
    assert h.output == [text("pq"), text("rs")]
    assert h.timers == []
    assert h.state_entries == 3  # How many elements there were, the open window's content and its count.


def test_sliding_count_windows_overlap():
    h = OperatorHarness(windows(CountSlidingWindowAssigner(3, 2), reduce_function=join))
    h.feed([(text(letter), None) for letter in "pqrstu"])
    assert h.output == [text("pqr"), text("rst")]


def test_global_windows_fire_at_the_end_of_the_input():
    h = OperatorHarness(windows(GlobalWindows.create_with_end_of_stream_trigger(), reduce_function=join))
    h.feed([(text("x"), 5), (text("y"), 4), (text("z", "b"), 6)]).watermark(10**9)
    assert h.output == []
    h.end_input()
    assert h.output == [text("xy"), text("z", "b")]


# --- evictors -------------------------------------------------------------------------------------------------------


def test_evicted_elements_are_gone_for_later_firings():
    h = OperatorHarness(windows(GlobalWindows.create(), CountTrigger(2), evictor=CountEvictor.of(3)))
    h.feed([(text(letter), None) for letter in "pqrst"])
    assert [texts for *_, texts in h.output] == [("p", "q"), ("q", "r", "s")]


def test_an_aggregate_runs_over_what_the_evictor_left():
    h = OperatorHarness(
        windows(GlobalWindows.create(), CountTrigger(3), evictor=CountEvictor.of(2), aggregate_function=Texts())
    )
    h.feed([(text(letter), None) for letter in "pqrstu"])
    assert h.output == [["q", "r"], ["t", "u"]]


def test_a_pane_that_was_emptied_after_firing_holds_nothing():
    class EvictAll(Evictor):
        def evict_before(self, elements, size, window, evictor_context):
            assert (size, evictor_context.get_current_watermark()) == (len(elements), h.current_watermark)

        def evict_after(self, elements, size, window, evictor_context):
            elements.clear()

    h = OperatorHarness(windows(TumblingEventTimeWindows(10), CountTrigger(2), evictor=EvictAll()))
    h.feed([(text(letter), at) for at, letter in enumerate("pqr")])
    assert [texts for *_, texts in h.output] == [("p", "q")]
    h.feed([(text("s"), 3)])
    assert [texts for *_, texts in h.output[1:]] == [("r", "s")]
    assert h.state_entries == 0


# --- stagger --------------------------------------------------------------------------------------------------------


def test_a_subtask_keeps_its_natural_stagger_when_it_moves():
    assigner = TumblingProcessingTimeWindows(10, 0, WindowStagger.NATURAL)
    h = OperatorHarness(windows(assigner, reduce_function=join), processing_time=1234)
    h.element(text("x"))
    moved = OperatorHarness(windows(assigner, reduce_function=join), restored=h.snapshot(), processing_time=1239)
    moved.element(text("y")).processing_time(1243)
    assert moved.output_with_timestamps == [(text("xy"), 1243)]
