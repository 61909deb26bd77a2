"""A user's function as the runtime calls it: a function object that is opened and closed, or a plain callable."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.functions import Function, RichFunction, open_function
from penstock.runtime.function_checkpoints import FunctionCheckpoints, takes_part_in_checkpoints
from penstock.runtime.runtime_context import StreamingRuntimeContext


class UserFunction:
    """`call` is the bound method of a function object, or the callable itself. The subtask has its own (`own_copy`)."""

    def __init__(self, function: Any, method: str) -> None:
        self.function = function
        self.call = self.method(method)
        self._checkpoints: FunctionCheckpoints | None = None

    def method(self, name: str) -> Callable[..., Any]:
        function = self.function
        call: Callable[..., Any] = getattr(function, name) if isinstance(function, Function) else function
        return call

    def open(self, runtime_context: StreamingRuntimeContext) -> None:
        if isinstance(self.function, RichFunction):
            self.function.set_runtime_context(runtime_context)
        if takes_part_in_checkpoints(self.function):
            self._checkpoints = FunctionCheckpoints(self.function, runtime_context)
            self._checkpoints.start()
        if isinstance(self.function, Function):
            open_function(self.function, runtime_context)

    def close(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.stop()
        if isinstance(self.function, Function):
            self.function.close()


def results_of(result: Any) -> Iterable[Any]:
    """The results of a flat_map function, which may return None for no results."""
    return () if result is None else result
