"""Makes the body of a generator function part of a generated loop, with the following operators in place of its yield.

    def split(line):                           for v0 in values:
        for word in line.split():                  for f0_word in v0.split():
            yield word, 1                              append((f0_word, 1))

The generator and its receiver still take turns in the same order. `loop_bodies` defines which bodies qualify; a
generator must also have exactly one yield and no return.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from penstock.runtime.inlining import can_stand_in_loop, cell_name, source_of
from penstock.runtime.loop_bodies import UnsuitableBodyError, check_body, is_generator, logs

_LOOPS = (ast.For, ast.While)


@dataclass(frozen=True)
class GeneratorBody:
    """A generator function whose body can be part of a loop."""

    function: FunctionType
    statements: tuple[ast.stmt, ...]
    loops: int
    """How deeply its loops are nested."""
    blocks: int
    """How deeply its loops and conditions are nested."""
    uses_globals: bool

    def renamed(self, arguments: tuple[str, ...], name: str) -> list[ast.stmt]:
        """The statements with `arguments` in place of the parameters. `name` makes the names of variables unique."""
        code = self.function.__code__
        parameters = dict(zip(code.co_varnames, arguments, strict=False))
        stored = _stored_in(self.statements)
        names = {each: f"{name}_{each}" for each in stored}
        names |= {each: argument for each, argument in parameters.items() if each not in stored}
        renaming = _Renaming(names, {each: cell_name(name, each) for each in code.co_freevars})
        # A parameter to which the body assigns becomes a variable, so that the argument keeps its value.
        assignments = [f"{names[each]} = {argument}" for each, argument in parameters.items() if each in stored]
        body = [renaming.visit(copy.deepcopy(each)) for each in self.statements]
        return [*ast.parse("\n".join(assignments)).body, *body]


def generator_body(function: Any, parameters: int) -> GeneratorBody | None:
    """The body of `function`, which takes `parameters` arguments; None if it cannot be part of a loop."""
    node = source_of(function, parameters)
    if not isinstance(node, ast.FunctionDef) or not is_generator(node):
        return None
    statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
    code = function.__code__
    try:
        # A variable that a comprehension uses, too, is a cell variable.
        local_names = {*code.co_varnames, *code.co_cellvars}.difference(code.co_varnames[: code.co_argcount])
        check_body(statements, local_names, generates=True)
    except UnsuitableBodyError:
        return None
    nodes = [each for statement in statements for each in ast.walk(statement)]
    stored = _stored_in(statements)
    outer = {each.id for each in nodes if isinstance(each, ast.Name)} - {*code.co_varnames, *code.co_freevars, *stored}
    # A name that only a comprehension assigns may be a global, or an enclosing function's, elsewhere in the body.
    is_mixed = bool((stored - set(code.co_varnames)) & set(code.co_names) or stored & set(code.co_freevars))
    yields = sum(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in nodes)
    if yields != 1 or is_mixed or any(isinstance(each, ast.Return) or logs(each) for each in nodes):
        return None
    if not all(map(can_stand_in_loop, outer)) or not all(map(_is_one_line, statements)):
        return None
    loops, blocks = _depth(statements, _LOOPS), _depth(statements, (*_LOOPS, ast.If))
    return GeneratorBody(function, tuple(statements), loops, blocks, bool(outer))


def _stored_in(statements: list[ast.stmt] | tuple[ast.stmt, ...]) -> set[str]:
    nodes = (node for statement in statements for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _depth(statements: list[ast.stmt], kinds: tuple[type[ast.stmt], ...]) -> int:
    depths = [_depth(inner, kinds) + isinstance(each, kinds) for each in statements for inner in _bodies_of(each)]
    return max(depths, default=0)


def _bodies_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    return [getattr(statement, part) for part in ("body", "orelse") if getattr(statement, part, None)]


def _is_one_line(statement: ast.stmt) -> bool:
    """True if each simple statement in it, and the head of each compound one, can be written on one line."""
    inner = [each for body in _bodies_of(statement) for each in body]
    alone = copy.copy(statement)
    for part in ("body", "orelse"):
        if getattr(statement, part, None):
            setattr(alone, part, [ast.Pass()] if part == "body" else [])
    try:
        text = ast.unparse(alone)
        is_same = ast.dump(ast.parse(text).body[0]) == ast.dump(alone)
    except (ValueError, SyntaxError):  # Some f-strings cannot be written as text.
        return False
    return is_same and text.count("\n") == bool(inner) and all(map(_is_one_line, inner))


class _Renaming(ast.NodeTransformer):
    """Renames variables; those of enclosing functions are read from their cells."""

    def __init__(self, names: dict[str, str], cells: dict[str, str]) -> None:
        self._names = names
        self._cells = cells

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._cells:
            return ast.Attribute(ast.Name(self._cells[node.id], ast.Load()), "cell_contents", node.ctx)
        return ast.Name(self._names.get(node.id, node.id), node.ctx)
