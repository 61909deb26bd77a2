from __future__ import annotations

import datetime
import decimal
import enum
import json
import os
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row
from penstock.common.exceptions import InvalidProgramError
from penstock.runtime.key_groups import (
    KeyOwners,
    key_group_of,
    key_group_range,
    subtask_of_key_group,
)
from penstock.runtime.key_hashing import murmur_mix, stable_hash

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class User:
    name: str
    age: int
    note: str = field(default="", compare=False)


class Pair:
    """A key that is no dataclass."""

    def __init__(self, first: str, second: str) -> None:
        self.parts = [first, second]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(tuple(self.parts))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8), st.binary(max_size=8)
)
keys = st.recursive(scalars, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=6)
max_parallelisms = st.integers(1, 32768)


@st.composite
def parallelisms(draw) -> tuple[int, int]:
    max_parallelism = draw(st.integers(1, 300))
    return draw(st.integers(1, max_parallelism)), max_parallelism


# --- the hash --------------------------------------------------------------------------------------------------------


@given(keys)
def test_hash_has_32_bits(key):
    assert 0 <= stable_hash(key) < 2**32
    assert 0 <= murmur_mix(stable_hash(key)) < 2**31


@given(keys, keys)
def test_equal_keys_hash_alike(one, other):
    if one == other:
        assert stable_hash(one) == stable_hash(other)


@given(st.integers(-(2**53), 2**53))
def test_equal_numbers_of_different_types_are_one_key(number):
    assert stable_hash(number) == stable_hash(float(number)) == stable_hash(complex(number))


def test_truth_and_one_are_one_key():
    assert stable_hash(1) == stable_hash(1.0) == stable_hash(True)
    assert stable_hash(0) == stable_hash(0.0) == stable_hash(-0.0) == stable_hash(False)
    assert stable_hash((1, "a")) == stable_hash((True, "a"))


def test_named_tuple_hashes_like_the_tuple_it_equals():
    assert Point(1, 2) == (1, 2)
    assert stable_hash(Point(1, 2)) == stable_hash((1, 2))


@given(st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=2))
def test_decimal_hashes_like_the_number_it_equals(number):
    as_decimal = decimal.Decimal(number)
    if as_decimal == int(as_decimal):
        assert stable_hash(as_decimal) == stable_hash(int(as_decimal))


def test_enum_member_hashes_like_the_value_it_equals():
    class Level(enum.IntEnum):
        HIGH = 7

    class Word(str, enum.Enum):
        HELLO = "hello"

    assert stable_hash(Level.HIGH) == stable_hash(7)
    assert stable_hash(Word.HELLO) == stable_hash("hello")


def test_same_moment_in_two_time_zones_is_one_key():
    utc = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.timezone.utc)
    elsewhere = utc.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    assert utc == elsewhere
    assert stable_hash(utc) == stable_hash(elsewhere)


def test_rows_that_are_equal_are_one_key():
    assert Row(name="a", age=1) == Row(age=1.0, name="a")
    assert stable_hash(Row(name="a", age=1)) == stable_hash(Row(age=1.0, name="a"))
    assert stable_hash(Row("a", 1)) == stable_hash(Row("a", True))


def test_dataclass_hashes_by_the_fields_it_is_compared_by():
    assert User("ada", 36, note="x") == User("ada", 36, note="y")
    assert stable_hash(User("ada", 36, note="x")) == stable_hash(User("ada", 36, note="y"))


def test_object_hashes_alike_whether_or_not_equal_parts_are_one_object():
    text = "".join(["a", "b"])
    assert text is not "".join(["a", "b"])
    assert stable_hash(Pair(text, text)) == stable_hash(Pair(text, "".join(["a", "b"])))


def test_not_a_number_always_has_the_same_hash():
    assert stable_hash(float("nan")) == stable_hash(float("nan"))


@given(st.frozensets(scalars))
def test_set_hashes_alike_in_any_order(values):
    assert stable_hash(frozenset(sorted(values, key=repr))) == stable_hash(values)


