"""process on streams without keys."""

from __future__ import annotations

import pytest

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.exceptions import StateAccessError, UserFunctionError
from penstock.common.typeinfo import Types
from penstock.datastream.functions import KeyedProcessFunction, ProcessFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import ValueStateDescriptor
from penstock.testing import OperatorHarness

ODD = OutputTag("odd", Types.INT())
LARGE = OutputTag("large", Types.INT())


def harness(function, **where):
    return OperatorHarness.of(lambda stream: stream.process(function), **where)


class Sorted(ProcessFunction):
    """Every number to the main output; odd and large ones to side outputs too."""

    def process_element(self, value, ctx):
        yield value
        if value % 2:
            yield ODD, value
        if value > 10:
            ctx.output(LARGE, value)


def test_results_take_the_timestamp_of_their_element():
    class Twice(ProcessFunction):
        def process_element(self, value, ctx):
            return [value, value]

    h = harness(Twice()).batch([("a", 1), ("b", None)])
    assert h.output_with_timestamps == [("a", 1), ("a", 1), ("b", None), ("b", None)]


def test_none_means_no_result():
    class Nothing(ProcessFunction):
        def process_element(self, value, ctx):
            return None

    assert harness(Nothing()).element(1).output == []


def test_several_side_outputs_at_once():
    h = harness(Sorted()).feed([(2, 5), (11, 6), (12, 7), (3, 8)])
    assert h.output == [2, 11, 12, 3]
    assert h.recorded.side == {"odd": [(11, 6), (3, 8)], "large": [(11, 6), (12, 7)]}


def test_tuples_that_do_not_begin_with_a_tag_are_values():
    class Pairs(ProcessFunction):
        def process_element(self, value, ctx):
            yield "odd", value
            yield (ODD,)
            yield ODD, value, value

    h = harness(Pairs()).element(1)
    assert h.output == [("odd", 1), (ODD,), (ODD, 1, 1)]
    assert h.side_output(ODD) == []


def test_context_gives_timestamp_watermark_and_clock():
    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            timers = ctx.timer_service()
            yield ctx.timestamp(), timers.current_watermark(), timers.current_processing_time()

    h = harness(Times(), processing_time=70)
    h.element("a").element("a", at=3).watermark(9).element("a", at=4)
    assert h.output == [(None, MIN_LONG_VALUE, 70), (3, MIN_LONG_VALUE, 70), (4, 9, 70)]


@pytest.mark.parametrize(
    "method",
    [
        "register_event_time_timer",
        "register_processing_time_timer",
        "delete_event_time_timer",
        "delete_processing_time_timer",
    ],
)
def test_timers_need_a_key(method):
    class Timed(ProcessFunction):
        def process_element(self, value, ctx):
            getattr(ctx.timer_service(), method)(17)

    with pytest.raises(
        StateAccessError, match=r"operator 'harness': a timer at 17 .* not keyed.*call key_by\(\.\.\.\) before"
    ):
        harness(Timed()).element(1)


def test_keyed_state_needs_a_key():
    class Stateful(ProcessFunction):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

        def process_element(self, value, ctx):
            yield value

    with pytest.raises(StateAccessError, match=r"keyed state 'count' .* not keyed; call key_by"):
        harness(Stateful())


def test_results_must_be_iterable():
    class Returns(ProcessFunction):
        def process_element(self, value, ctx):
            return value

    with pytest.raises(TypeError, match=r"gave 5 of type int, but its results must be iterable; write `yield`"):
        harness(Returns()).element(5)


def test_side_outputs_need_a_tag():
    class Named(ProcessFunction):
        def process_element(self, value, ctx):
            ctx.output("odd", value)

    with pytest.raises(TypeError, match=r"ctx\.output needs an OutputTag, got 'odd'; write OutputTag"):
        harness(Named()).element(5)


def test_keyed_function_without_keys_is_refused_when_the_job_is_built():
    class Keyed(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value

    with pytest.raises(TypeError, match=r"a KeyedProcessFunction needs key_by\(\.\.\.\) before it"):
        harness(Keyed())


def test_job_with_side_outputs(env):
    main = env.from_collection([1, 12, 13]).process(Sorted())
    both = (
        main.get_side_output(ODD)
        .map(lambda n: ("odd", n))
        .union(main.get_side_output(LARGE).map(lambda n: ("large", n)), main.map(lambda n: ("main", n)))
    )
    assert sorted(both.execute_and_collect()) == [
        ("large", 12), ("large", 13), ("main", 1), ("main", 12), ("main", 13), ("odd", 1), ("odd", 13),
    ]  # fmt: skip


def test_failure_names_operator_and_record(env):
    class Inverse(ProcessFunction):
        def process_element(self, value, ctx):
            yield 1 // value

    env.from_collection([2, 0, 1]).process(Inverse()).name("inverse").print()
    with pytest.raises(UserFunctionError, match="operator 'inverse', subtask 1/1, at record 0: ZeroDivisionError"):
        env.execute()
