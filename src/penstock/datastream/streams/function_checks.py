"""Checks that a method gets a function of the right kind."""

from __future__ import annotations

from typing import Any

from penstock.datastream.functions import Function


def check_function(function: Any, kind: type[Function] | tuple[type[Function], ...], method: str) -> Any:
    """The function, if it is an object of the right kind or a plain callable; TypeError for anything else."""
    is_function_class = isinstance(function, type) and issubclass(function, Function)
    is_plain = callable(function) and not isinstance(function, Function) and not is_function_class
    if is_plain or isinstance(function, kind):
        return function
    kinds = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
    if is_function_class:
        raise TypeError(f"{method} needs an instance, got the class {function.__name__}; write {function.__name__}()")
    raise TypeError(f"{method} needs a function or a {kinds}, got {function!r} of type {type(function).__name__}")
