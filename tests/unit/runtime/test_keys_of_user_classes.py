"""Equal keys are one key at any parallelism, in any process and after any restore, whatever their class is.

What cannot be is refused, with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.checkpoint.finding import find_checkpoint
from penstock.checkpoint.metadata import CANONICAL, NATIVE
from penstock.checkpoint.savepoints import one_after_the_other, write_savepoint
from penstock.common import Row, Types
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream import KeyedProcessFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.runtime.key_groups import key_group_of
from penstock.runtime.key_hashing import are_fixed, stable_hash
from penstock.runtime.state.backends import DiskBackend, HeapBackend
from penstock.testing import JobInEpochs

OFFSET = 17


def normal(text: str) -> str:
    return text.strip().lower()


@dataclass(frozen=True)
class ByFields:
    id: str
    note: str = field(default="", compare=False)


@dataclass(frozen=True)
class Derived(ByFields):
    more: str = ""


@dataclass(frozen=True, eq=False)
class ComparesLikeItsBase(ByFields):
    more: str = ""


class BySome:
    """Equal if the ids are: the note, and what else it remembers, does not count."""

    def __init__(self, id, note=""):
        self.id, self.note, self.seen = id, note, [note]

    def __eq__(self, other):
        return isinstance(other, BySome) and self.id == other.id

    def __hash__(self):
        return hash(self.id)


class EqualsItsBase(BySome):
    """A subclass of which objects equal those of its base."""


class ByMethod:
    def __init__(self, id, note=""):
        self.id, self.note = id, note

    def __key(self):
        return (self.id, OFFSET)

    def __eq__(self, other):
        return type(other) is ByMethod and self.__key() == other.__key()

    def __hash__(self):
        return hash(self.__key())


class ByProperty:
    __slots__ = ("_raw", "note")

    def __init__(self, id, note=""):
        self._raw, self.note = f" {id.upper()} ", note

    @property
    def id(self):
        return normal(self._raw)

    def __eq__(self, other):
        return type(self) is type(other) and self.id == other.id

    def __hash__(self):
        return hash((type(self), self.id)) ^ OFFSET


class AnyCase(str):
    """A text whose case does not count."""

    def __eq__(self, other):
        return isinstance(other, AnyCase) and self.lower() == other.lower()

    def __hash__(self):
        return hash(self.lower())


class OneField(NamedTuple):
    id: str
    note: str = ""

    def __eq__(self, other):
        return isinstance(other, OneField) and self.id == other.id

    def __hash__(self):
        return hash((self.id,))


@dataclass
class OwnEquality:
    id: str
    note: str = ""

    def __eq__(self, other):
        return isinstance(other, OwnEquality) and self.id == other.id

    def __hash__(self):
        return hash("".join(sorted(self.id)) + self.id)


class InTuple:
    """Made of a frozen set of parts, in no order."""

    def __init__(self, id, note=""):
        self.id, self.parts = id, frozenset((id, "x"))

    def __eq__(self, other):
        return isinstance(other, InTuple) and self.parts == other.parts

    def __hash__(self):
        return hash(self.parts)


def any_case(id, note):
    return AnyCase(id.upper() if note else id)


MAKERS = [
    ByFields,
    Derived,
    ComparesLikeItsBase,
    BySome,
    EqualsItsBase,
    ByMethod,
    ByProperty,
    OneField,
    OwnEquality,
    InTuple,
    any_case,
]
AROUND = [
    lambda key: key,
    lambda key: (1, key),
    lambda key: ("a", (key, None)),
    lambda key: frozenset({key}),
    lambda key: Row(key, 1),
    lambda key: ByFields(key),
]
IDS = st.sampled_from(["a", "b", "c", "ab", "ba"])
NOTES = st.sampled_from(["", "n", "m"])


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value[0], self.count.value()


def counted(stream):
    return stream.key_by(lambda record: record[1]).process(Count()).uid("count")


@settings(max_examples=60, deadline=None)
@given(
    make=st.sampled_from(MAKERS),
    around=st.sampled_from(AROUND),
    parts=st.lists(st.lists(st.tuples(IDS, NOTES), max_size=8), min_size=1, max_size=3),
    parallelisms=st.lists(st.sampled_from([1, 2, 3, 7]), min_size=3, max_size=3),
    backend=st.sampled_from([HeapBackend(), DiskBackend(cache_entries=2)]),
)
def test_counts_by_key_do_not_depend_on_parallelism_or_on_restores(make, around, parts, parallelisms, backend):
    expected: dict[str, int] = {}
    checkpoint = None
    for part, parallelism in zip(parts, parallelisms, strict=False):
        job = JobInEpochs(counted, parallelism, restored=checkpoint, state_backend=backend)
        shown = []
        for id, _ in part:
            expected[id] = expected.get(id, 0) + 1
            shown.append(repr((id, expected[id])))
        assert job.epoch([(id, around(make(id, note))) for id, note in part]) == sorted(shown)
        checkpoint = job.checkpoint
        job.close()


def test_objects_of_two_classes_that_are_equal_are_one_key():
    assert BySome("a", "x") == EqualsItsBase("a")
    assert stable_hash(BySome("a", "x")) == stable_hash(EqualsItsBase("a"))


def test_hashes_are_the_same_in_a_process_with_another_hash_seed():
    code = (
        "import json, test_keys_of_user_classes as t; from penstock.runtime.key_hashing import stable_hash\n"
        "print(json.dumps([stable_hash(make('ab', 'n')) for make in t.MAKERS]))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONHASHSEED": "4242",
            "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(answer.stdout) == [stable_hash(make("ab", "n")) for make in MAKERS]


# --- what is refused -------------------------------------------------------------------------------------------------


class _Refused:
    def __init__(self, id):
        self.id = id
        self.cached = None

    def __eq__(self, other):
        return self.id == other.id


class CachesItsHash(_Refused):
    def __eq__(self, other):
        return self.id == other.id

    def __hash__(self):
        if self.cached is None:
            self.cached = hash(self.id)
        return self.cached


class KeepsItsHash(_Refused):
    def __eq__(self, other):
        return self.id == other.id

    def __hash__(self):
        return self._hash


class AsksItsBase(AnyCase):
    def __eq__(self, other):
        return self.lower() == other.lower()

    def __hash__(self):
        return super().__hash__()


class AsksTheText(_Refused):
    def __eq__(self, other):
        return self.id == other.id

    def __hash__(self):
        return self.id.__hash__()


class UsesItsAddress(_Refused):
    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


TABLE = {"a": 1}


class LooksUp(_Refused):
    def __eq__(self, other):
        return TABLE[self.id] == TABLE[other.id]

    def __hash__(self):
        return TABLE[self.id]


def hashed(id):
    return hash(id)


class HashesElsewhere(_Refused):
    def __eq__(self, other):
        return self.id == other.id

    def __hash__(self):
        return hashed(self.id)


class ByIdentity:
    pass


class HasOnlyAHash:
    def __hash__(self):
        return 1


REFUSED = {
    CachesItsHash: "changes or imports something",
    KeepsItsHash: "uses _hash",
    AsksItsBase: r"uses super\(\)",
    AsksTheText: "uses __hash__",
    UsesItsAddress: r"uses id\(\)",
    LooksUp: "uses the variable TABLE",
    HashesElsewhere: r"uses hash\(\)",
}


@pytest.mark.parametrize("kind", REFUSED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("around", AROUND[:3])
def test_class_whose_hash_may_differ_between_processes_is_refused(kind, around):
    with pytest.raises(InvalidProgramError, match=rf"a {kind.__name__} cannot be a key: .*{REFUSED[kind]}.*dataclass"):
        key_group_of(around(kind("a")), 128)


@pytest.mark.parametrize("kind", [ByIdentity, HasOnlyAHash])
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_class_that_compares_by_identity_is_refused_wherever_it_is(kind, around, parallelism):
    message = f"a {kind.__name__} cannot be a key: it compares by identity"
    with pytest.raises(AssertionError, match=message):
        JobInEpochs(counted, parallelism).epoch([("a", around(kind()))])


def test_class_that_no_function_of_the_job_refers_to_is_refused_if_it_was_made_inside_a_function():
    def make():
        @dataclass(frozen=True)
        class Local:
            id: str

        return Local

    with pytest.raises(AssertionError, match=r"Local cannot be a key: the class is made inside a function"):
        JobInEpochs(counted, 2).epoch([("a", make()("a"))])


def test_class_made_inside_a_function_is_a_key_after_a_restore_by_a_new_program():
    def program():
        @dataclass(frozen=True)
        class Local:
            id: str

        class Colour(Enum):
            RED = 1

        return lambda stream: stream.key_by(lambda record: (Local(record[0]), Colour.RED)).process(Count()).uid("count")

    before = JobInEpochs(program(), 2)
    before.epoch([("a", 1), ("b", 1)])
    after = JobInEpochs(program(), 2, restored=before.checkpoint)
    assert after.epoch([("a", 1), ("c", 1)]) == ["('a', 2)", "('c', 1)"]


def test_class_of_attrs_is_hashed_by_what_counts_in_comparisons():
    scope: dict[str, Any] = {}
    source = "def __eq__(self, other):\n    return self.id == other.id\n"
    source += "def __hash__(self):\n    return hash((991, self.id))\n"
    exec(compile(source, "<attrs generated eq Key>", "exec"), scope)

    class Attribute(NamedTuple):
        name: str
        eq: bool
        eq_key: Any = None

    names = (Attribute("id", True), Attribute("note", False), Attribute("text", True, str.lower))
    body = {"__eq__": scope["__eq__"], "__hash__": scope["__hash__"], "__attrs_attrs__": names}
    kind = type("Key", (), body)
    one, other = kind(), kind()
    one.__dict__.update(id=1, note=2, text="a")
    other.__dict__.update(id=1, note=3, text="A")
    assert stable_hash(one) == stable_hash(other)


# --- classes that change ---------------------------------------------------------------------------------------------

MODULE = "a_module_with_keys"
VERSIONS = {
    "fields of a dataclass": (
        "@dataclass(frozen=True)\nclass Key:\n    id: str\n",
        "@dataclass(frozen=True)\nclass Key:\n    region: str = 'eu'\n    id: str = ''\n",
    ),
    "fields with a factory": (
        "@dataclass(frozen=True)\nclass Key:\n    id: str\n",
        "@dataclass(frozen=True)\nclass Key:\n    id: str\n    tags: tuple = field(default_factory=tuple)\n",
    ),
    "fields of a named tuple": (
        "class Key(NamedTuple):\n    id: str\n",
        "class Key(NamedTuple):\n    region: str = 'eu'\n    id: str = ''\n",
    ),
    "fields with slots": (
        "@dataclass(frozen=True, slots=True)\nclass Key:\n    id: str\n",
        "@dataclass(frozen=True, slots=True)\nclass Key:\n    region: str = 'eu'\n    id: str = ''\n",
    ),
    "hash": (
        "class Key:\n    def __init__(self, id):\n        self.id = id\n"
        "    def __eq__(self, other):\n        return self.id == other.id\n"
        "    def __hash__(self):\n        return hash(self.id)\n",
        "class Key:\n    def __init__(self, id):\n        self.id = id\n"
        "    def __eq__(self, other):\n        return self.id == other.id\n"
        "    def __hash__(self):\n        return hash((self.id, 'salt'))\n",
    ),
}


@pytest.fixture
def module(monkeypatch):
    made = types.ModuleType(MODULE)
    made.__dict__.update(dataclass=dataclass, field=field, NamedTuple=NamedTuple)
    monkeypatch.setitem(sys.modules, MODULE, made)
    return made


def by_key(stream):
    return stream.key_by(lambda id: sys.modules[MODULE].Key(id=id)).process(CountIds()).uid("count")


class CountIds(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_processing_time_timer(1_000)
        yield value, self.count.value()

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key().id, self.count.value(), "timer"


IDS_OF_KEYS = [f"k{number}" for number in range(40)]


@pytest.mark.parametrize("change", VERSIONS)
@pytest.mark.parametrize("backend", [HeapBackend(), DiskBackend(cache_entries=3)], ids=["memory", "disk"])
@pytest.mark.parametrize("parallelism", [1, 3, 4])
def test_state_and_timers_of_a_key_are_found_after_its_class_has_changed(change, backend, parallelism, module):
    before, after = VERSIONS[change]
    exec(before, module.__dict__)
    job = JobInEpochs(by_key, 3, state_backend=backend)
    job.epoch(IDS_OF_KEYS)
    job.epoch(IDS_OF_KEYS[:5])  # These are in another file, with what changed.
    job.close()
    exec(after, module.__dict__)
    changed = JobInEpochs(by_key, parallelism, restored=job.checkpoint, state_backend=backend)
    expected = {id: 3 if id in IDS_OF_KEYS[:5] else 2 for id in IDS_OF_KEYS}
    assert changed.epoch(IDS_OF_KEYS) == sorted(repr(each) for each in expected.items())
    # What it now saves is complete: it is restored once more, and each timer fires once.
    changed.fail()
    again = JobInEpochs(by_key, parallelism, restored=changed.checkpoint, state_backend=backend)
    assert again.epoch([], now_ms=1_000) == sorted(repr((*each, "timer")) for each in expected.items())


@pytest.mark.parametrize("format_type", [CANONICAL, NATIVE])
@pytest.mark.parametrize("parallelism", [3, 2])
def test_savepoint_of_any_format_gives_keys_to_those_whose_they_are_now(format_type, parallelism, module, tmp_path):
    before, after = VERSIONS["fields of a dataclass"]
    exec(before, module.__dict__)
    job = JobInEpochs(by_key, 3)
    job.epoch(IDS_OF_KEYS)
    path = write_savepoint(job.checkpoint, str(tmp_path), format_type, one_after_the_other)
    exec(after, module.__dict__)
    changed = JobInEpochs(by_key, parallelism, restored=find_checkpoint(path))
    assert changed.epoch(IDS_OF_KEYS) == sorted(repr((id, 2)) for id in IDS_OF_KEYS)


def test_only_classes_of_the_program_move_keys():
    assert are_fixed(["a", 1, 2.5, None, b"", ("a", (1, None)), frozenset({"a"}), Row("a", ("b", 1))])
    for key in (ByFields("a"), ("a", ByFields("a")), Row(ByFields("a")), frozenset({BySome("a")}), OneField("a")):
        assert not are_fixed(["a", key])
