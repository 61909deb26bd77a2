"""Adds preparations to a generated loop, each right in front of the statement that needs it.

So elements for which this statement does not run do not pay for the preparation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from penstock.runtime.loop_syntax import OWN, names_in, parsed


class Placement:
    """Walks through the statements of a loop's body and adds the preparations that they need."""

    def put_into(self, statements: list[ast.stmt], done: frozenset[str] = frozenset()) -> list[ast.stmt]:
        """`done`: preparations that are already made on every path that leads here."""
        placed: list[ast.stmt] = []
        for statement in statements:
            missing = self.needs(names_of(statement)) - done
            for line in self.lines(missing):
                placed += parsed(line, statement)
            done |= missing
            for block in ("body", "orelse"):
                if inner := getattr(statement, block, None):
                    setattr(statement, block, self.put_into(inner, done))
            placed.append(statement)
        return placed

    def needs(self, names: set[str]) -> frozenset[str]:
        """The preparations for a statement that contains these names."""
        raise NotImplementedError

    def lines(self, needs: frozenset[str]) -> list[str]:
        """The statements that make these preparations."""
        raise NotImplementedError


def names_of(statement: ast.stmt) -> set[str]:
    """The names in a statement itself, without those in statements inside of it."""
    inner = {id(each) for block in ("body", "orelse") for each in getattr(statement, block, ())}
    return names_in([each for each in ast.iter_child_nodes(statement) if id(each) not in inner])


class LateColumns(Placement):
    """Reads single items of columns in front of statements that seldom run. Other columns are lists in the loop."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = frozenset(columns)

    def needs(self, names: set[str]) -> frozenset[str]:
        found = self._columns.intersection(name.removeprefix(OWN) for name in names)
        return found | {"at"} if found else found

    def lines(self, needs: frozenset[str]) -> list[str]:
        place = [f"{OWN}at = {OWN}position()"] if "at" in needs else []
        return place + [f"{OWN}{name} = {OWN}column_{name}.item({OWN}at)" for name in sorted(needs - {"at"})]


def names_for_every_element(statements: list[ast.stmt]) -> set[str]:
    """The names outside of the branches of `if`: these count as used for every element, like names in conditions."""
    names: set[str] = set()
    for statement in statements:
        names |= names_of(statement) if isinstance(statement, ast.If) else names_in([statement])
        match statement:
            case ast.If(orelse=[ast.If()] as other):
                names |= names_for_every_element(other)
    return names


def is_wanted_whole(body: list[ast.stmt], value_name: str) -> bool:
    """True if the tuple itself is needed for every element, or more than once for one element."""
    parents = {id(child): node for root in body for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    for node in (node for root in body for node in ast.walk(root)):
        if not isinstance(node, ast.Name) or node.id != value_name:
            continue
        match parents.get(id(node)):
            case ast.Subscript(value=owner, slice=ast.Constant(), ctx=ast.Load()) if owner is node:
                continue
            case ast.Assign([ast.Tuple()]):
                continue  # It is unpacked at once.
        around = list(_ancestors(node, parents))
        if any(isinstance(each, (*_LOOPS, *_COMPREHENSIONS)) for each in around):
            return True
        if not any(isinstance(each, ast.If) for each in around):
            return True
    return False


_LOOPS = (ast.For, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _ancestors(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.AST]:
    while (above := parents.get(id(node))) is not None:
        yield above
        node = above


def only_sets_timers(body: list[ast.stmt], ctx_name: str) -> bool:
    """True if the body itself only sets timers. Then it is faster to gather them, and to set them after the loop."""
    parents = {id(child): node for root in body for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    for node in (node for root in body for node in ast.walk(root)):
        if isinstance(node, ast.Name) and node.id == ctx_name:
            owner = parents.get(id(node))
            if not isinstance(owner, ast.Attribute):
                return False
            if owner.attr == "timer_service":
                match parents.get(id(parents.get(id(owner)))):
                    case ast.Attribute(_, "register_event_time_timer" | "current_watermark"):
                        continue
                return False
    return True
