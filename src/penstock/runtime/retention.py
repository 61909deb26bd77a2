"""Finds functions that certainly keep none of their arguments and results, so that results need not be copied.

A function can keep a value only in something that outlives the call: its object, a variable of its module or of an
enclosing function, or a default. So the names that its code uses are looked up. Everything that is not known to be
harmless counts as a place to keep values: an unnecessary copy costs time, but a missing one makes results wrong.
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
"""How many levels of calls are examined."""
_MODULES: Final = (datetime, decimal, json, math, operator, random, re, string, time, uuid)
_CALLABLES: Final[tuple[Any, ...]] = (
    *(abs, all, any, bin, chr, divmod, format, hash, hex, isinstance, len, max, min, oct, ord, pow, repr, round),
    *(sorted, sum, bool, bytes, bytearray, complex, dict, enumerate, float, frozenset, int, list, range, reversed, set),
    *(str, tuple, zip, datetime.date, datetime.datetime, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID),
    *(json.loads, json.dumps, Row),
)
_TYPES: Final = (str, bytes, int, float, list, dict, set, tuple, datetime.datetime, datetime.timedelta, re.Match, Row)
_METHODS: Final = frozenset(name for kind in (*_TYPES, re.Pattern) for name in dir(kind) if not name.startswith("__"))
"""Methods that keep values nowhere but in their own object. A method of another class is recognized by its name alone:
one that has such a name, and keeps values elsewhere, would go unnoticed."""


def keeps_nothing(function: Callable[..., Any]) -> bool:
    """True if `function` certainly cannot reach its arguments and results after it has returned.

    False for a generator: its results may share objects with each other.
    """
    try:
        return _is_harmless_call(function, _DEEPEST)
    except (TypeError, ValueError, AttributeError):  # An object that only pretends to be a function.
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
    """True for a method that does not use its object."""
    code = function.__code__
    loads = (step for each in _with_inner(code) for step in dis.get_instructions(each) if "LOAD" in step.opname)
    names = (step.argval if isinstance(step.argval, tuple) else (step.argval,) for step in loads)
    return not any(code.co_varnames[0] in each for each in names)


def _is_harmless_class(kind: type, depth: int) -> bool:
    """True for a class that is constructed like a dataclass or a plain object, and keeps no reference elsewhere."""
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
        # A fast check first: a table may be long, and usually holds only numbers or strings.
        return _PLAIN_TYPES.issuperset(map(type, value)) or all(map(_is_immutable, value))
    # A variable that is None now is often set to something else later.
    return value is not None and type(value) in IMMUTABLE_TYPES and not isinstance(value, _GATEWAYS)


_GATEWAYS = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
"""Types that count as immutable elements, but through whose objects a function can reach others that can change."""
_PLAIN_TYPES: Final = frozenset({bool, int, float, str, bytes})


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of its comprehensions, lambdas and the like."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)


_REFUSED: Final = ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME", "LOAD_CLASSDEREF", "LOAD_BUILD_CLASS", "LOAD_NAME")


def _is_harmless_code(code: types.CodeType, module: dict[str, Any], outside: dict[str, Any], depth: int) -> bool:
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname in _REFUSED or (step.opname == "STORE_DEREF" and step.argval in outside):
            return False
        # From Python 3.12 on, a method is loaded by LOAD_ATTR with the lowest bit set.
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
    """True if the steps after `at`, which loads `value`, cannot keep anything in it."""
    if any(value is each for each in _MODULES):
        return at + 1 < len(steps) and steps[at + 1].opname in ("LOAD_ATTR", "LOAD_METHOD")
    if _is_immutable(value) or any(value is each for each in _CALLABLES):
        return True
    # Functions and classes have attributes, which can keep values: they may be called, and nothing else.
    return _is_called(steps, at) and _is_harmless_call(value, depth - 1)


def _is_called(steps: list[dis.Instruction], at: int) -> bool:
    """True if the loaded value is called, rather than stored, passed on, or asked for an attribute."""
    if sys.version_info < (3, 11):
        return _is_called_by_stack(steps[at + 1 :])
    if steps[at].opname == "LOAD_GLOBAL":
        return bool((steps[at].arg or 0) & 1)
    # PUSH_NULL marks a value that is called: it follows the load from Python 3.13 on, and precedes it in 3.11 and 3.12.
    beside = at + 1 if sys.version_info >= (3, 13) else at - 1
    return 0 <= beside < len(steps) and steps[beside].opname == "PUSH_NULL"


def _is_called_by_stack(following: list[dis.Instruction]) -> bool:
    """True if the following steps push arguments on top of the loaded value, and then call it.

    This is for Python 3.10, which does not mark values that are called. An unknown step counts as another use.
    """
    above = 0
    for step in following:
        count = step.arg or 0
        if step.opname in ("CALL_FUNCTION", "CALL_FUNCTION_KW"):
            taken = count + (step.opname == "CALL_FUNCTION_KW")
            if above == taken:
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
        if above < taken:
            return False
        above += given - taken
    return False


_TAKEN_AND_GIVEN: Final = {
    **dict.fromkeys(("LOAD_FAST", "LOAD_CONST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLOSURE"), (0, 1)),
    **dict.fromkeys(("LOAD_ATTR", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_NOT", "UNARY_INVERT"), (1, 1)),
    "LOAD_METHOD": (1, 2),
}
"""How many values a step of Python 3.10 pops from the stack, and how many it pushes."""
