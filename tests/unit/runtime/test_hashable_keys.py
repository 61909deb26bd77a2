"""Lists, dicts and the like as keys: they keep their value and their look, and have one hash in every process."""

from __future__ import annotations

import pickle
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import InvalidProgramError
from penstock.common.types import Row
from penstock.datastream import KeyedProcessFunction
from penstock.runtime.hashable_keys import hashable_keys
from penstock.runtime.key_groups import key_group_of
from penstock.testing import OperatorHarness

plain = st.none() | st.integers() | st.text() | st.booleans()
keys = st.recursive(
    plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner), max_leaves=8
)


@given(keys)
def test_a_key_stays_equal_looks_the_same_and_can_be_looked_up(key):
    (made,) = hashable_keys([key])
    assert made == key and repr(made) == repr(key) and isinstance(made, type(key))
    assert {made: 1}[hashable_keys([pickle.loads(pickle.dumps(key))])[0]] == 1


@given(keys)
def test_equal_keys_have_the_same_key_group_after_a_journey(key):
    (made,) = hashable_keys([key])
    assert key_group_of(pickle.loads(pickle.dumps(made)), 128) == key_group_of(made, 128)


def test_the_order_of_a_dict_does_not_matter():
    one, other = hashable_keys([{"a": [1], "b": 2}, {"b": 2, "a": [1]}])
    assert hash(one) == hash(other) and key_group_of(one, 128) == key_group_of(other, 128)


def test_keys_that_can_be_hashed_are_the_very_same_list():
    given_keys = ["a", 1, (2, 3)]
    assert hashable_keys(given_keys) is given_keys


@pytest.mark.parametrize("key", [array("d", [0.5]), bytearray(b"x"), {1, 2}, Row("a", [1]), ("a", [1])], ids=repr)
def test_other_kinds(key):
    (made,) = hashable_keys([key])
    assert made == key and hash(made) == hash(hashable_keys([key])[0])
    assert key_group_of(made, 128) == key_group_of(pickle.loads(pickle.dumps(made)), 128)


class Comparable:
    def __eq__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "thing"


def test_an_object_without_a_hash_is_refused():
    with pytest.raises(InvalidProgramError, match="the key thing is of type Comparable, which is not hashable"):
        hashable_keys([Comparable()])


class Totals(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        from penstock.datastream.state import ValueStateDescriptor

        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0) + value[1])
        yield ctx.get_current_key(), self.total.value()


def test_state_of_list_keys_survives_a_restore():
    def job(stream: Any) -> Any:
        return stream.key_by(lambda pair: [pair[0]]).process(Totals())

    before = OperatorHarness.of(job)
    before.element(("a", 1)).element(("b", 5))
    after = OperatorHarness.of(job, restored=before.snapshot())
    after.element(("a", 2))
    assert before.output == [(["a"], 1), (["b"], 5)] and after.output == [(["a"], 3)]
