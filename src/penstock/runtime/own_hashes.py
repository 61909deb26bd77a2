"""The hash of objects whose class has its own `__eq__` and `__hash__`, the same in every process.

Only the class knows what makes two of its objects equal. Its `__hash__` is equal for equal objects, but it is built on
Python's hashes of strings, which differ from process to process. So it is run with a `hash` that does not differ. This
is right if all that it does with hashes goes through that name, and if it is otherwise a function of the object alone.
Both are read from its code. What the code does not show is refused.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

_CALLS = frozenset(
    (
        *("abs", "all", "any", "bool", "bytes", "complex", "dict", "divmod", "enumerate", "filter", "float", "format"),
        *("frozenset", "getattr", "hasattr", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max"),
        *("min", "next", "ord", "pow", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple"),
        *("type", "vars", "zip", "NotImplemented"),
    )
)
_MODULES = frozenset(("json", "math", "operator", "datetime", "hashlib", "zlib", "struct", "string", "unicodedata"))
_NAMES_OF_CLASSES = frozenset(("__class__", "__dict__", "__name__", "__qualname__", "__module__"))
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type)
_WRITES = ("STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_SUBSCR", "DELETE_SUBSCR", "IMPORT_")
_DEEPEST = 4


class _NotShown(Exception):
    """What a class does that keeps its hash from being computed here."""


def own_hash(kind: Any, stable_hash: Callable[[Any], int]) -> Callable[[Any], int] | str:
    """The class's `__hash__`, with `stable_hash` for `hash`; or why that would not be the same in every process."""
    function = kind.__hash__
    if not isinstance(function, types.FunctionType):
        return "its __hash__ is not written in Python"
    try:
        _check(function, kind, is_hash=True, depth=0)
    except _NotShown as found:
        return f"its __hash__ {found}"
    scope = {**function.__globals__, "hash": stable_hash}
    return types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)


def _check(function: types.FunctionType, kind: Any, is_hash: bool, depth: int) -> None:
    """Raise unless the function is one of the object alone. `is_hash`: it may call `hash`."""
    if depth > _DEEPEST:
        raise _NotShown("calls too many functions")
    if function.__code__.co_filename.startswith("<attrs generated"):
        raise _NotShown("is generated, with a number that differs from process to process")
    for cell in function.__closure__ or ():
        if not isinstance(cell.cell_contents, _PLAIN):
            raise _NotShown(f"uses {cell.cell_contents!r} of the function around it")
    for code in _all_code(function.__code__):
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname.startswith(_WRITES):
                raise _NotShown(f"changes or imports something ({name})")
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                _check_global(name, function, kind, is_hash, depth)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
                _check_attribute(name, kind, depth)


def _all_code(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of the functions and comprehensions in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _all_code(each)


def _check_global(name: str, function: types.FunctionType, kind: Any, is_hash: bool, depth: int) -> None:
    scope = function.__globals__
    if name == "hash" and name in scope:
        raise _NotShown("uses a hash() of the program's own")
    if name not in scope:
        if name in _CALLS or (name == "hash" and is_hash) or not hasattr(builtins, name):
            return
        raise _NotShown(f"uses {name}()")
    value = scope[name]
    if isinstance(value, types.FunctionType):
        _check(value, kind, is_hash=False, depth=depth + 1)
    elif isinstance(value, types.ModuleType):
        if value.__name__ not in _MODULES:
            raise _NotShown(f"uses the module {name}")
    elif not isinstance(value, (*_PLAIN, tuple, frozenset)):
        raise _NotShown(f"uses the variable {name}")


def _check_attribute(name: str, kind: Any, depth: int) -> None:
    if "hash" in name.lower():
        raise _NotShown(f"uses {name}, which is a hash of this process")
    if name.startswith("__") and name.endswith("__") and name not in _NAMES_OF_CLASSES:
        raise _NotShown(f"uses {name}")
    found = inspect.getattr_static(kind, name, None)
    match found:
        case property():
            inner = found.fget
        case functools.cached_property():
            inner = found.func
        case staticmethod() | classmethod():
            inner = found.__func__
        case _:
            inner = found
    if isinstance(inner, types.FunctionType):
        _check(inner, kind, is_hash=False, depth=depth + 1)
