"""Finds out whether a function can reach state through global variables, or variables of an enclosing function.

    def open(self, context):                            def process_element(self, value, ctx):
        global count                                        count.update((count.value() or 0) + 1)
        count = context.get_state(COUNT)

State belongs to the current key, and a generated loop sets the current key only where it sees a use of state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.datastream.state import State

_MOST_STEPS = 5
_MOST_ITEMS = 100
_MOST_OBJECTS = 2_000
"""Limits of the search. A program that keeps state outside of its function keeps it near; far away are libraries."""


def reaches_state(function: FunctionType) -> bool:
    """True if a name that is not a local variable leads to a state, directly or through other objects."""
    return _Search().finds_in(_outer_values(function), _MOST_STEPS)


class _Search:
    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}

    def finds_in(self, values: Iterable[Any], steps: int) -> bool:
        return any(self._finds(value, steps) for value in islice(values, _MOST_ITEMS))

    def _finds(self, value: Any, steps: int) -> bool:
        if issubclass(type(value), State):
            return True
        if steps == 0 or id(value) in self._seen or len(self._seen) == _MOST_OBJECTS:
            return False
        self._seen[id(value)] = value
        return self.finds_in(_parts_of(value), steps - 1)


def _parts_of(value: Any) -> Iterable[Any]:
    """The objects that code can reach through `value`."""
    match value:
        case FunctionType():
            return _outer_values(value)
        case MethodType():
            return value.__self__, value.__func__
        case staticmethod() | classmethod():
            return (value.__func__,)
        case ModuleType():  # Without its functions: libraries have too many.
            return _of_kinds((State, dict, list), value)
        case type():
            return _of_kinds((State, dict, list, FunctionType, staticmethod, classmethod), value)
        case dict():
            return value.values()
        case list() | tuple() | set() | frozenset():
            return value
    # Not `vars`, which runs code of the object: it may be a proxy for another object.
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:  # It has no dictionary, or hides it.
        held = {}
    return *held.values(), type(value)


def _of_kinds(kinds: tuple[type, ...], owner: Any) -> list[Any]:
    return [each for each in list(vars(owner).values()) if issubclass(type(each), kinds)]


def _outer_values(function: FunctionType) -> Iterator[Any]:
    """The values of the names in a function that are not its local variables."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # The variable is not set yet.
            continue
    there = function.__globals__
    for name in _global_names(function.__code__):
        if name in there:
            yield there[name]


def _global_names(code: CodeType) -> Iterator[str]:
    """Global names in the code. Names of attributes are among them: at worst, a loop is refused without need."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _global_names(each)
