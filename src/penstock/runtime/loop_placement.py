"""Puts what a statement of a generated loop needs right in front of it: what is seldom needed costs nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from penstock.runtime.loop_syntax import OWN, made, names_in


class Placement:
    """Walks through the statements of a loop's body, and adds those that get what they need."""

    def put_into(self, statements: list[ast.stmt], known: frozenset[str] = frozenset()) -> list[ast.stmt]:
        """`known`: what is there already on every way that leads here."""
        placed: list[ast.stmt] = []
        for statement in statements:
            missing = self.needs(names_of(statement)) - known
            for line in self.lines(missing):
                placed += made(line, statement)
            known |= missing
            for block in ("body", "orelse"):
                if inner := getattr(statement, block, None):
                    setattr(statement, block, self.put_into(inner, known))
            placed.append(statement)
        return placed

    def needs(self, names: set[str]) -> frozenset[str]:
        """What a statement needs that has these names in it."""
        raise NotImplementedError

    def lines(self, needs: frozenset[str]) -> list[str]:
        """The statements that get it."""
        raise NotImplementedError


def names_of(statement: ast.stmt) -> set[str]:
    """The names in a statement itself, without those inside of it."""
    inner = {id(each) for block in ("body", "orelse") for each in getattr(statement, block, ())}
    return names_in([each for each in ast.iter_child_nodes(statement) if id(each) not in inner])


class Marks(Placement):
    """The current key and the timestamp of the context, in front of what may ask for them."""

    def __init__(self, is_opaque: bool, has_called_states: bool, with_timestamps: bool) -> None:
        self._needs_of_self: frozenset[str] = frozenset()
        if is_opaque:
            self._needs_of_self = frozenset({"key", "timestamp"})
        elif has_called_states:
            self._needs_of_self = frozenset({"key"})
        timestamp = f"{OWN}timestamp" if with_timestamps else "None"
        self._lines = {
            "key": f"{OWN}backend.current_key = {OWN}key",
            "timestamp": f"{OWN}context.element_timestamp = {timestamp}",
        }

    def needs(self, names: set[str]) -> frozenset[str]:
        of_self = self._needs_of_self if f"{OWN}self" in names else frozenset()
        return of_self | {"key", "timestamp"} if f"{OWN}context" in names else of_self

    def lines(self, needs: frozenset[str]) -> list[str]:
        return [self._lines[need] for need in sorted(needs)]


class LateColumns(Placement):
    """Single items of columns, in front of what is seldom done: the others are turned into lists for the loop."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._columns = frozenset(columns)

    def needs(self, names: set[str]) -> frozenset[str]:
        found = self._columns.intersection(name.removeprefix(OWN) for name in names)
        return found | {"at"} if found else found

    def lines(self, needs: frozenset[str]) -> list[str]:
        place = [f"{OWN}at = {OWN}position()"] if "at" in needs else []
        return place + [f"{OWN}{name} = {OWN}column_{name}.item({OWN}at)" for name in sorted(needs - {"at"})]


def names_for_every_element(statements: list[ast.stmt]) -> set[str]:
    """The names that are used whichever way is taken: in the conditions of an `if` and its `elif`s, and outside."""
    names: set[str] = set()
    for statement in statements:
        names |= names_of(statement) if isinstance(statement, ast.If) else names_in([statement])
        match statement:
            case ast.If(orelse=[ast.If()] as other):
                names |= names_for_every_element(other)
    return names


def is_wanted_whole(body: list[ast.stmt], value_name: str) -> bool:
    """True if an element's tuple is needed for every element, or more than once for one."""
    parents = {id(child): node for root in body for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
    for node in (node for root in body for node in ast.walk(root)):
        if not isinstance(node, ast.Name) or node.id != value_name:
            continue
        match parents.get(id(node)):
            case ast.Subscript(value=owner, slice=ast.Constant(), ctx=ast.Load()) if owner is node:
                continue
            case ast.Assign([ast.Tuple()]):
                continue  # It is taken apart at once.
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
    """True if the body cannot delete a timer or look at those that there are: then they can be set later."""
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
