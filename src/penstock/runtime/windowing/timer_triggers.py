"""Recognises triggers whose `on_element` does nothing but set timers at times that depend on the window.

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

Setting a timer again changes nothing. So if several elements of a pane come together, it is enough to ask the trigger
about one of them. As for inlined functions, the source must be available.
"""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from penstock.datastream.window import Trigger, TriggerResult
from penstock.runtime.inlining import source_of

_SETTERS = ("register_event_time_timer", "register_processing_time_timer")
_PARAMETERS = 5


def only_sets_timers(trigger: Trigger[Any, Any]) -> bool:
    """True if `on_element` certainly only sets timers, and the same ones for all elements of a pane."""
    method = type(trigger).on_element
    node = source_of(method, _PARAMETERS)
    if not isinstance(node, ast.FunctionDef) or "on_element" in vars(trigger):
        return False
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    on_element = _Method(trigger, method, [each.arg for each in node.args.args])
    return bool(body) and on_element.continues(body[-1]) and all(map(on_element.sets_timer, body[:-1]))


class _Method:
    """The `on_element` of a trigger: judges its statements, and knows what the names in them mean."""

    def __init__(self, trigger: Trigger[Any, Any], method: Any, parameters: list[str]) -> None:
        self._trigger = trigger
        self._globals: dict[str, Any] = method.__globals__ if isinstance(method, FunctionType) else {}
        self._parameters = parameters
        self._self, _, _, self._window, self._context = parameters

    def continues(self, statement: ast.stmt) -> bool:
        """True for `return TriggerResult.CONTINUE`."""
        match statement:
            case ast.Return(ast.Attribute(ast.Name(name), "CONTINUE")):
                return self._global(name) is TriggerResult
        return False

    def sets_timer(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(owner), method), [time], [])):
                return owner == self._context and method in _SETTERS and self._is_of_window(time)
        return False

    def _is_of_window(self, time: ast.expr) -> bool:
        """True for a time that depends on nothing but the window and constants."""
        match time:
            case ast.Constant(value):
                return type(value) is int
            case ast.Name(name):
                return type(self._global(name)) is int
            case ast.Attribute(ast.Name(owner), name) if owner == self._self:
                return not hasattr(type(self._trigger), name) and type(vars(self._trigger).get(name)) is int
            case ast.Attribute(ast.Name(owner), name):
                return owner == self._window and name in ("start", "end")
            case ast.Call(ast.Attribute(ast.Name(owner), "max_timestamp"), [], []):
                return owner == self._window
            case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                return self._is_of_window(left) and self._is_of_window(right)
        return False

    def _global(self, name: str) -> Any:
        return None if name in self._parameters else self._globals.get(name)
