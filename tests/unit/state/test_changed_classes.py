"""Objects in state whose class has changed since: values are found by name, defaults filled in, or it is refused."""

from __future__ import annotations

import copyreg
import pickle
import sys
import types
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import StateMismatchError
from penstock.runtime.state.codec import decode_state, encode_state
from penstock.runtime.state.contents import load

MODULE = "a_module_of_the_program"


@pytest.fixture(autouse=True)
def module():
    made = sys.modules[MODULE] = types.ModuleType(MODULE)
    yield made
    del sys.modules[MODULE]


def define(body: str, name: str = "Reading") -> Any:
    """Runs the source of a class as that of a module of the program, in place of what was there under that name."""
    module = sys.modules[MODULE]
    module.__dict__.update(dataclass=dataclass, field=field, NamedTuple=NamedTuple, Any=Any)
    exec(body, module.__dict__)
    made = module.__dict__[name]
    made.__module__ = MODULE
    return made


def decoded(content: bytes) -> Any:
    """As state is read from a file, and as it is read from a store of entries: both must agree."""
    one, other = decode_state(content), load(content)
    assert repr(one) == repr(other)
    return one


KINDS = {
    "dataclass": ("@dataclass\nclass Reading:", "field"),
    "frozen": ("@dataclass(frozen=True)\nclass Reading:", "field"),
    "slots": ("@dataclass(slots=True)\nclass Reading:", "field"),
    "frozen slots": ("@dataclass(frozen=True, slots=True)\nclass Reading:", "field"),
    "named tuple": ("class Reading(NamedTuple):", "plain"),
}

NAMES = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5, unique=True)
PLACES = {
    "alone": lambda value: value,
    "in a list": lambda value: [value, 1],
    "as a value": lambda value: {"x": (value,)},
    "as a key": lambda value: {value: 1},
}


def source(kind: str, without_default: list[str], with_default: list[str]) -> str:
    head, fields = KINDS[kind]
    default = "field(default_factory=lambda: 'made')" if fields == "field" else "'made'"
    lines = [f"    {name}: Any" for name in without_default] + [f"    {name}: Any = {default}" for name in with_default]
    return "\n".join([head, *lines])


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_fields_keep_their_values_wherever_they_stand_and_new_ones_get_their_defaults(kind, data):
    before = data.draw(NAMES)
    place = PLACES[
        data.draw(st.sampled_from(list(PLACES) if "frozen" in kind or "tuple" in kind else list(PLACES)[:3]))
    ]
    values = {name: data.draw(st.integers() | st.text(max_size=3)) for name in before}
    content = encode_state(place(define(source(kind, before, []))(**values)))
    now = data.draw(st.permutations(before))
    added = [name for name in data.draw(NAMES) if name not in before]
    changed = define(source(kind, list(now), added))
    expected = changed(**values)
    assert repr(decoded(content)) == repr(place(expected))


@pytest.mark.parametrize("kind", KINDS)
@given(before=NAMES, now=NAMES)
def test_what_does_not_fit_is_refused_by_name(kind, before, now):
    content = encode_state([define(source(kind, before, []))(*range(len(before)))])
    define(source(kind, now, []))
    if set(before) == set(now):
        decoded(content)
        return
    with pytest.raises(StateMismatchError, match=rf"class {MODULE}\.Reading (has|no longer has) field") as raised:
        decoded(content)
    unknown = sorted(set(now) - set(before)) or sorted(set(before) - set(now))
    assert all(repr(name) in str(raised.value) for name in unknown)


@pytest.mark.parametrize("kind", KINDS)
def test_class_that_has_not_changed_restores_as_it_was(kind):
    made = define(source(kind, ["a"], ["b"]))
    one = made([1], made(2))
    assert decoded(encode_state(one)) == one


def test_dataclass_takes_over_what_was_saved_with_setstate():
    before = define("@dataclass\nclass Reading:\n    celsius: float\n")
    content = encode_state(before(20.0))
    define(
        "@dataclass\nclass Reading:\n    fahrenheit: float\n"
        "    def __setstate__(self, values):\n        self.fahrenheit = values['celsius'] * 1.8 + 32\n"
    )
    assert decoded(content).fahrenheit == 68.0


