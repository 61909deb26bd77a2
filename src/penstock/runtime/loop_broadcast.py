"""Looks broadcast state up in its dictionary, where the body of a process function asks its context for it."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any, TypeGuard

from penstock.common.exceptions import StateAccessError
from penstock.datastream.state import MapStateDescriptor
from penstock.runtime.loop_syntax import OWN


def asks_for_broadcast_state(node: ast.AST, ctx_name: str) -> TypeGuard[ast.Call]:
    """True for `ctx.get_broadcast_state(...)`."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(owner), "get_broadcast_state"), [argument], []):
            return owner == ctx_name and not isinstance(argument, ast.Starred)
    return False


class BroadcastLookups:
    """The broadcast states that a body asks its context for, by descriptors that are attributes or globals.

    A descriptor may be another one when the loop gets there: that is asked each time.
    """

    def __init__(self, parameters: tuple[str, ...], function: Any, method: FunctionType, context: Any) -> None:
        self._self, _, self._ctx = parameters
        self._attributes: dict[str, Any] = function.__dict__
        self._globals = method.__globals__
        self._local_names = {*method.__code__.co_varnames, *method.__code__.co_cellvars, *method.__code__.co_freevars}
        self._state_of = getattr(context, "get_broadcast_state", None)
        self.names: dict[str, Any] = {"holder": function, "state_of": self._state_of}
        """What the loop knows states, their dictionaries and their descriptors by."""
        self._numbers: dict[str, int] = {}
        """By the expression for the descriptor."""

    def state(self, node: ast.AST) -> str | None:
        """The state that an expression asks for; None if it must ask for it."""
        found = self._found(node)
        return None if found is None else self._unless_changed("broadcast", *found)

    def dictionary(self, node: ast.AST) -> str | None:
        """Its dictionary, for `get` and `in`."""
        found = self._found(node)
        return None if found is None else self._unless_changed("rules", *found)

    def _unless_changed(self, what: str, text: str, number: int) -> str:
        is_same = f"{text} is {OWN}descriptor{number}"
        return f"({OWN}{what}{number} if {is_same} else {OWN}state_of({text}))"

    def _found(self, node: ast.AST) -> tuple[str, int] | None:
        """The expression for the descriptor in the loop, and its number."""
        if self._state_of is None or not asks_for_broadcast_state(node, self._ctx):
            return None
        match node.args[0]:
            case ast.Attribute(ast.Name(owner), name) if owner == self._self:
                text, descriptor = f"{OWN}holder.{name}", self._attributes.get(name)
            case ast.Name(name) if name not in self._local_names:
                text, descriptor = name, self._globals.get(name)
            case _:
                return None
        if text not in self._numbers:
            if not isinstance(descriptor, MapStateDescriptor):
                return None
            try:
                state = self._state_of(descriptor)
            except StateAccessError:  # It happens again for the first element, and is reported there.
                return None
            number = self._numbers[text] = len(self._numbers)
            self.names |= {
                f"descriptor{number}": descriptor,
                f"broadcast{number}": state,
                f"rules{number}": state.dictionary,
            }
        return text, self._numbers[text]
