"""Which functions certainly keep nothing, so that what they give need not be copied.

A function can keep what it gets or gives only in something that it reaches and that outlives the call: its object, a
variable of the module or of an enclosing function, a default. So the names that its code uses are looked up. Whatever
is not known to be harmless counts as a place to keep things: a copy too many costs time, one too few a wrong result.
"""

from __future__ import annotations

import builtins
import dataclasses
import datetime
import decimal
import dis
import inspect
import json
import math
import operator
import random
import re
import string
import sys
import time
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

from penstock.common.types import Row
from penstock.runtime.element_copies import IMMUTABLE_TYPES, constructs_plainly

_DEEPEST = 4
"""How far functions that call functions are followed."""
_MODULES: Final = (datetime, decimal, json, math, operator, random, re, string, time, uuid)
_CALLABLES: Final[tuple[Any, ...]] = (
    *(abs, all, any, bin, chr, divmod, format, hash, hex, isinstance, len, max, min, oct, ord, pow, repr, round),
    *(sorted, sum, bool, bytes, bytearray, complex, dict, enumerate, float, frozenset, int, list, range, reversed, set),
    *(str, tuple, zip, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID),
    *(json.loads, json.dumps, Row),
)
_TYPES: Final = (str, bytes, int, float, list, dict, set, tuple, datetime.datetime, datetime.timedelta, re.Match, Row)
_METHODS: Final = frozenset(name for kind in (*_TYPES, re.Pattern) for name in dir(kind) if not name.startswith("__"))
"""Methods of types that keep nothing. Another class may have one of that name, which is not likely to keep things."""


def keeps_nothing(function: Callable[..., Any]) -> bool:
    """True if nothing that `function` is given or returns stays reachable for it once it has returned.

    A generator does not count: its results may share something with each other.
    """
    try:
        return _is_harmless_call(function, _DEEPEST)
    except (TypeError, ValueError, AttributeError):  # Objects that only pretend to be functions.
        return False


def _is_harmless_call(function: Any, depth: int) -> bool:
    if any(function is known for known in _CALLABLES):
        return True
    if isinstance(function, types.MethodType):
        return _uses_no_object(function.__func__) and _is_harmless_call(function.__func__, depth)
    if isinstance(function, type):
        return _is_harmless_class(function, depth)
    if not isinstance(function, types.FunctionType) or depth == 0:
        return False
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    outside = {
        name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
    }
    return all(map(_is_immutable, defaults)) and all(
        _is_harmless_code(each, function.__globals__, outside, depth) for each in _with_inner(code)
    )


def _uses_no_object(function: Any) -> bool:
    """True for a method that does not look at its object."""
    code = function.__code__
    loads = (step for each in _with_inner(code) for step in dis.get_instructions(each) if "LOAD" in step.opname)
    names = (step.argval if isinstance(step.argval, tuple) else (step.argval,) for step in loads)
    return not any(code.co_varnames[0] in each for each in names)


def _is_harmless_class(kind: type, depth: int) -> bool:
    """True for classes whose construction is that of a dataclass or of a plain object."""
    if type(kind) is not type or not constructs_plainly(kind) or hasattr(kind, "__post_init__"):
        return False
    init: Any = inspect.getattr_static(kind, "__init__")
    if dataclasses.is_dataclass(kind) and init.__code__.co_filename == "<string>":
        return all(map(_has_harmless_default, dataclasses.fields(kind)))
    return init is object.__init__ or _is_harmless_call(init, depth - 1)


def _has_harmless_default(field: dataclasses.Field[Any]) -> bool:
    if field.default_factory is not dataclasses.MISSING:
        return any(field.default_factory is known for known in _CALLABLES)
    return field.default is dataclasses.MISSING or field.default is None or _is_immutable(field.default)


