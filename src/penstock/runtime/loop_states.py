"""Finds the states of a process function on which its generated loop can work directly, and makes the statements."""

from __future__ import annotations

import ast
import datetime
import re
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from penstock.datastream.state import MapStateDescriptor
from penstock.runtime.loop_broadcast import asks_for_broadcast_state
from penstock.runtime.loop_syntax import OWN
from penstock.runtime.state.direct_views import DirectListState, DirectMapState, DirectValueState
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import StateTable

_INERT = (
    int, float, complex, bool, str, bytes, bytearray, tuple, list, dict, set, frozenset, range, type(None), deque,
    Counter, OrderedDict, defaultdict, Decimal, re.Pattern, datetime.date, datetime.datetime, datetime.timedelta,
)  # fmt: skip
"""Types whose methods cannot use the function's state. Attributes of other types might hold it."""
_READS: dict[type, dict[str, int]] = {
    DirectValueState: {"value": 0},
    DirectListState: {},
    DirectMapState: {"get": 1, "contains": 1},
}
"""Methods that the loop can replace by expressions, with the number of their arguments."""
WRITES: dict[type, dict[str, int]] = {
    DirectValueState: {"update": 1, "clear": 0},
    DirectListState: {"add": 1, "clear": 0},
    DirectMapState: {"put": 2, "clear": 0},
}
"""Methods that the loop can replace by statements, likewise."""


@dataclass(frozen=True)
class InlinedState:
    """A state whose entries the loop reads and writes in their dictionary."""

    kind: type
    table: StateTable
    number: int
    """Distinguishes the loop's names for its table from those for other tables."""

    @property
    def entries_name(self) -> str:
        return f"{OWN}entries{self.number}"

    @property
    def changes_name(self) -> str:
        return f"{OWN}changed{self.number}"

    def noting(self, was_there: str) -> str:
        """Code that notes that the entry is written, as `penstock.runtime.state.changes` describes it."""
        if not self.table.tracks_changes:
            return "pass"
        return f"if {OWN}key not in {self.changes_name}:\n    {self.changes_name}[{OWN}key] = {was_there}"

    def clearing(self) -> str:
        """Code that removes the entry, and notes that."""
        pop = f"{self.entries_name}.pop({OWN}key, {OWN}absent)"
        if not self.table.notes_removals:
            return pop
        return (
            f"if {pop} is not {OWN}absent:\n"
            f"    if {self.changes_name}.get({OWN}key, True):\n        {self.changes_name}[{OWN}key] = True\n"
            f"    else:\n        del {self.changes_name}[{OWN}key]"
        )


class StateUses:
    """How a body uses the attributes of its function."""

    def __init__(self, body: list[ast.stmt], self_name: str, ctx_name: str, function: Any) -> None:
        self._self = self_name
        self._ctx = ctx_name
        self._attributes: dict[str, Any] = function.__dict__
        self._kind = type(function)
        self.is_opaque = False
        """True if the body calls something that may use any state."""
        self.known: dict[str, bool] = {}
        """By the attribute's name: whether all uses of the state that it holds can be inlined."""
        statements = {id(each.value) for root in body for each in ast.walk(root) if isinstance(each, ast.Expr)}
        nodes = [node for root in body for node in ast.walk(root)]
        called: set[int] = set()
        for node in nodes:
            if isinstance(node, ast.Call):
                called |= self._note_call(node, is_statement=id(node) in statements)
        owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            name = self.attribute(node)
            if name is not None and id(node) not in called:
                self._note_other_use(name, node)
            if isinstance(node, ast.Name) and node.id == self_name and id(node) not in owners:
                self.is_opaque = True  # The function passes itself to other code.

    def attribute(self, node: ast.AST) -> str | None:
        """The name in `self.name`."""
        match node:
            case ast.Attribute(ast.Name(owner), name) if owner == self._self:
                return name
        return None

    def _note_call(self, call: ast.Call, is_statement: bool) -> set[int]:
        """Note what the call means for the state; the ids of the attribute nodes that this covers."""
        if self.attribute(call.func) is not None:
            self.is_opaque = True  # It calls another method of the function.
            return {id(call.func)}
        if not isinstance(call.func, ast.Attribute):
            return set()
        if asks_for_broadcast_state(call, self._ctx) and (asked := self.attribute(call.args[0])) is not None:
            return {id(call.args[0])} if isinstance(self._held(asked), MapStateDescriptor) else set()
        name = self.attribute(call.func.value)
        if name is None:
            return set()
        held = self._held(name)
        methods = {**_READS.get(type(held), {}), **(WRITES.get(type(held), {}) if is_statement else {})}
        if self._is_state(name):
            fits = methods.get(call.func.attr) == len(call.args) and not call.keywords
            starred = any(isinstance(argument, ast.Starred) for argument in call.args)
            self.known[name] = self.known.get(name, True) and fits and not starred
        elif not _is_inert(held):
            self.is_opaque = True
        return {id(call.func.value)}

    def _note_other_use(self, name: str, node: ast.AST) -> None:
        if self._is_state(name):
            self.known[name] = False
        elif not isinstance(getattr(node, "ctx", None), ast.Store) and not _is_inert(self._held(name)):
            self.is_opaque = True  # It may be passed to code that calls it.

    def _is_state(self, name: str) -> bool:
        """True if the function object itself holds a state by this name; a state of its class does not count."""
        return type(self._attributes.get(name)) in _READS

    def _held(self, name: str) -> Any:
        """The attribute's value now; what the class has by that name, or its `__getattr__`, if the object has none."""
        return self._attributes.get(name, getattr(self._kind, name, getattr(self._kind, "__getattr__", None)))


def _is_inert(held: Any, depth: int = 3) -> bool:
    """True if no method that can be called through this value of an attribute can use the function's state."""
    if type(held) not in _INERT:
        return False
    if isinstance(held, defaultdict) and held.default_factory not in (None, *_INERT):
        return False
    items = (*held, *held.values()) if isinstance(held, dict) else held
    is_container = not isinstance(held, (str, bytes, bytearray, range)) and hasattr(held, "__iter__")
    return not is_container or (depth > 0 and all(_is_inert(item, depth - 1) for item in items))


def inlined_states(uses: StateUses, attributes: dict[str, Any], backend: KeyedStateBackend) -> dict[str, InlinedState]:
    """The states that the loop of a body can work on directly, by the names of their attributes."""
    if uses.is_opaque:
        return {}
    tables = {name: attributes[name].table_in_loops(backend) for name in uses.known}
    # The methods of a state do not see what the loop does to its table. So all states of a table are inlined, or none.
    called = {id(attributes[name].table) for name, fits in uses.known.items() if not fits or tables[name] is None}
    numbers: dict[int, int] = {}
    inlined = {}
    for name, table in sorted(tables.items()):
        if table is not None and id(table) not in called:
            number = numbers.setdefault(id(table), len(numbers))
            inlined[name] = InlinedState(type(attributes[name]), table, number)
    return inlined