GOLDEN = {
    "'a'": (3904355907, 27),
    "''": (0, 94),
    "'größer'": (4164294576, 101),
    "b'a'": (3904355907, 27),
    "0": (0, 94),
    "1": (1, 86),
    "-1": (1, 86),
    "10**20": (1758944774, 54),
    "1.5": (268435457, 5),
    "None": (0, 94),
    "('a', 1)": (775949791, 107),
    "()": (1, 86),
    "frozenset({'a', 'b'})": (929561196, 98),
}


@pytest.mark.parametrize(("key", "expected"), GOLDEN.items())
def test_hash_never_changes(key, expected):
    """Recorded: state files are laid out by it, so another value would lose the state of older checkpoints."""
    assert (stable_hash(eval(key)), key_group_of(eval(key), 128)) == expected


def test_hash_of_values_that_objects_are_made_of():
    assert stable_hash(User("ada", 36)) == stable_hash(("ada", 36))
    assert stable_hash(Colour.RED) == stable_hash("RED")


def test_hash_is_the_same_in_a_process_with_another_hash_seed():
    code = (
        "import json; from penstock.runtime.key_hashing import stable_hash\n"
        f"print(json.dumps([stable_hash(key) for key in ({', '.join(GOLDEN)})]))"
    )
    for seed in ("0", "4242"):
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(answer.stdout) == [hashed for hashed, _ in GOLDEN.values()]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (0, 593689054),
        (1, 68075478),
        (2, 1085422463),
        (97, 1455541201),
        (2**31, 1718298732),
        (2**32 - 1, 1982413648),
        (123456789, 1088346449),
    ],
)
def test_mix_is_flinks(code, expected):
    """What MathUtils.murmurHash of Flink 2.3 gives for the same 32 bits."""
    assert murmur_mix(code) == expected


def test_neighbouring_keys_spread_over_all_groups():
    assert len({key_group_of(number, 128) for number in range(2000)}) == 128


# --- key groups ------------------------------------------------------------------------------------------------------


@given(keys, max_parallelisms)
def test_key_group_lies_within_the_max_parallelism(key, max_parallelism):
    assert 0 <= key_group_of(key, max_parallelism) < max_parallelism


@given(parallelisms())
def test_every_group_is_owned_by_exactly_one_subtask(sizes):
    parallelism, max_parallelism = sizes
    ranges = [key_group_range(subtask, max_parallelism, parallelism) for subtask in range(parallelism)]
    owned = [group for each in ranges for group in each]
    assert owned == list(range(max_parallelism))


@given(parallelisms())
def test_ranges_are_the_inverse_of_the_owner(sizes):
    parallelism, max_parallelism = sizes
    for subtask in range(parallelism):
        owners = {
            subtask_of_key_group(group, max_parallelism, parallelism)
            for group in key_group_range(subtask, max_parallelism, parallelism)
        }
        assert owners == {subtask}


# --- the cache -------------------------------------------------------------------------------------------------------


@given(st.lists(keys, max_size=60), st.integers(1, 5))
def test_cache_answers_as_the_function_does_whatever_its_size(seen, limit):
    owners = KeyOwners(128, 5, limit)
    assert owners.of(seen) == [subtask_of_key_group(key_group_of(key, 128), 128, 5) for key in seen]


keys_of_one_kind = st.one_of(
    st.lists(st.integers(), min_size=1),
    st.lists(st.integers(-(2**31), 2**31), min_size=1),
    st.lists(st.text(), min_size=1),
    st.lists(st.integers() | st.text() | st.tuples(st.text(), st.integers()) | st.floats() | st.none(), min_size=1),
)


@given(keys_of_one_kind, st.integers(1, 128))
def test_keys_hashed_many_at_a_time_have_the_same_owners(keys, parallelism):
    owners = KeyOwners(128, parallelism, limit=8, many=0)
    expected = [subtask_of_key_group(key_group_of(key, 128), 128, parallelism) for key in keys]
    owners.of(keys[:1])  # Now there are many.
    assert owners.of(keys) == expected
    assert owners.of(keys) == expected


def test_a_key_that_cannot_be_one_is_refused_among_many():
    owners = KeyOwners(128, 2, many=0)
    owners.of(["a"])
    with pytest.raises(InvalidProgramError, match="compares by identity"):
        owners.of(["b", object()])
