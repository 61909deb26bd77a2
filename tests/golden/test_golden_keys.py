"""Hashes of keys of every type: equal for equal keys, and never changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import golden_keys
import pytest

from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime import key_hashing
from penstock.runtime.key_hashing import stable_hash
from penstock.testing import JobInEpochs

PINNED = json.loads((Path(__file__).parent / "key_hashes.json").read_text(encoding="utf-8"))


def key_of(expression: str):
    return eval(expression, vars(golden_keys))


@pytest.mark.parametrize("expression", golden_keys.EXPRESSIONS, ids=ascii)
def test_hash_is_the_one_that_was_pinned(expression):
    assert stable_hash(key_of(expression)) == PINNED[expression]


@pytest.mark.parametrize("equal", golden_keys.EQUAL, ids=lambda equal: ascii(equal[0]))
def test_equal_keys_have_one_hash(equal):
    keys = [key_of(expression) for expression in equal]
    for at, key in enumerate(keys[1:], start=1):
        assert any(are_equal(key, before) for before in keys[:at]), "the list itself is wrong"
    assert len({PINNED[expression] for expression in equal}) == 1


@pytest.mark.parametrize("equal", golden_keys.BY_THEIR_OWN_HASH, ids=lambda equal: ascii(equal[0]))
def test_equal_keys_of_a_class_with_its_own_hash_have_one_hash(equal):
    keys = [key_of(expression) for expression in equal]
    assert len(set(keys)) == len({stable_hash(key) for key in keys}) == 1


FORMER = {golden_keys.Pair: 3954540162, golden_keys.SlottedPair: 3143834986}
"""What version 0.1 made of `kind('a', 1)`, which it hashed by all attributes."""


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


@pytest.mark.parametrize("kind", FORMER)
@pytest.mark.parametrize("parallelism", [3, 1, 4])
def test_keys_that_an_earlier_version_hashed_otherwise_are_found(kind, parallelism, monkeypatch):
    numbers = list(range(30))
    by_kind = lambda stream: stream.key_by(lambda number: kind("a", number)).process(Count()).uid("count")
    monkeypatch.setitem(key_hashing._hashers_of_classes, kind, key_hashing._hash_object)
    assert stable_hash(kind("a", 1)) == FORMER[kind]
    before = JobInEpochs(by_kind, 3)
    before.epoch(numbers)
    before.close()
    monkeypatch.delitem(key_hashing._hashers_of_classes, kind)
    assert stable_hash(kind("a", 1)) != FORMER[kind]
    after = JobInEpochs(by_kind, parallelism, restored=before.checkpoint)
    assert after.epoch(numbers) == sorted(repr((number, 2)) for number in numbers)


def are_equal(one, other) -> bool:
    try:
        return bool(one == other)
    except TypeError:  # NumPy cannot compare its numbers with those of `decimal`.
        return False


def test_hash_is_the_same_in_a_process_with_another_hash_seed():
    code = (
        "import golden_keys, json; from penstock.runtime.key_hashing import stable_hash\n"
        "print(json.dumps({e: stable_hash(eval(e, vars(golden_keys))) for e in golden_keys.EXPRESSIONS}))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(answer.stdout) == PINNED
