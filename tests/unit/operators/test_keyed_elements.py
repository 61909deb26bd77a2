"""map, flat_map and filter with function objects on a keyed stream, which may use keyed state."""

from __future__ import annotations

import pytest

from penstock.common.exceptions import InvalidProgramError, StateAccessError, UserFunctionError
from penstock.common.typeinfo import Types
from penstock.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, RichMapFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.graph.descriptions import MapDescription
from penstock.runtime.chain_compiler import is_fusable
from penstock.testing import OperatorHarness


def first(element):
    return element[0]


class Counting:
    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def count(self):
        count = (self.state.value() or 0) + 1
        self.state.update(count)
        return count


class CountMap(Counting, MapFunction):
    def map(self, value):
        return value[0], self.count()


class EverySecond(Counting, FilterFunction):
    def filter(self, value):
        return self.count() % 2 == 0


class Repeat(Counting, FlatMapFunction):
    def flat_map(self, value):
        for _ in range(self.count()):
            yield value


ELEMENTS = [(("a", 1), 1), (("b", 2), 2), (("a", 3), 3), (("a", 4), 4)]


def test_map_has_state_by_key():
    h = OperatorHarness.of(lambda stream: stream.key_by(first).map(CountMap())).batch(ELEMENTS)
    assert h.output_with_timestamps == [(("a", 1), 1), (("b", 1), 2), (("a", 2), 3), (("a", 3), 4)]


def test_filter_has_state_by_key():
    h = OperatorHarness.of(lambda stream: stream.key_by(first).filter(EverySecond())).batch(ELEMENTS)
    assert h.output_with_timestamps == [(("a", 3), 3)]


def test_flat_map_has_state_by_key():
    h = OperatorHarness.of(lambda stream: stream.key_by(first).flat_map(Repeat())).batch(ELEMENTS[:3])
    assert h.output_with_timestamps == [(("a", 1), 1), (("b", 2), 2), (("a", 3), 3), (("a", 3), 3)]
    assert OperatorHarness.of(lambda stream: stream.key_by(first).flat_map(Repeat())).element("ab").output == ["ab"]


def test_state_continues_after_a_restore():
    def build(stream):
        return stream.key_by(first).map(CountMap())

    before = OperatorHarness.of(build).batch(ELEMENTS)
    assert OperatorHarness.of(build, before.snapshot()).element("a").element("c").output == [("a", 4), ("c", 1)]


def test_only_functions_without_keyed_state_are_fused():
    assert is_fusable(MapDescription(CountMap()))
    assert not is_fusable(MapDescription(CountMap(), first))


def test_state_without_keys_is_refused():
    with pytest.raises(StateAccessError, match=r"operator 'harness': keyed state 'count' .* call key_by"):
        OperatorHarness.of(lambda stream: stream.map(CountMap()))


def test_function_that_cannot_be_copied_is_refused():
    class Holds(MapFunction):
        def __init__(self):
            self.numbers = (n for n in range(3))

        def map(self, value):
            return value

    with pytest.raises(InvalidProgramError, match=r"Holds cannot be copied for each subtask .* in open\(\), not in"):
        OperatorHarness.of(lambda stream: stream.map(Holds()))


def test_function_may_hold_a_module():
    import math

    class Root(MapFunction):
        def __init__(self):
            self.library = math

        def map(self, value):
            return self.library.isqrt(value)

    assert OperatorHarness.of(lambda stream: stream.map(Root())).element(9).output == [3]


def test_every_subtask_has_its_own_function(env):
    class Numbered(RichMapFunction):
        def __init__(self):
            self.seen = []

        def map(self, value):
            self.seen.append(value)
            return self.get_runtime_context().get_index_of_this_subtask(), len(self.seen)

    stream = env.from_collection([1, 2, 3, 4]).rebalance().map(Numbered()).set_parallelism(2)
    assert sorted(stream.execute_and_collect()) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_job_with_state_in_several_subtasks(env):
    words = ["a", "b", "c", "a", "b", "a"]
    counts = env.from_collection(words).key_by(first).map(CountMap()).set_parallelism(3).filter(lambda c: c[1] > 1)
    assert sorted(counts.execute_and_collect()) == [("a", 2), ("a", 3), ("b", 2)]


def test_failure_names_operator_and_record(env):
    class Fails(FilterFunction):
        def filter(self, value):
            return 1 // value[1] > 0

    env.from_collection([("a", 1), ("b", 0)]).key_by(first).filter(Fails()).name("fails").print()
    with pytest.raises(UserFunctionError, match=r"operator 'fails', subtask 1/1, at record \('b', 0\)"):
        env.execute()
