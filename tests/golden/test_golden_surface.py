"""Configuration keys, flags, REST fields, metrics and Penstock's own API are never taken away."""

from __future__ import annotations

import json

import pytest
from golden_surface import PINNED, missing, options, surface, with_new

from penstock.common import Configuration

THEN, NOW = json.loads(PINNED.read_text(encoding="utf-8")), surface()


@pytest.mark.parametrize("part", list(NOW))
def test_all_that_was_there_is_still_there(part):
    assert missing(THEN[part], NOW[part]) == []


@pytest.mark.parametrize("name", list(THEN["own API"]))
def test_parameters_keep_their_order_and_new_ones_can_be_left_out(name):
    then, now = THEN["own API"][name], NOW["own API"][name]
    assert [each for each in now if each in then] == then
    assert [each for each in now if each not in then and not each.endswith("=") and "*" not in each] == []


SAMPLES = {"boolean": "true", "duration": "7 ms", "list": "a;b", "map": "a:b", "float": "1.5", "double": "1.5"}


def test_a_key_that_has_a_new_name_is_read_by_its_old_one():
    renamed = [(option, old) for option in options() for old in option.old_keys]
    assert renamed
    for option, old in renamed:
        value = SAMPLES.get(option.value_type, "7")
        assert Configuration().set_string(old, value).get_optional(option) == option.parse(value)


def test_the_comparison_finds_what_is_gone_and_adds_what_is_new():
    then = {"verbs": {"run": ["-p", "-d"], "stop": []}, "keys": ["a", "b"]}
    now = {"verbs": {"run": ["-d", "-x"]}, "keys": ["b", "c"], "more": []}
    assert missing(then, now) == ["verbs: run: -p", "verbs: stop", "keys: a"]
    assert with_new(then, now) == {
        "verbs": {"run": ["-p", "-d", "-x"], "stop": []},
        "keys": ["a", "b", "c"],
        "more": [],
    }
