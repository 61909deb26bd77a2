"""Elements for which a function raises are left out or kept apart; everything else is as if they had not come."""

from __future__ import annotations

import asyncio
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Types
from penstock.common.exceptions import InvalidProgramError, StateAccessError
from penstock.common.time import Duration, Time
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedProcessFunction,
    OnError,
    OutputTag,
    ProcessFunction,
    SinkFunction,
    StreamExecutionEnvironment,
)
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.window import TumblingProcessingTimeWindows
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import OperatorHarness

FAILED, SIDE = OutputTag("failed"), OutputTag("side")
KEPT_APART = OnError.to_side_output(FAILED)


def inverse(number):
    return 12 // number


def failed(harness):
    return [(each.value, each.error) for each in harness.side_output(FAILED)]


class Running(KeyedProcessFunction):
    """The sum of a key; a negative number fails after it was added."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        yield "early", total
        ctx.output(SIDE, total)
        if value[1] < 0:
            raise ValueError(f"{value[1]} is negative")
        ctx.timer_service().register_event_time_timer(total)
        yield value[0], total

    def on_timer(self, timestamp, ctx):
        yield "timer", timestamp
        if timestamp % 2:
            raise RuntimeError("odd")


def running(on_error, **where):
    return OperatorHarness.of(
        lambda stream: stream.key_by(lambda pair: pair[0]).process(Running()).on_error(on_error), **where
    )


def test_skipped_elements_are_counted_and_logged(caplog):
    harness = OperatorHarness.of(lambda stream: stream.map(inverse).name("invert").on_error(OnError.skip()))
    with caplog.at_level(logging.WARNING):
        harness.batch([(3, 30), (0, 0), (4, 40), (0, 1), (0, 2)])
    assert harness.output_with_timestamps == [(4, 30), (3, 40)]
    assert harness.context.metrics["numRecordsInErrors"] == 3
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2, "the first and the second; the third is not logged"
    assert "element 0 failed and was left out, 1 so far" in said[0] and "return 12 // number" in said[0]
    assert "ZeroDivisionError" in said[0] and "guarded_operator" not in said[0]


def test_a_failed_element_says_all_that_is_known_of_it():
    harness = running(KEPT_APART)
    harness.batch([(("a", 1), 10), (("b", -1), 11), (("a", 2), 12)])
    [element] = harness.side_output(FAILED)
    assert (element.value, element.key, element.timestamp, element.timer) == (("b", -1), "b", 11, None)
    assert (element.operator, element.subtask, element.error) == ("harness", 0, "ValueError")
    assert element.message == "-1 is negative"
    assert 'raise ValueError(f"{value[1]} is negative")' in element.traceback
    assert harness.recorded.side["failed"][0][1] == 11


def test_nothing_that_a_failed_element_emitted_is_passed_on_but_its_state_stays():
    harness = running(OnError.skip())
    harness.batch([(("a", 5), 1), (("a", -1), 2), (("a", 2), 3)])
    assert harness.output == [("early", 5), ("a", 5), ("early", 6), ("a", 6)]
    assert harness.side_output(SIDE) == [5, 6]


def test_a_timer_that_fails_is_left_out_and_the_next_one_fires():
    harness = running(KEPT_APART).batch([(("a", 2), 1), (("b", 3), 2), (("c", 4), 3)])
    harness.watermark(10)
    assert [each for each in harness.output if each[0] == "timer"] == [("timer", 2), ("timer", 4)]
    [element] = harness.side_output(FAILED)
    assert (element.value, element.key, element.timestamp, element.timer) == (None, "b", None, 3)
    assert harness.watermarks == [10] and harness.timers == []


def test_the_failed_element_is_as_the_function_got_it():
    def spoil(row):
        row.clear()
        raise ValueError

    harness = OperatorHarness.of(lambda stream: stream.map(spoil).on_error(KEPT_APART)).element({"a": 1})
    assert failed(harness) == [({"a": 1}, "ValueError")]


def test_other_errors_fail_as_ever():
    harness = OperatorHarness.of(lambda stream: stream.map(inverse).on_error(KEPT_APART.only(ZeroDivisionError)))
    harness.element(0)
    with pytest.raises(TypeError, match="unsupported operand"):
        harness.element("x")


def test_errors_of_the_runtime_are_not_those_of_an_element():
    class UsesState(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

    harness = OperatorHarness.of(lambda stream: stream.process(UsesState()).on_error(OnError.skip()))
    with pytest.raises(StateAccessError, match="not keyed"):
        harness.element(1)


def test_too_many_failures_within_the_time_fail():
    policy = OnError.skip().at_most(2, per=Duration.of_seconds(1))
    harness = OperatorHarness.of(lambda stream: stream.map(inverse).on_error(policy))
    for now_ms in (0, 400, 1000, 1600, 2100):
        harness.processing_time(now_ms).element(0)
    with pytest.raises(ZeroDivisionError) as raised:
        harness.processing_time(2500).element(0)
    assert raised.value.__notes__ == ["More than 2 elements failed within 1000 ms, and on_error allows no more."]


def test_no_failure_may_be_allowed():
    policy = OnError.skip().at_most(0, per=Duration.of_seconds(1))
    with pytest.raises(ZeroDivisionError):
        OperatorHarness.of(lambda stream: stream.map(inverse).on_error(policy)).element(0)


def of_two_streams(build):
    def both(stream):
        other = stream._environment.from_collection([0])
        return build(stream.key_by(lambda v: v), other.key_by(lambda v: v)).on_error(KEPT_APART)

    return OperatorHarness.of(both)


class Both(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield inverse(value)

    def process_element2(self, value, ctx):
        yield -inverse(value)


class Sum(SinkFunction):
    seen: list[int] = []

    def invoke(self, value, context):
        self.seen.append(inverse(value))


KINDS = {
    "map": lambda stream: stream.map(inverse),
    "keyed map": lambda stream: stream.key_by(lambda v: v).map(inverse),
    "flat_map": lambda stream: stream.flat_map(lambda v: [inverse(v)]),
    "filter": lambda stream: stream.filter(lambda v: inverse(v) > 0),
}


@pytest.mark.parametrize("kind", KINDS)
@given(numbers=st.lists(st.integers(0, 12), max_size=20))
def test_the_others_are_as_if_the_failed_ones_had_not_come(kind, numbers):
    elements = [(number, at) for at, number in enumerate(numbers)]
    guarded = OperatorHarness.of(lambda stream: KINDS[kind](stream).on_error(KEPT_APART)).batch(elements)
    plain = OperatorHarness.of(KINDS[kind]).batch([(number, at) for number, at in elements if number])
    assert guarded.output_with_timestamps == plain.output_with_timestamps
    assert failed(guarded) == [(0, "ZeroDivisionError")] * numbers.count(0)


def test_both_inputs_are_guarded():
    harness = of_two_streams(lambda one, two: one.connect(two).process(Both()))
    harness.element(3).element(0).element(0, input=1).element(4, input=1)
    assert (harness.output, failed(harness)) == ([4, -3], [(0, "ZeroDivisionError")] * 2)


def test_state_and_timers_of_the_others_survive_a_restart():
    first = running(KEPT_APART).batch([(("a", 5), 1), (("a", -1), 2), (("b", 8), 3)])
    second = running(KEPT_APART, restored=first.snapshot())
    second.element(("a", 2), at=4).watermark(100)
    assert ("a", 6) in second.output and ("timer", 8) in second.output


# --- what can be said, and where -------------------------------------------------------------------------------------


def test_wrong_policies_are_refused():
    for wrong, said in {
        lambda: OnError.to_side_output("failed"): "needs an OutputTag",
        lambda: OnError.skip().only(): "classes of exceptions",
        lambda: OnError.skip().only(KeyboardInterrupt): "classes of exceptions",
        lambda: OnError.skip().at_most(-1, Duration.of_seconds(1)): "at least 0",
        lambda: OnError.skip().at_most(1, Duration.of_seconds(0)): "positive Duration",
    }.items():
        with pytest.raises((TypeError, ValueError), match=said):
            wrong()


def test_operators_that_cannot_leave_single_elements_out_say_so():
    env = StreamExecutionEnvironment.get_execution_environment()
    keyed = env.from_collection([1]).key_by(lambda v: v)
    with pytest.raises(InvalidProgramError, match=r"'TumblingProcessing.*': on_error\(\) is for functions"):
        keyed.window(TumblingProcessingTimeWindows.of(Time.seconds(1))).reduce(max).on_error(OnError.skip())
    with pytest.raises(InvalidProgramError, match=r"on_error\(\) applies to an operator"):
        keyed.on_error(OnError.skip())
    with pytest.raises(InvalidProgramError, match="is a sink and has no side output"):
        keyed.add_sink(Sum()).on_error(KEPT_APART)
    with pytest.raises(TypeError, match="needs an OnError"):
        keyed.map(str).on_error("skip")


def test_a_job_without_a_side_output_has_no_failed_elements():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_on_error(OnError.skip())
    with pytest.raises(InvalidProgramError, match="needs set_on_error"):
        env.get_failed_elements()


def test_a_broadcast_function_is_guarded():
    rules = MapStateDescriptor("rules", Types.STRING(), Types.INT())

    class Rule(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield value // ctx.get_broadcast_state(rules).get("by")

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(rules).put("by", int(value))

    def build(stream):
        broadcast = stream._environment.from_collection(["1"]).broadcast(rules)
        return stream.connect(broadcast).process(Rule()).on_error(KEPT_APART)

    harness = OperatorHarness.of(build)
    harness.element("two", input=1).element(4).element("2", input=1).element(4)
    assert harness.output == [2]
    assert failed(harness) == [("two", "ValueError"), (4, "TypeError")]


class Looks(AsyncFunction):
    """Answers the larger numbers first."""

    async def async_invoke(self, value):
        await asyncio.sleep((4 - value) / 1000)
        return [12 // value]


@pytest.mark.parametrize("wait", [AsyncDataStream.ordered_wait, AsyncDataStream.unordered_wait])
def test_async_calls_that_fail_are_left_out(wait):
    def build(stream):
        return wait(stream, Looks(), Time.seconds(10), 3).on_error(KEPT_APART)

    harness = OperatorHarness.of(build)
    harness.batch([(3, 30), (0, 0), (4, 40), (0, 1), (1, 10), (2, 20)]).watermark(50)
    found = harness.output_with_timestamps
    assert sorted(found, key=lambda each: each[1]) == [(12, 10), (6, 20), (4, 30), (3, 40)]
    assert wait is AsyncDataStream.unordered_wait or [at for _, at in found] == [30, 40, 10, 20]
    assert failed(harness) == [(0, "ZeroDivisionError")] * 2
    assert [at for _, at in harness.recorded.side["failed"]] in ([0, 1], [1, 0])
    assert "return [12 // value]" in harness.side_output(FAILED)[0].traceback
    harness.close()


class Checked(KeyedProcessFunction):
    """The sum of a key and a timer for it; negative numbers fail before anything has changed."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        if value[1] < 0:
            raise ValueError
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        ctx.timer_service().register_event_time_timer(total * 10)
        yield value[0], total

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), -timestamp


