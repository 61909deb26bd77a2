"""Which functions may be called ahead of time, with placeholders for values, without any visible effect."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from penstock.common.types import Row
from penstock.datastream.lowering.expressions import NotLowerable, call
from penstock.datastream.lowering.values import Value, expression_of

_SCALARS = (type(None), bool, int, float, str)

# All that these do is compute, from locals, constants and the argument. An instruction that is not listed (in this or
# a later Python) keeps a function out: stores into objects, loops, imports, nested functions, exceptions handled.
# fmt: off
_PURE = frozenset([
    "NOP", "RESUME", "CACHE", "PRECALL", "PUSH_NULL", "COPY_FREE_VARS", "EXTENDED_ARG", "NOT_TAKEN", "LOAD_FAST",
    "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST",
    "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "LOAD_CONST", "LOAD_SMALL_INT", "LOAD_DEREF", "LOAD_GLOBAL",
    "LOAD_ATTR", "LOAD_METHOD", "CALL", "CALL_FUNCTION", "CALL_METHOD", "CALL_FUNCTION_KW", "CALL_KW", "KW_NAMES",
    "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "BUILD_SLICE", "BINARY_ADD", "BINARY_SUBTRACT", "BINARY_MULTIPLY",
    "BINARY_TRUE_DIVIDE", "BINARY_FLOOR_DIVIDE", "BINARY_MODULO", "BINARY_AND", "BINARY_OR", "UNARY_NEGATIVE",
    "UNARY_POSITIVE", "UNARY_NOT", "TO_BOOL", "COMPARE_OP", "CONTAINS_OP", "IS_OP", "BUILD_TUPLE", "BUILD_LIST",
    "UNPACK_SEQUENCE", "POP_TOP", "COPY", "SWAP", "DUP_TOP", "ROT_TWO", "ROT_THREE", "RETURN_VALUE", "RETURN_CONST",
    "JUMP_FORWARD", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE",
    "POP_JUMP_FORWARD_IF_TRUE", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP",
])
# fmt: on
_NONE_TESTS = frozenset(
    ["POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE"]
)
_ROW_METHODS = frozenset(name for name in vars(Row) if not name.startswith("_"))


@dataclass(frozen=True)
class PureFunction:
    """A function that may be traced."""

    call: Callable[..., Any]
    tests_none: bool


def pure_function(function: Any, builtins: Mapping[str, Any] | None = None) -> PureFunction:
    """The function with these built-ins; raises NotLowerable if calling it could have an effect.

    Unless given, they are a few that take `Value`s.
    """
    if type(function) is not FunctionType:
        raise NotLowerable("not a plain function")
    code = function.__code__
    _check_signature(code)
    for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *_cells(function)):
        _check_constant(value)
    tests_none = _check_instructions(code)
    seen = _globals_of(function, _BUILTINS if builtins is None else builtins)
    copied = FunctionType(code, seen, code.co_name, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return PureFunction(copied, tests_none)


def _check_signature(code: CodeType) -> None:
    special = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    if code.co_flags & (special | inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_cellvars:
        raise NotLowerable("a generator, a coroutine or a function with *arguments")
    if getattr(code, "co_exceptiontable", b""):
        raise NotLowerable("a function that handles exceptions")


def _cells(function: FunctionType) -> list[Any]:
    try:
        return [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:
        raise NotLowerable("a variable of an outer function that has no value yet") from None


def _check_constant(value: Any) -> None:
    """Raise unless a value from outside the function is, and stays, the same in every process."""
    if isinstance(value, tuple) and type(value) is tuple:
        for each in value:
            _check_constant(each)
    elif type(value) not in _SCALARS:
        raise NotLowerable(f"a {type(value).__name__} from outside the function")


def _check_instructions(code: CodeType) -> bool:
    """True if there are tests for None."""
    tests_none, before = False, None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name not in _PURE and name not in _NONE_TESTS:
            raise NotLowerable(f"the instruction {name}")
        if "JUMP" in name and isinstance(instruction.argval, int) and instruction.argval <= instruction.offset:
            raise NotLowerable("a loop")
        if name == "IS_OP" and (before is None or not _is_none(before) or instruction.is_jump_target):
            raise NotLowerable("`is` with other than None")
        tests_none = tests_none or name == "IS_OP" or name in _NONE_TESTS
        if name not in ("CACHE", "EXTENDED_ARG"):
            before = instruction
    for name in code.co_names:
        if name.startswith("_") or name in _ROW_METHODS:
            raise NotLowerable(f"the name {name}")
    return tests_none


def _is_none(instruction: dis.Instruction) -> bool:
    return instruction.opname == "LOAD_CONST" and instruction.argval is None


# --- built-ins -------------------------------------------------------------------------------------------------------


def _length(value: Any) -> Any:
    if isinstance(value, Value):
        return value._with(call("string_len", value._of_kind("string")._expression))
    return len(value)


def _text(value: Any) -> Any:
    if not isinstance(value, Value):
        return str(value)
    kind = expression_of(value).kind
    return value if kind == "string" else value._with(call("int_text", value._of_kind("int")._expression))


_BUILTINS: dict[str, Any] = {"len": _length, "str": _text, "abs": abs, "bool": bool}


def _globals_of(function: FunctionType, builtins: Mapping[str, Any]) -> dict[str, Any]:
    """The globals that a traced function sees: a few built-ins, if they are still Python's own, and `Row`."""
    names = {each.argval for each in dis.get_instructions(function.__code__) if each.opname == "LOAD_GLOBAL"}
    seen: dict[str, Any] = {"__builtins__": {}}
    for name in names:
        if name in function.__globals__:
            if function.__globals__[name] is not Row:
                raise NotLowerable(f"the global {name}")
            seen[name] = Row
        elif name in builtins:
            seen[name] = builtins[name]
        else:
            raise NotLowerable(f"the built-in {name}")
    return seen
