"""Finds out what keeps a function from being sent to other processes."""

from __future__ import annotations

import contextlib
import dis
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

_DEEPEST = 5


def culprit(thing: Any) -> str | None:
    """What cannot be pickled, as the user calls it: `variable 'lock' (a lock)`; None if it is `thing` itself."""
    found = None
    for _ in range(_DEEPEST):
        inner = next((each for each in _parts(thing) if not _is_picklable(each[1])), None)
        if inner is None:
            break
        name, thing = inner
        found = name or found
    return None if found is None else f"{found} (a {type(thing).__name__})"


def _is_picklable(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:  # Whatever an unpicklable object raises
        return False
    return True


def _parts(thing: Any) -> Iterator[tuple[str | None, Any]]:
    """What is pickled with it: a name for messages, None for a part that only leads to others, and the value."""
    if isinstance(thing, MethodType):
        yield None, thing.__self__
    elif isinstance(thing, FunctionType):
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # It has no value yet.
                yield f"variable '{name}'", cell.cell_contents
        for name in _global_names(thing.__code__):
            if name in thing.__globals__:
                yield f"variable '{name}'", thing.__globals__[name]
        for value in (*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()):
            yield "a default argument", value
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((None, each) for each in thing)
    elif isinstance(thing, dict):
        yield from ((None, each) for each in thing.values())
    else:
        is_ours = type(thing).__module__.partition(".")[0] == "penstock"
        for name, value in getattr(thing, "__dict__", {}).items():
            yield None if is_ours else f"attribute '{name}' of {type(thing).__name__}", value


def _global_names(code: CodeType) -> Iterator[str]:
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(each.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)
