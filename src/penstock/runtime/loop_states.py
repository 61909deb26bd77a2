"""Finds the states of a process function on which its generated loop can work directly, and makes the statements."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from penstock.runtime.loop_syntax import OWN
from penstock.runtime.state.direct_views import DirectListState, DirectMapState, DirectValueState
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import StateTable

READS: dict[type, dict[str, int]] = {
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


def inlined_states(
    body: list[ast.stmt], self_name: str, function: Any, backend: KeyedStateBackend
) -> dict[str, InlinedState]:
    """The states that the loop of a body can work on directly, by the names of the attributes that hold them now."""
    attributes: dict[str, Any] = function.__dict__
    numbers: dict[int, int] = {}
    inlined = {}
    for name in sorted(_attributes_in(body, self_name)):
        held: Any = attributes.get(name)
        table = held.table_in_loops(backend) if type(held) in READS else None
        if table is not None:
            number = numbers.setdefault(id(table), len(numbers))
            inlined[name] = InlinedState(type(held), table, number)
    return inlined


def _attributes_in(body: list[ast.stmt], self_name: str) -> set[str]:
    """The names of the function's attributes of which the body calls a method."""
    names = set()
    for node in (node for root in body for node in ast.walk(root)):
        match node:
            case ast.Call(ast.Attribute(ast.Attribute(ast.Name(owner), name))) if owner == self_name:
                names.add(name)
    return names
