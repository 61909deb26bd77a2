"""Hashes of keys of every type: equal for equal keys, and never changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import golden_keys
import pytest

from penstock.runtime.key_hashing import stable_hash

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
