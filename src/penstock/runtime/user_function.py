"""A user's function as the runtime calls it: a function object with a life, or a plain callable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.functions import Function, RuntimeContext, open_function


class UserFunction:
    """`call` is the bound method of a function object, or the callable itself."""

    def __init__(self, function: Any, method: str) -> None:
        self.function = function
        self.call: Callable[..., Any] = getattr(function, method) if isinstance(function, Function) else function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.function, Function):
            open_function(self.function, runtime_context)

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()


def results_of(result: Any) -> Iterable[Any]:
    """What a flat_map or process function gave: an iterable to walk, or None for nothing."""
    return () if result is None else result