@pytest.mark.parametrize("backend", [HeapBackend, DiskBackend])
@given(
    elements=st.lists(st.tuples(st.sampled_from("abc"), st.integers(-2, 5)), max_size=30),
    cut=st.integers(0, 30),
    watermark=st.integers(0, 100),
)
@settings(max_examples=30)
def test_state_and_timers_are_as_if_the_failed_elements_had_not_come(backend, elements, cut, watermark):
    def run(elements, on_error, cut):
        def harness(restored=None):
            return OperatorHarness.of(
                lambda stream: stream.key_by(lambda pair: pair[0]).process(Checked()).on_error(on_error),
                restored,
                state_backend=backend(),
            )

        first = harness().batch([(each, at) for at, each in elements if at < cut])
        first.watermark(watermark)
        second = harness(first.snapshot()).batch([(each, at) for at, each in elements if at >= cut])
        second.end_input()
        made = first.output_with_timestamps + second.output_with_timestamps
        first.close()
        second.close()
        return made

    numbered = list(enumerate(elements))
    fitting = [(at, each) for at, each in numbered if each[1] >= 0]
    assert run(numbered, OnError.skip(), cut) == run(fitting, OnError.fail(), cut)


@pytest.mark.parametrize("backend", [HeapBackend, DiskBackend])
@given(elements=st.lists(st.tuples(st.sampled_from("ab"), st.integers(-2, 5)), max_size=20), cut=st.integers(0, 20))
@settings(max_examples=30)
def test_a_reduce_is_as_if_the_failed_elements_had_not_come(backend, elements, cut):
    def added(total, each):
        if each[1] < 0:
            raise ValueError(each)
        return total[0], total[1] + each[1]

    def run(elements, on_error):
        def harness(restored=None):
            return OperatorHarness.of(
                lambda stream: stream.key_by(lambda pair: pair[0]).reduce(added).on_error(on_error),
                restored,
                state_backend=backend(),
            )

        first = harness().batch([(each, at) for at, each in elements if at < cut])
        second = harness(first.snapshot()).batch([(each, at) for at, each in elements if at >= cut])
        made = first.output_with_timestamps + second.output_with_timestamps
        first.close()
        second.close()
        return made

    # The first element of a key is not reduced, so it cannot fail.
    is_first = {at: all(each[0] != before[0] for before in elements[:at]) for at, each in enumerate(elements)}
    numbered = list(enumerate(elements))
    fitting = [(at, each) for at, each in numbered if each[1] >= 0 or is_first[at]]
    assert run(numbered, OnError.skip()) == run(fitting, OnError.fail())


def test_a_sum_leaves_out_what_cannot_be_added():
    harness = OperatorHarness.of(lambda stream: stream.key_by(lambda pair: pair[0]).sum(1).on_error(KEPT_APART))
    harness.feed([(("a", 1), None), (("a", "x"), None), (("a", 2), None)])
    assert harness.output == [("a", 1), ("a", 3)]
    assert [each.value for each in harness.side_output(FAILED)] == [("a", "x")]
