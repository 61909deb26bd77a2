"""Every name of PyFlink's DataStream API is there and can be called as in PyFlink.

`pyflink_api.json` lists them by module: a class with its members, or a name of the module itself. A member is an
"attribute" or a list of parameters, where `=` marks those that may be left out; "static" ones are called on the class.
"""

from __future__ import annotations

import dis
import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

API: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "pyflink_api.json").read_text(encoding="utf-8")
)["modules"]

_ABSENT = object()
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@pytest.mark.parametrize("module", API)
def test_names_of_pyflink_are_there_and_called_alike(module):
    assert list(_problems(importlib.import_module(module), API[module])) == []


def _problems(module: Any, names: dict[str, Any]) -> Iterator[str]:
    for name, expected in names.items():
        found = module
        for part in name.split("."):
            found = getattr(found, part, _ABSENT)
        if found is _ABSENT:
            yield f"{name} is missing"
        elif isinstance(expected, dict):
            for member, signature in expected.items():
                problem = _member_problem(found, member, signature)
                if problem:
                    yield f"{name}.{member} {problem}"
        elif expected.startswith("same as "):
            origin, _, own_name = expected.removeprefix("same as ").rpartition(".")
            if found is not getattr(importlib.import_module(origin), own_name):
                yield f"{name} is not the {expected}"
        elif expected != "attribute" and (problem := _call_problem(found, expected, is_bound=False)):
            yield f"{name} {problem}"


def _member_problem(cls: type, name: str, expected: str) -> str | None:
    raw = inspect.getattr_static(cls, name, _ABSENT)
    if expected == "attribute":
        if raw is _ABSENT:
            return None if _is_assigned(cls, name) else "is missing"
        return "is a method, not an attribute" if inspect.isfunction(raw) else None
    if raw is _ABSENT:
        return "is missing"
    if name == "__init__" and raw is object.__init__:
        return _call_problem(cls, expected, is_bound=False)
    if isinstance(raw, (staticmethod, classmethod)):
        return _call_problem(raw.__func__, expected, is_bound=isinstance(raw, classmethod))
    if expected.startswith("static"):
        return "cannot be called on the class"
    return _call_problem(raw, expected, is_bound=True) if inspect.isroutine(raw) else "is not a method"


def _is_assigned(cls: type, name: str) -> bool:
    """True if instances get an attribute of that name."""
    functions = [each for kind in cls.__mro__ for each in vars(kind).values() if inspect.isfunction(each)]
    return any(name in getattr(kind, "__annotations__", ()) for kind in cls.__mro__) or any(
        step.opname == "STORE_ATTR" and step.argval == name
        for function in functions
        for step in dis.get_instructions(function)
    )


def _call_problem(function: Callable[..., Any], expected: str, is_bound: bool) -> str | None:
    """None if `function` takes every call that the expected parameters allow."""
    actual = list(inspect.signature(function).parameters.values())[1 if is_bound else 0 :]
    listed = [each for each in expected.removeprefix("static ").strip("()").split(", ") if each]
    names = [each.rstrip("=") for each in listed if not each.startswith("*")]
    required = {each for each in listed if not each.endswith("=") and not each.startswith("*")}
    positional = [each.name for each in actual if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    stars = [each for each in listed if each.startswith("*")]
    has_stars = [str(each.replace(annotation=inspect.Parameter.empty)) for each in actual if each.kind in _VARIADIC]
    must_be_given = {each.name for each in actual if each.kind not in _VARIADIC and each.default is each.empty}
    if (
        positional[: len(names)] != names
        or not must_be_given <= required
        or any(sum(have.startswith("**") == star.startswith("**") for have in has_stars) == 0 for star in stars)
    ):
        return f"takes {inspect.signature(function)}, but PyFlink's {expected}"
    return None
