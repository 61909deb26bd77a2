from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import ConfigOptions, Configuration
from penstock.common.config_values import parse_as, to_text
from penstock.common.exceptions import ConfigurationError

scalars = st.one_of(st.booleans(), st.integers(-(2**62), 2**62), st.floats(allow_nan=False), st.text(max_size=8))
texts = st.text(alphabet="ab'\";:, []\\", max_size=6)


@given(st.lists(texts, max_size=4))
def test_a_list_is_read_back_from_its_text(items):
    assert parse_as("list", to_text(items)) == items


@given(st.dictionaries(texts, texts, max_size=4))
def test_a_map_is_read_back_from_its_text(entries):
    assert parse_as("map", to_text(entries)) == entries


@given(st.dictionaries(st.text("abc.", min_size=1), scalars))
def test_a_configuration_survives_its_dict(values):
    config = Configuration.from_dict(values)
    assert Configuration.from_dict(config.to_dict()) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(Configuration(config)) == hash(config)


def test_text_is_read_as_what_the_getter_asks_for():
    config = Configuration.from_dict({"i": " 5 ", "b": "TRUE", "f": "1.5", "bytes": "YWI="})
    assert config.get_integer("i", 0) == 5
    assert config.get_boolean("b", False) is True
    assert config.get_float("f", 0.0) == 1.5
    assert config.get_bytearray("bytes", bytearray()) == bytearray(b"ab")
    assert config.get_string("i", "") == " 5 "


def test_typed_values_are_text_for_get_string_and_to_dict():
    config = (
        Configuration()
        .set_integer("i", 5)
        .set_boolean("b", True)
        .set_float("f", 2)
        .set_bytearray("y", bytearray(b"ab"))
    )
    assert config.to_dict() == {"i": "5", "b": "true", "f": "2.0", "y": "YWI="}
    assert config.get_string("b", "") == "true"
    target = {"x": "1", "i": "old"}
    config.add_all_to_dict(target)
    assert target == {"x": "1", "i": 5, "b": True, "f": 2.0, "y": bytearray(b"ab")}  # With their types, as PyFlink.


def test_default_is_returned_for_a_missing_key():
    config = Configuration()
    assert config.get_string("k", "d") == "d"
    assert (config.get_integer("k", 3), config.get_boolean("k", True), config.get_float("k", 1)) == (3, True, 1.0)
    assert config.get_bytearray("k", bytearray(b"z")) == bytearray(b"z")


@pytest.mark.parametrize(
    ("getter", "text", "message"),
    [
        ("get_integer", "five", r"k: 'five' is not a long; write a whole number"),
        ("get_integer", str(2**63), "fits into 64 bits"),
        ("get_boolean", "yes", r"k: 'yes' is not a boolean; write true or false"),
        ("get_float", "x", r"k: 'x' is not a double; write a number"),
        ("get_bytearray", "?", "write bytes in base64"),
    ],
)
def test_a_value_of_the_wrong_form_names_key_value_and_form(getter, text, message):
    with pytest.raises(ConfigurationError, match=message):
        getattr(Configuration.from_dict({"k": text}), getter)("k", None)


def test_none_cannot_be_set():
    with pytest.raises(ConfigurationError, match=r"k: None cannot be set; use remove_config\('k'\)"):
        Configuration().set_string("k", None)


def test_copies_do_not_share_entries():
    config = Configuration().set_string("a", "1")
    for other in (Configuration(config), copy.deepcopy(config), copy.copy(Configuration(config))):
        other.set_string("a", "2")
    assert config.get_string("a", "") == "1"


def test_add_all_puts_the_prefix_before_each_key_as_it_is():
    config = (
        Configuration().add_all(Configuration.from_dict({"a": "1"}), "p.").add_all(Configuration.from_dict({"b": "2"}))
    )
    assert config.to_dict() == {"p.a": "1", "b": "2"}
    assert (config.key_set(), set(config), len(config), "b" in config) == ({"p.a", "b"}, {"p.a", "b"}, 2, True)


def test_remove_says_whether_there_was_something():
    config = Configuration().set_string("a", "1")
    assert config.contains_key("a") and config.remove_config("a") and not config.remove_config("a")
    assert not config.contains_key("a") and bool(config)


def test_lists_are_read_in_both_forms():
    assert Configuration.parse_list_value("a;b ; 'c;d'") == ["a", "b", "c;d"]
    assert Configuration.parse_list_value("[a, 'b, c']") == ["a", "b, c"]
    assert Configuration.parse_list_value("") == []


def test_a_value_may_contain_colons():
    assert parse_as("map", "a:b:c, d:'e:f'") == {"a": "b:c", "d": "e:f"}
    with pytest.raises(ValueError, match="'x' has no colon"):
        parse_as("map", "x")


def test_options_carry_type_default_and_old_names():
    key = ConfigOptions.key
    size = key("new.size").int_type().default_value(10).with_deprecated_keys("old.size").with_description("how many")
    assert Configuration().get(size) == 10
    assert Configuration().get_optional(size) is None
    assert Configuration.from_dict({"old.size": "7"}).get(size) == 7
    config = Configuration.from_dict({"old.size": "7"}).set(size, 8)
    assert config.to_dict() == {"new.size": "8"}
    assert Configuration().get(key("t").string_type().no_default_value()) is None
    assert Configuration.from_dict({"d": "5 s"}).get(key("d").duration_type().default_value(1)) == 5000
    assert Configuration.from_dict({"l": "a;b"}).get(key("l").list_type().no_default_value()) == ["a", "b"]
    assert Configuration.from_dict({"f": "1.5"}).get(key("f").float_type().no_default_value()) == 1.5
    with pytest.raises(ConfigurationError, match=r"new.size: '3000000000' is not a int"):
        Configuration.from_dict({"new.size": "3000000000"}).get(size)
