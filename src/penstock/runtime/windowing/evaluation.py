"""Calls the user's window function, with the arguments that its kind takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.datastream.functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from penstock.datastream.window import Window
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.windowing.contexts import ProcessContext

Evaluate = Callable[[Any, Window, Iterable[Any]], Iterable[Any] | None]
"""Key, window, elements -> results."""


class WindowEvaluation:
    """Calls a window function of any kind. `evaluate` returns its results; without a function, the elements."""

    def __init__(self, description: WindowDescription) -> None:
        self.function = description.window_function
        self.has_clear = _has_clear(self.function)
        """False if the function does nothing when a window is dropped."""
        self._is_all = description.is_all

    def open(self, context: ProcessContext) -> None:
        self._context = context
        self.evaluate: Evaluate = self._evaluation()

    def clear(self, window: Window) -> None:
        """Tell the function that the window has been dropped."""
        if self.has_clear:
            self.function.clear(self._context.at(window))

    def _evaluation(self) -> Evaluate:
        function, at = self.function, self._context.at
        if function is None:
            return lambda key, window, elements: elements
        if isinstance(function, ProcessWindowFunction):
            return lambda key, window, elements: function.process(key, at(window), elements)
        if isinstance(function, ProcessAllWindowFunction):
            return lambda key, window, elements: function.process(at(window), elements)
        is_object = isinstance(function, WindowFunction | AllWindowFunction)
        apply: Callable[..., Any] = function.apply if is_object else function
        if self._is_all:
            return lambda key, window, elements: apply(window, elements)
        return lambda key, window, elements: apply(key, window, elements)


def _has_clear(function: Any) -> bool:
    """True for a function with a `clear` of its own: that of the base classes does nothing."""
    if not isinstance(function, ProcessWindowFunction | ProcessAllWindowFunction):
        return False
    does_nothing = ProcessWindowFunction.clear, ProcessAllWindowFunction.clear
    return "clear" in vars(function) or type(function).clear not in does_nothing
