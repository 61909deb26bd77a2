"""Windows with triggers of any kind, a batch at a time: the same output and the same state as the general operator."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_operator_model import Run
from test_quick_operators import same_assigner, tables
from window_cases import assigns, describe, finish, fires, streams
from window_model import Settings

from penstock.datastream.window import CountEvictor, Trigger, TriggerResult, TumblingEventTimeWindows
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.runtime.windowing.operator import WindowOperator
from penstock.runtime.windowing.timer_triggers import only_sets_timers
from penstock.runtime.windowing.triggered import TriggeredWindowOperator
from penstock.testing import OperatorHarness

thorough = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


class AtTheEndToo(Trigger):
    """Only sets timers, of both times."""

    def on_element(self, element, timestamp, window, ctx):
        """Both are set."""
        ctx.register_processing_time_timer(window.max_timestamp())
        ctx.register_event_time_timer(window.end - 2 + 3)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE

    def on_merge(self, window, ctx):
        raise NotImplementedError

    def clear(self, window, ctx):
        ctx.delete_processing_time_timer(window.max_timestamp())
        ctx.delete_event_time_timer(window.end + 1)


class AfterSeconds(AtTheEndToo):
    """The same with what a trigger was made with."""

    def __init__(self, wait_ms):
        self.wait_ms = wait_ms

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.start + self.wait_ms)
        return TriggerResult.CONTINUE


class Moody(AtTheEndToo):
    """Takes back timers, the operator's own among them, and fires or empties panes as elements want it."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.start + element[1])
        ctx.delete_event_time_timer(window.max_timestamp())
        ctx.delete_processing_time_timer(window.max_timestamp())
        return list(TriggerResult)[element[1] % 4]


@st.composite
def cases(draw):
    """Descriptions, each with the trigger that it has or with one of a user's."""
    assign = draw(assigns(kinds=("tumbling", "sliding")))
    contents = draw(st.sampled_from(["list", "reduce", "aggregate"]))
    lateness = draw(st.sampled_from([0, 0, 1, 7, 20]))
    description = describe(Settings(assign, draw(fires(assign)), None, lateness, draw(st.booleans()), contents))
    trigger = draw(st.sampled_from([None, None, AtTheEndToo(), AfterSeconds(3), Moody()]))
    return description if trigger is None else replace(description, trigger=trigger)


@pytest.mark.parametrize("backend", [HeapBackend, DiskBackend])
@thorough
@given(cases(), streams(), st.integers(0, 40))
def test_it_agrees_with_the_general_operator_also_after_a_restart(backend, description, steps, cut):
    quick = Run(description, [backend()])
    slow = Run(replace(description, assigner=same_assigner(description.assigner)), [backend()])
    assert type(slow.harness.operator) is WindowOperator
    for number, step in enumerate(finish(steps)):
        if number == cut:
            quick.restart()
            slow.restart()
        assert quick.step(step) == slow.step(step)
        assert tables(quick.harness) == tables(slow.harness)
    assert quick.close() == slow.close()


def changed_in(tables):
    return {name: {window: dict(keys) for window, keys in table.changed.items()} for name, table in tables.items()}


@thorough
@given(cases(), streams())
def test_what_changed_since_a_snapshot_is_the_same(description, steps):
    runs = [Run(description), Run(replace(description, assigner=same_assigner(description.assigner)))]
    for step in steps:
        for run in runs:
            run.step(step)
        changes = [changed_in(run.harness.context.keyed_state.tables) for run in runs]
        assert changes[0] == changes[1]


def test_windows_with_evictors_are_left_to_others():
    case = WindowDescription(lambda pair: pair[0], TumblingEventTimeWindows(10), AtTheEndToo(), CountEvictor(1))
    assert not isinstance(OperatorHarness(case).operator, TriggeredWindowOperator)


@pytest.mark.parametrize("trigger", [AtTheEndToo(), AfterSeconds(5)])
def test_a_trigger_that_only_sets_timers_is_asked_once_a_batch(trigger):
    assert only_sets_timers(trigger)
    asked = []
    ask = type(trigger).on_element
    harness = OperatorHarness(WindowDescription(lambda pair: pair[0], TumblingEventTimeWindows(10), trigger))
    harness.operator.trigger = _Watched(lambda *arguments: asked.append(arguments[0][0]) or ask(trigger, *arguments))
    harness.batch([(("a", 1), 1), (("a", 2), 2), (("b", 3), 3), (("a", 4), 11)])
    assert asked == ["a", "b", "a"]


class _Watched:
    def __init__(self, on_element):
        self.on_element = on_element


class LooksAtElement(AtTheEndToo):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(element[1])
        return TriggerResult.CONTINUE


class LooksAtTime(AtTheEndToo):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(timestamp + 1)
        return TriggerResult.CONTINUE


class LooksAtClock(AtTheEndToo):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + 5)
        return TriggerResult.CONTINUE


class Fires(AtTheEndToo):
    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.end)
        return TriggerResult.FIRE


class Deletes(AtTheEndToo):
    def on_element(self, element, timestamp, window, ctx):
        ctx.delete_event_time_timer(window.end)
        return TriggerResult.CONTINUE


class Counts(AtTheEndToo):
    seen = 0

    def on_element(self, element, timestamp, window, ctx):
        self.seen += 1
        return TriggerResult.CONTINUE


class OwnContinue(AtTheEndToo):
    def on_element(self, element, timestamp, window, ctx, TriggerResult=Fires):
        ctx.register_event_time_timer(window.end)
        return TriggerResult.CONTINUE


class Property(AtTheEndToo):
    @property
    def wait_ms(self):
        return id(object())

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.start + self.wait_ms)
        return TriggerResult.CONTINUE


@pytest.mark.parametrize(
    "trigger",
    [LooksAtElement(), LooksAtTime(), LooksAtClock(), Fires(), Deletes(), Counts(), OwnContinue(), Property(), Moody()],
)
def test_every_other_trigger_is_asked_about_each_element(trigger):
    assert not only_sets_timers(trigger)
