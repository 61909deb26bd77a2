"""Functions that keep nothing are found; whatever could keep something is not taken for one."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
import re

import pytest

from penstock.common import Row
from penstock.runtime.retention import keeps_nothing

CACHE: dict = {}
NUMBER = 3
PATTERN = re.compile("a")
LATER = None


@dataclasses.dataclass
class Event:
    name: str
    tags: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Counted:
    tags: list = dataclasses.field(default_factory=lambda: CACHE.setdefault("tags", []))


@dataclasses.dataclass
class Registered:
    name: str

    def __post_init__(self):
        CACHE[self.name] = self


class Plain:
    instances: list = []

    def __init__(self, name):
        self.name = name


class Registering:
    def __init__(self, name):
        CACHE[name] = self


class InheritsRegistering(Registering):
    pass


class Single:
    def __new__(cls):
        return CACHE.setdefault("single", object.__new__(cls))


class Mapper:
    def __init__(self):
        self.kept = []

    def of_value(self, value):
        return [value, NUMBER]

    def keeping(self, value):
        self.kept.append(value)
        return value

    def keeping_in_comprehension(self, value):
        return [self.kept for _ in value]


def plus(number):
    return number + NUMBER


def parsed(line):
    parts = line.split(",")
    return {"name": parts[0].strip(), "numbers": [int(part) for part in parts[1:]]}


def extended(element):
    element["plus"] = plus(math.floor(element["number"]))
    return element


def with_closure_of_number():
    number = 5
    return lambda value: [value, number]


def with_closure_of_function():
    def twice(value):
        return value * 2

    return lambda value: [twice(value), twice(plus(value))]


def handing_on_a_function_of_a_closure():
    def twice(value):
        return value * 2

    return lambda value: (twice, value)


def with_closure_of_list():
    kept = []

    def append(value):
        kept.append(value)
        return kept

    return append


def with_counter():
    count = 0

    def counted(value):
        nonlocal count
        count = value
        return count

    return counted


@functools.lru_cache
def cached(value):
    return [value]


def cached_inside(value):
    return cached(value)


def in_default(value, kept=[]):  # noqa: B006
    kept.append(value)
    return kept


def in_global(value):
    global LATER
    LATER = value
    return value


def in_attribute_of_function(value):
    plus.kept = value
    return value


def in_attribute_of_class(value):
    Plain.instances = value
    return value


def in_attribute_of_class_by_another_name(value):
    kind = Plain
    kind.instances = value
    return value


def in_imported_module(value):
    import sys

    sys.kept = value
    return value


@pytest.mark.parametrize(
    "function",
    [
        lambda number: number * 3 + 1,
        lambda pair: (pair[0], pair[1] + 1),
        lambda text: json.loads(text),
        lambda name: Event(name),
        lambda name: Plain(name),
        lambda element: element.name,
        lambda row: Row(row[0], row.get_row_kind()),
        lambda text: PATTERN.match(text) is not None,
        lambda numbers: sorted(plus(number) for number in numbers),
        plus,
        parsed,
        extended,
        lambda pair: plus(pair[0] + plus(abs(pair[1].real))),
        lambda pair: plus(number=-pair[0]),
        lambda pair: [plus(pair[0]), (plus(1), f"{plus(2)}")],
        with_closure_of_number(),
        with_closure_of_function(),
        Mapper().of_value,
        int,
        str,
    ],
)
def test_functions_that_reach_nothing_that_lasts(function):
    assert keeps_nothing(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda key: CACHE.get(key),
        lambda key: CACHE,
        lambda value: LATER,
        lambda value: Plain.instances,
        lambda name: Registering(name),
        lambda name: InheritsRegistering(name),
        lambda name: Registered(name),
        lambda value: Counted(),
        lambda value: Single(),
        lambda value: value.store(),
        lambda value: eval("CACHE"),
        lambda value: os.environ,
        lambda value: unknown_name,  # type: ignore[name-defined]  # noqa: F821
        lambda value: cached_inside(value),
        cached,
        cached_inside,
        in_default,
        in_global,
        in_attribute_of_function,
        in_attribute_of_class,
        in_attribute_of_class_by_another_name,
        in_imported_module,
        handing_on_a_function_of_a_closure(),
        lambda value: (plus, value),
        lambda value: [plus],
        lambda value: max(value, key=plus),
        lambda value: plus(plus),
        lambda value: value if value else plus,
        lambda value: value(plus),
        with_closure_of_list(),
        with_counter(),
        Mapper().keeping,
        Mapper().keeping_in_comprehension,
        functools.partial(plus, 1),
        CACHE.get,
        [].append,
        lambda value: (yield value),
    ],
)
def test_functions_that_could_keep_something(function):
    assert not keeps_nothing(function)


def test_object_that_is_no_function_is_not_trusted():
    class Callable:
        def __call__(self, value):
            return value

    assert not keeps_nothing(Callable())
