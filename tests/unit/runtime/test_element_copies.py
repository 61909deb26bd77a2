"""Copies of elements: as `copy.deepcopy` makes them, but none of what cannot be changed."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import threading
from array import array
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Configuration, Instant, Row, RowKind, Types
from penstock.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
from penstock.runtime.element_copies import all_copied, are_immutable, copied, is_immutable_type
from penstock.table.logical_types import row_type_of
from penstock.table.type_infos import internal_type_info


class Color(enum.Enum):
    RED = 1


class Point(NamedTuple):
    x: object
    y: object


Pair = namedtuple("Pair", "one other")


@dataclass
class Event:
    name: str
    tags: list = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    tags: list


@dataclass
class Slotted:
    __slots__ = ("tags",)
    tags: list


class Listening(dict):
    """A subclass with an attribute of its own."""


class OwnWay:
    """Says itself how it is copied."""

    def __init__(self, tags):
        self.tags = tags

    def __deepcopy__(self, memo):
        return OwnWay([*self.tags, "copied"])


IMMUTABLE = [
    *(1, 2.5, True, None, "text", b"bytes", 1j, ..., range(3), Color.RED, int, len, decimal.Decimal("1.5")),
    *(datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), datetime.timedelta(1), Instant(1, 2)),
    *((), (1, "a"), (1, (2, (3,))), Point(1, "a"), Pair(1, (2, 3)), frozenset({1, 2})),
    *(np.int64(3), np.float64(1.5), np.bool_(1)),
]
MUTABLE = [
    *([], [1], [[1], {}], {"a": [1]}, {1, 2}, bytearray(b"a"), array("q", [1]), deque([[1]], maxlen=3)),
    *(([],), (1, (2, [3])), Point(1, []), Pair([], 1), Event("a", [1]), Frozen([1]), Slotted([1])),
    *(Row(1, [2]), Row(a=1, b=[2]), Row.of_kind(RowKind.DELETE, 1), np.array([1, 2]), np.array([[], {}], dtype=object)),
    *(defaultdict(list, a=[1]), OrderedDict(a=[1]), Counter("aab"), [Row(1), Event("b")]),
]


@pytest.mark.parametrize("value", IMMUTABLE, ids=repr)
def test_what_cannot_be_changed_is_not_copied(value):
    assert copied(value) is value


@pytest.mark.parametrize("value", MUTABLE, ids=repr)
def test_what_can_be_changed_is_copied_to_something_equal(value):
    made = copied(value)
    assert made is not value
    assert type(made) is type(value)
    assert repr(made) == repr(value)
    assert not mutable_parts(made) & mutable_parts(value)


def mutable_parts(value):
    """The ids of lists and the like in a value, at any depth."""
    inner = []
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, deque, Row)):
        inner = list(value)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        inner = list(vars(value).values())
    elif isinstance(value, Slotted):
        inner = [value.tags]
    own = set() if isinstance(value, (tuple, str, bytes, int, float, type(None))) else {id(value)}
    return own.union(*map(mutable_parts, inner))


values = st.recursive(
    st.integers() | st.text(max_size=3) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Row, inner, inner)
        | st.builds(Point, inner, inner)
        | st.builds(Event, st.text(max_size=2), st.lists(inner, max_size=2))
    ),
    max_leaves=12,
)


@given(values)
def test_copies_are_those_of_deepcopy(value):
    before = repr(value)
    made = copied(value)
    assert repr(made) == before == repr(copy.deepcopy(value))
    assert not mutable_parts(made) & mutable_parts(value)


@given(st.lists(values, max_size=4))
def test_batches_are_copied_unless_nothing_in_them_can_be_changed(batch):
    made = all_copied(batch)
    assert repr(made) == repr(batch)
    assert not mutable_parts(made) - {id(made)} & mutable_parts(batch) - {id(batch)}
    if are_immutable(batch):
        assert made is batch
        assert all(copied(value) is value for value in batch)


class Annotated(Point):
    """A named tuple with a dictionary of its own."""


class Described(Pair):
    """A named tuple that says itself how it is rebuilt."""

    __slots__ = ()

    def __reduce__(self):
        return Described, (self.one, "rebuilt")


def test_named_tuples_keep_their_further_attributes():
    value = Annotated([1], 2)
    value.note = ["seen"]
    made = copied(value)
    assert (type(made), made, made.note) == (Annotated, ([1], 2), ["seen"])
    assert made[0] is not value[0]
    assert made.note is not value.note


def test_named_tuples_may_have_their_own_way_of_copying():
    value = Described([1], 2)
    assert copied(value) == copy.deepcopy(value) == ([1], "rebuilt")


def test_what_occurs_twice_in_an_element_is_copied_once():
    inner = [1]
    made = copied({"one": inner, "other": (inner, Event("a", inner))})
    assert made["one"] is made["other"][0] is made["other"][1].tags is not inner


def test_elements_that_contain_themselves_are_copied():
    event, listed, named = Event("a"), [], {}
    event.tags.append(event)
    listed.append((listed,))
    named["self"] = [named]
    assert copied(event).tags[0].tags[0].name == "a"
    made = copied(listed)
    assert made[0][0] is made is not listed
    assert copied(named)["self"][0]["self"][0] is not named


def test_classes_may_have_their_own_way_of_copying():
    assert copied([OwnWay([])])[0].tags == ["copied"]
    listening = Listening(a=[1])
    listening.tags = [2]
    made = copied(listening)
    assert (made, made.tags) == ({"a": [1]}, [2])
    assert made["a"] is not listening["a"] and made.tags is not listening.tags


def test_data_frames_are_copied():
    frame = pd.DataFrame({"a": [1, 2]})
    made = copied(frame)
    frame.loc[0, "a"] = 9
    assert list(made["a"]) == [1, 2]


def test_what_cannot_be_copied_goes_as_it_is():
    lock, numbers = threading.Lock(), (number for number in range(3))
    assert copied(lock) is lock
    assert copied([numbers])[0] is numbers


@pytest.mark.parametrize(
    ("declared", "is_immutable"),
    [
        (Types.LONG(), True),
        (Types.STRING(), True),
        (Types.SQL_TIMESTAMP(), True),
        (Types.TUPLE([Types.STRING(), Types.TUPLE([Types.BIG_DEC()])]), True),
        (Types.TUPLE([Types.STRING(), Types.LIST(Types.LONG())]), False),
        (Types.ROW([Types.LONG()]), False),
        (Types.MAP(Types.STRING(), Types.LONG()), False),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), False),
        (Types.PICKLED_BYTE_ARRAY(), False),
        (None, False),
    ],
)
def test_declared_types_say_whether_their_values_can_be_changed(declared, is_immutable):
    assert is_immutable_type(declared) is is_immutable


def test_side_outputs_of_an_operator_with_immutable_results_are_still_copied():
    """The declared type is that of the main output only."""
    tag = OutputTag("lists")

    class Both(ProcessFunction):
        def process_element(self, value, ctx):
            yield tag, [value]
            yield value

    def changed(values: list[int]) -> list[int]:
        values.append(0)
        return values

    config = Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    both = env.from_collection([1, 2]).process(Both(), Types.INT())
    lists = both.get_side_output(tag)
    with lists.map(changed).union(lists.map(changed)).execute_and_collect() as results:
        assert sorted(results) == [[1, 0], [1, 0], [2, 0], [2, 0]]


def test_values_of_internal_rows_are_shared_unless_a_column_can_change():
    assert is_immutable_type(internal_type_info(row_type_of("ROW<`a` INT, `r` ROW<`x` STRING, `y` DECIMAL(5, 2)>>")))
    assert not is_immutable_type(internal_type_info(row_type_of("ROW<`a` INT, `r` ROW<`x` ARRAY<INT>>>")))
