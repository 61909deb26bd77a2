"""Replaces `ctx.get_broadcast_state(...)` in the body of a process function by the state or its dictionary."""

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
    """The broadcast states that a body asks its context for, with descriptors that are attributes or globals.

    The attribute or global may hold another descriptor when the loop runs, so the loop checks that each time.
    """

    def __init__(self, parameters: tuple[str, ...], function: Any, method: FunctionType, context: Any) -> None:
        self._self, _, self._ctx = parameters
        self._attributes: dict[str, Any] = function.__dict__
        self._globals = method.__globals__
        self._local_names = {*method.__code__.co_varnames, *method.__code__.co_cellvars, *method.__code__.co_freevars}
        self._state_of = getattr(context, "get_broadcast_state", None)
        self.names: dict[str, Any] = {"holder": function, "state_of": self._state_of}
        """The loop's names for states, their dictionaries and their descriptors, with these objects."""
        self._numbers: dict[str, int] = {}
        """The number of each state, by the expression for its descriptor."""

    def state(self, node: ast.AST) -> str | None:
        """Code for the state that an expression asks for; None if the expression must stay as it is."""
        found = self._found(node)
        return None if found is None else self._unless_changed("broadcast", *found)

    def dictionary(self, node: ast.AST) -> str | None:
        """The same for the state's dictionary, if only `get` and `in` are used of it."""
        found = self._found(node)
        return None if found is None else self._unless_changed("rules", *found)

    def _unless_changed(self, what: str, text: str, number: int) -> str:
        is_same = f"{text} is {OWN}descriptor{number}"
        return f"({OWN}{what}{number} if {is_same} else {OWN}state_of({text}))"

    def _found(self, node: ast.AST) -> tuple[str, int] | None:
        """The expression for the descriptor in the loop, and the number of its state."""
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
            except StateAccessError:  # The first element raises it again, and is reported with it.
                return None
            number = self._numbers[text] = len(self._numbers)
            self.names |= {
                f"descriptor{number}": descriptor,
                f"broadcast{number}": state,
                f"rules{number}": state.dictionary,
            }
        return text, self._numbers[text]