def _is_immutable(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        # A table may be long, and mostly holds numbers or texts alone.
        return _PLAIN_TYPES.issuperset(map(type, value)) or all(map(_is_immutable, value))
    # None is often the place of something that comes later.
    return value is not None and type(value) in IMMUTABLE_TYPES and not isinstance(value, _DOORS)


_DOORS = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
"""Immutable, but ways to something that is not."""
_PLAIN_TYPES: Final = frozenset({bool, int, float, str, bytes})


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of its comprehensions, lambdas and the like."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)


_KEEPING: Final = ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME", "LOAD_CLASSDEREF", "LOAD_BUILD_CLASS", "LOAD_NAME")


def _is_harmless_code(code: types.CodeType, module: dict[str, Any], outside: dict[str, Any], depth: int) -> bool:
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname in _KEEPING or (step.opname == "STORE_DEREF" and step.argval in outside):
            return False
        # The latter is how newer Pythons load a method.
        is_method = step.opname == "LOAD_METHOD" or (
            step.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and bool((step.arg or 0) & 1)
        )
        if is_method and step.argval not in _METHODS and not _is_of_module(steps[at - 1], module):
            return False
        if step.opname == "LOAD_GLOBAL" or (step.opname == "LOAD_DEREF" and step.argval in outside):
            held = outside if step.opname == "LOAD_DEREF" else module
            value = held.get(step.argval, getattr(builtins, step.argval, None))
            if not _is_harmless_name(value, steps, at, depth):
                return False
    return True


def _is_of_module(loaded: dis.Instruction, module: dict[str, Any]) -> bool:
    return loaded.opname == "LOAD_GLOBAL" and any(module.get(loaded.argval) is each for each in _MODULES)


def _is_harmless_name(value: Any, steps: list[dis.Instruction], at: int, depth: int) -> bool:
    """Whether nothing can be kept in the value that is loaded at `at`, by what is done with it there."""
    if any(value is each for each in _MODULES):
        return at + 1 < len(steps) and steps[at + 1].opname in ("LOAD_ATTR", "LOAD_METHOD")
    if _is_immutable(value) or any(value is each for each in _CALLABLES):
        return True
    # Functions and classes have attributes, where things can be kept: they may be called, and nothing else.
    return _is_called(steps, at) and _is_harmless_call(value, depth - 1)


def _is_called(steps: list[dis.Instruction], at: int) -> bool:
    """True if what is loaded is called, not kept, handed on, or asked for an attribute."""
    if sys.version_info < (3, 11):
        return _is_called_by_stack(steps[at + 1 :])
    if steps[at].opname == "LOAD_GLOBAL":
        return bool((steps[at].arg or 0) & 1)
    # Behind or before what is called there is a mark: behind it from 3.13 on.
    beside = at + 1 if sys.version_info >= (3, 13) else at - 1
    return 0 <= beside < len(steps) and steps[beside].opname == "PUSH_NULL"


def _is_called_by_stack(following: list[dis.Instruction]) -> bool:
    """True if the steps that follow put arguments upon what was loaded, and then call it.

    Python 3.10 does not mark what it calls. Steps that are not known here count as if they did something else with it.
    """
    upon = 0
    for step in following:
        count = step.arg or 0
        if step.opname in ("CALL_FUNCTION", "CALL_FUNCTION_KW"):
            taken = count + (step.opname == "CALL_FUNCTION_KW")
            if upon == taken:
                return True
            taken, given = taken + 1, 1
        elif step.opname in _TAKEN_AND_GIVEN:
            taken, given = _TAKEN_AND_GIVEN[step.opname]
        elif step.opname.startswith(("BINARY_", "COMPARE_", "CONTAINS_", "IS_")):
            taken, given = 2, 1
        elif step.opname == "CALL_METHOD":
            taken, given = count + 2, 1
        elif step.opname in ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING"):
            taken, given = count, 1
        else:
            return False
        if upon < taken:
            return False
        upon += given - taken
    return False


_TAKEN_AND_GIVEN: Final = {
    **dict.fromkeys(("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE"), (0, 1)),
    **dict.fromkeys(("LOAD_ATTR", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_NOT", "UNARY_INVERT"), (1, 1)),
    "LOAD_METHOD": (1, 2),
}
"""How many values a step takes from the stack of Python 3.10, and how many it puts there."""