def test_attributes_besides_the_fields_stay_and_fields_without_a_value_stay_without():
    made = define("@dataclass\nclass Reading:\n    a: int\n    b: int = field(init=False)\n")
    one = made(1)
    one.extra = "x"
    restored = decode_state(encode_state(one))
    assert vars(restored) == {"a": 1, "extra": "x"}


def test_slot_without_a_value_stays_without():
    made = define("@dataclass(slots=True)\nclass Reading:\n    a: int\n    b: int = field(init=False)\n")
    restored = decode_state(encode_state(made(1)))
    assert restored.a == 1 and not hasattr(restored, "b")


@pytest.mark.parametrize("is_found", [True, False])
@pytest.mark.parametrize("head", ["@dataclass", "@dataclass(slots=True)"])
def test_objects_that_refer_to_themselves_and_share_parts_are_restored_so(head, is_found):
    made = define(f"{head}\nclass Reading:\n    parent: Any\n    parts: list\n")
    one = made(None, [1])
    one.parent = one
    code = None if is_found else lambda: 1  # Pickle alone cannot save a lambda.
    restored, other, _ = decode_state(encode_state([one, made(one, one.parts), code]))
    assert restored.parent is restored and other.parent is restored and other.parts is restored.parts


def test_subclass_of_a_named_tuple_keeps_its_attributes():
    define("class Base(NamedTuple):\n    a: int\n", "Base")
    made = define("class Reading(Base):\n    pass\n")
    one = made(1)
    one.note = "x"
    restored = decode_state(encode_state(one))
    assert (type(restored), restored, vars(restored)) == (made, (1,), {"note": "x"})


def test_inherited_fields_are_restored_by_name():
    define("@dataclass\nclass Base:\n    a: int = 0\n", "Base")
    content = encode_state(define("@dataclass\nclass Reading(Base):\n    b: int = 0\n")(1, 2))
    define("@dataclass\nclass Base:\n    z: int = 9\n    a: int = 0\n", "Base")
    changed = define("@dataclass\nclass Reading(Base):\n    b: int = 0\n")
    assert decoded(content) == changed(9, 1, 2)


PICKLED_BY_THEMSELVES = {
    "__reduce__": "    def __reduce__(self):\n        return Reading, (self.a + 1,)\n",
    "__getstate__": "    def __getstate__(self):\n        return {'a': self.a + 1}\n",
    "__getnewargs__": "    def __new__(cls, a=None):\n        return object.__new__(cls)\n"
    "    def __getnewargs__(self):\n        return (7,)\n",
}


@pytest.mark.parametrize("method", PICKLED_BY_THEMSELVES)
def test_class_that_says_how_it_is_pickled_is_pickled_so(method):
    made = define(f"@dataclass\nclass Reading:\n    a: int\n{PICKLED_BY_THEMSELVES[method]}")
    assert decoded(encode_state(made(1))) == pickle.loads(pickle.dumps(made(1)))


def test_registered_reducer_of_pickle_counts(monkeypatch):
    made = define("@dataclass\nclass Reading:\n    a: int\n")
    monkeypatch.setitem(copyreg.dispatch_table, made, lambda thing: (made, (thing.a + 1,)))
    assert decode_state(encode_state(made(1))) == made(2)


def test_dataclass_that_extends_a_builtin_type_is_pickled_as_usual():
    made = define("@dataclass\nclass Reading(dict):\n    a: int\n")
    one = made(1)
    one["x"] = 2
    restored = decode_state(encode_state(one))
    assert (restored.a, dict(restored)) == (1, {"x": 2})


@pytest.mark.parametrize("kind", KINDS)
def test_what_pickle_itself_wrote_is_still_read(kind):
    made = define(source(kind, ["a", "b"], []))
    assert decoded(pickle.dumps(made(1, 2), protocol=5)) == made(1, 2)
