"""The quick window operators must do exactly what the general one does: same output in the same order, same state."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_operator_model import Run
from window_cases import LATE, SESSIONS, Contents, default_settings, describe, finish, join, key_of, streams

from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.functions import ProcessWindowFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    EventTimeSessionWindows,
    EventTimeTrigger,
    ProcessingTimeTrigger,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.windowing import build_window_operator
from penstock.runtime.windowing.aligned import AlignedWindowOperator
from penstock.runtime.windowing.operator import WindowOperator
from penstock.runtime.windowing.sessions import SessionWindowOperator
from penstock.testing import OperatorHarness

thorough = settings(max_examples=700, deadline=None, suppress_health_check=list(HealthCheck))

time_windows = default_settings(kinds=("tumbling", "sliding", "session", "dynamic"))


@dataclass(frozen=True)
class SameEventTimeTrigger(EventTimeTrigger):
    """The same trigger under another type: the quick operators leave it to the general one."""


@dataclass(frozen=True)
class SameProcessingTimeTrigger(ProcessingTimeTrigger):
    pass


class SameTumblingEventTimeWindows(TumblingEventTimeWindows):
    """The same assigner under another type, likewise."""


class SameSlidingEventTimeWindows(SlidingEventTimeWindows):
    pass


class SameTumblingProcessingTimeWindows(TumblingProcessingTimeWindows):
    pass


class SameSlidingProcessingTimeWindows(SlidingProcessingTimeWindows):
    pass


def same_assigner(assigner):
    """Sessions are not by batches with any other trigger than their own."""
    for kind in (
        SameTumblingEventTimeWindows,
        SameSlidingEventTimeWindows,
        SameTumblingProcessingTimeWindows,
        SameSlidingProcessingTimeWindows,
    ):
        if type(assigner) is kind.__base__:
            return kind(**{field.name: getattr(assigner, field.name) for field in fields(assigner)})
    return assigner


def general(description):
    is_event_time = description.assigner.is_event_time()
    trigger = SameEventTimeTrigger() if is_event_time else SameProcessingTimeTrigger()
    return replace(description, trigger=trigger, assigner=same_assigner(description.assigner))


class Visits(ProcessWindowFunction):
    """Uses all that a context offers."""

    SEEN = ValueStateDescriptor("seen")

    def __init__(self, has_window_state):
        self.has_window_state = has_window_state

    def process(self, key, context, elements):
        total = context.global_state().get_state(self.SEEN)
        total.update((total.value() or 0) + 1)
        fired = 0
        if self.has_window_state:
            of_window = context.window_state().get_state(self.SEEN)
            fired = (of_window.value() or 0) + 1
            of_window.update(fired)
        yield key, context.window(), total.value(), fired, context.current_watermark(), list(elements)
        context.output(LATE, ("fired", key))

    def clear(self, context):
        context.output(LATE, ("cleared", context.window()))
        if self.has_window_state:
            context.window_state().get_state(self.SEEN).clear()


def tables(harness):
    """All state, timers included, as plain dictionaries."""
    held = harness.context.keyed_state.tables
    return {name: {(window, key): value for window, key, value in table.all_entries()} for name, table in held.items()}


def in_order(records, is_session):
    """Sessions of different keys that end at the same time may fire in any order."""
    return sorted(records, key=lambda record: (record[1], repr(record))) if is_session else records


def assert_equal(quick, slow, is_session):
    results = [run.harness.output_with_timestamps for run in (quick, slow)]
    assert in_order(results[0], is_session) == in_order(results[1], is_session)
    assert [timestamp for _, timestamp in results[0]] == [timestamp for _, timestamp in results[1]]
    # One window may fire and another be dropped at the same time: which of the two is reported first is open.
    side = [sorted(run.harness.recorded.side.get("late", []), key=repr) for run in (quick, slow)]
    assert side[0] == side[1]
    assert quick.harness.metrics == slow.harness.metrics
    assert tables(quick.harness) == tables(slow.harness)


def describe_with_visits(case):
    has_window_state = case.assign.kind in ("tumbling", "sliding")
    return replace(describe(case), window_function=Visits(has_window_state))


@pytest.mark.parametrize("describe", [describe, describe_with_visits])
@thorough
@given(time_windows, streams())
def test_quick_and_general_operator_agree_in_output_and_state(describe, case, steps):
    description = describe(case)
    quick, slow = Run(description), Run(general(description))
    assert isinstance(quick.harness.operator, AlignedWindowOperator | SessionWindowOperator)
    assert type(slow.harness.operator) is WindowOperator
    for step in finish(steps):
        quick_results, slow_results = quick.step(step), slow.step(step)
        assert step[0] != "batch" or quick_results == slow_results
        assert_equal(quick, slow, case.assign.kind in SESSIONS)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(time_windows, streams(), st.integers(0, 40))
def test_either_operator_continues_from_the_others_state(case, steps, cut):
    quick, slow = describe(case), general(describe(case))
    results = []
    for first, second in [(quick, quick), (quick, slow), (slow, quick), (slow, slow)]:
        run, emitted = Run(first), []
        for number, step in enumerate(finish(steps)):
            if number == cut:
                run.description = second
                run.restart()
            emitted.append(sorted(run.step(step), key=repr))
        results.append((emitted, run.close()))
    assert results[0] == results[1] == results[2] == results[3]


def description(assigner, trigger=None, **more):
    return WindowDescription(key_of, assigner, trigger or assigner.get_default_trigger(), **more)


@pytest.mark.parametrize(
    ("assigner", "operator"),
    [
        (TumblingEventTimeWindows(5), AlignedWindowOperator),
        (SlidingEventTimeWindows(5, 2), AlignedWindowOperator),
        (TumblingProcessingTimeWindows(5), AlignedWindowOperator),
        (EventTimeSessionWindows(5), SessionWindowOperator),
    ],
)
def test_windows_with_their_own_trigger_run_on_a_quick_operator(assigner, operator):
    assert type(build_window_operator(description(assigner, window_function=Contents()))) is operator


@dataclass(frozen=True)
class OwnWindows(TumblingEventTimeWindows):
    def assign_windows(self, element, timestamp, context):
        return []


@pytest.mark.parametrize(
    "case",
    [
        description(TumblingEventTimeWindows(5), ContinuousEventTimeTrigger(2)),
        description(TumblingEventTimeWindows(5), ProcessingTimeTrigger()),
        description(TumblingProcessingTimeWindows(5), EventTimeTrigger()),
        description(TumblingEventTimeWindows(5), evictor=CountEvictor(1)),
        description(OwnWindows(5)),
    ],
)
def test_all_other_windows_run_on_the_general_operator(case):
    assert not isinstance(build_window_operator(case), AlignedWindowOperator | SessionWindowOperator)


@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows(5), EventTimeSessionWindows(5)])
def test_a_batch_with_an_element_without_event_time_names_it(assigner):
    harness = OperatorHarness(description(assigner, reduce_function=join))
    with pytest.raises(InvalidProgramError, match=r"element \('a', 2, 'y'\) has no event time"):
        harness.batch([(("a", 1, "x"), 3), (("a", 2, "y"), None)])
    with pytest.raises(InvalidProgramError, match=r"element \('a', 1, 'x'\) has no event time"):
        OperatorHarness(description(assigner, reduce_function=join)).element(("a", 1, "x"))
