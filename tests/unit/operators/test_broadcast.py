"""Broadcast state: changed by the broadcast side, read by the other."""

from __future__ import annotations

import pytest

from penstock.common.exceptions import InvalidProgramError, StateAccessError
from penstock.common.typeinfo import Types
from penstock.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import MapStateDescriptor, ValueStateDescriptor
from penstock.datastream.time_domain import TimeDomain
from penstock.testing import OperatorHarness

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
NAMES = MapStateDescriptor("names", Types.STRING(), Types.STRING())
SEEN = OutputTag("seen", Types.STRING())


def first(element):
    return element[0]


def harness(function, restored=None, keyed=False, **where):
    def build(stream):
        main = stream.key_by(first) if keyed else stream
        return main.connect(stream.broadcast(RULES, NAMES)).process(function)

    return OperatorHarness.of(build, restored, **where)


class Multiply(BroadcastProcessFunction):
    """("a", 2) * the rule for "a"; a rule of None is removed."""

    def process_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        yield value[1] * rules.get(value[0]) if value[0] in rules else None

    def process_broadcast_element(self, value, ctx):
        rules = ctx.get_broadcast_state(RULES)
        if value[1] is None:
            rules.remove(value[0])
        else:
            rules.put(*value)
        yield SEEN, f"{value[0]} at {ctx.timestamp()}"


class Limit(KeyedBroadcastProcessFunction):
    """Sums by key; after 10 the sum is emitted along with all rules, and forgotten."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.INT()))

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES)[value[0]] = value[1]

    def on_timer(self, timestamp, ctx):
        assert ctx.time_domain() is TimeDomain.EVENT_TIME
        yield ctx.get_current_key(), self.sum.value(), dict(ctx.get_broadcast_state(RULES).items())
        self.sum.clear()


def test_elements_see_the_rules_of_the_moment():
    h = harness(Multiply())
    h.element(("a", 2), at=1).element(("a", 10), at=2, input=1).element(("a", 3), at=3)
    h.element(("a", None), at=4, input=1).element(("a", 4), at=5)
    assert h.output_with_timestamps == [(None, 1), (30, 3), (None, 5)]
    assert h.recorded.side == {"seen": [("a at 2", 2), ("a at 4", 4)]}


def test_context_gives_the_time():
    class Times(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp(), ctx.current_watermark(), ctx.current_processing_time()

        process_broadcast_element = process_element

    h = harness(Times(), processing_time=70).watermark(5)
    assert h.element(1, at=6).element(2, at=7, input=1).output == [(6, 5, 70), (7, 5, 70)]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.put("a", 1),
        lambda state: state.put_all({"a": 1}),
        lambda state: state.remove("a"),
        lambda state: state.__setitem__("a", 1),
        lambda state: state.__delitem__("a"),
        lambda state: state.clear(),
    ],
)
def test_the_other_side_cannot_change_broadcast_state(change):
    class Writes(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            change(ctx.get_broadcast_state(RULES))

        def process_broadcast_element(self, value, ctx):
            return None

    with pytest.raises(
        StateAccessError, match=r"'harness': broadcast state 'rules' can only be read.*process_broadcast_element"
    ):
        harness(Writes()).element(("a", 1))


def test_unknown_broadcast_state_is_refused():
    class Unknown(BroadcastProcessFunction):
        def process_element(self, value, ctx):
            ctx.get_broadcast_state(MapStateDescriptor("rulez", Types.STRING(), Types.INT()))

        def process_broadcast_element(self, value, ctx):
            return None

    with pytest.raises(
        StateAccessError, match=r"no broadcast state 'rulez', only 'rules', 'names'; give its descriptor to broadcast"
    ):
        harness(Unknown()).element(("a", 1))


def test_keyed_side_has_state_timers_and_rules():
    h = harness(Limit(), keyed=True)
    h.element(("x", 1), at=0, input=1).element(("a", 2), at=1).element(("b", 3), at=2).element(("a", 4), at=1)
    h.watermark(11)
    assert h.output_with_timestamps == [(("a", 6, {"x": 1}), 11)]
    assert [timer[1:3] for timer in h.timers] == [(12, "b")]


def test_broadcast_side_has_no_current_key():
    class Keyless(Limit):
        def process_broadcast_element(self, value, ctx):
            yield self.sum.value()

    h = harness(Keyless(), keyed=True).element(("a", 2), at=1)
    with pytest.raises(StateAccessError, match="keyed state was used where there is no current key"):
        h.element(("x", 1), input=1)


def test_broadcast_and_keyed_state_continue_after_a_restore():
    before = harness(Limit(), keyed=True).element(("x", 1), input=1).element(("a", 2), at=1)
    after = harness(Limit(), before.snapshot(), keyed=True).element(("y", 2), input=1).element(("a", 5), at=1)
    after.watermark(11)
    assert after.output == [("a", 7, {"x": 1, "y": 2})]


def test_kind_of_function_must_fit_the_stream():
    with pytest.raises(InvalidProgramError, match="is keyed and needs a KeyedBroadcastProcessFunction, got Multiply"):
        harness(Multiply(), keyed=True)
    with pytest.raises(InvalidProgramError, match="is not keyed and needs a BroadcastProcessFunction, got Limit"):
        harness(Limit())


def test_job_where_every_subtask_gets_all_rules(env):
    class Rules(BroadcastProcessFunction):
        def open(self, runtime_context):
            self.subtask = runtime_context.get_index_of_this_subtask()

        def process_element(self, value, ctx):
            return None

        def process_broadcast_element(self, value, ctx):
            rules = ctx.get_broadcast_state(RULES)
            rules.put(*value)
            yield self.subtask, len(list(rules.keys()))

    rules = env.from_collection([("a", 1), ("b", 2)]).broadcast(RULES)
    counts = env.from_collection([1, 2, 3]).connect(rules).process(Rules()).set_parallelism(2)
    assert sorted(counts.execute_and_collect()) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_job_with_a_keyed_stream(env):
    class Timed(Limit):
        def process_element(self, value, ctx):
            self.sum.update((self.sum.value() or 0) + value[1])
            ctx.timer_service().register_event_time_timer(10)

    rules = env.from_collection([("x", 1)]).broadcast(RULES)
    elements = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
    sums = elements.key_by(first).connect(rules).process(Timed()).set_parallelism(2)
    assert sorted(sums.execute_and_collect(), key=str) == [("a", 4, {"x": 1}), ("b", 2, {"x": 1})]
