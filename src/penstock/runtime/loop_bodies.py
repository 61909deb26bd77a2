"""Decides whether the body of a function may become part of a loop over elements, so that it need not be called.

This must not change what the function does. So a body must consist of plain statements, each `yield` must be a
statement of its own, and each `return` must be where the loop can continue with the next element. Every path to a read
of a local variable must set the variable first: in a loop it would still hold the value of the previous element.
Nothing may outlive the element: no lambdas, no inner functions, and no generator that is not consumed at once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

_STATEMENTS = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.Expr,
    ast.If,
    ast.For,
    ast.While,
    ast.Break,
    ast.Continue,
    ast.Pass,
    ast.Assert,
    ast.Raise,
    ast.Return,
)
_REFUSED = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_SCOPE_FUNCTIONS = {"locals", "globals", "vars", "dir", "eval", "exec", "super", "__class__"}
_FRAME_FUNCTIONS = {"_getframe", "currentframe", "exc_info"}
_FRAME_MODULES = {"inspect", "traceback", "logging", "warnings"}
_LOGGING_METHODS = {"debug", "info", "warning", "warn", "error", "exception", "critical"}
_CONSUMERS = {"sum", "min", "max", "any", "all", "sorted", "list", "tuple", "set", "dict", "frozenset"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class UnsuitableBodyError(Exception):
    """The body cannot be part of a loop: the function must be called."""


def sees_its_frame(node: ast.AST) -> bool:
    """True for a name or an attribute through which a function may see the frame in which it runs."""
    match node:
        case ast.Name(name):
            return name in _SCOPE_FUNCTIONS | _FRAME_FUNCTIONS | _FRAME_MODULES
        case ast.Attribute(attr=name):
            return name in _FRAME_FUNCTIONS
    return False


def logs(node: ast.AST) -> bool:
    """True for a call that writes a line of a log: such lines can name the file, the line and the function."""
    match node:
        case ast.Call(ast.Attribute(attr=name)) | ast.Call(ast.Name(name)):
            return name in _LOGGING_METHODS
    return False


def is_generator(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node))


def check_body(body: list[ast.stmt], local_names: set[str], generates: bool) -> None:
    """Raise UnsuitableBodyError unless the body may be part of a loop.

    :param local_names: The function's local variables without its parameters.
    :param generates: True for a generator function.
    """
    _Statements(local_names, generates).check(body, in_loop=False)
    _DefiniteAssignment(local_names).block(body, frozenset())


class _Statements:
    """Refuses bodies with statements or expressions that cannot be part of a loop."""

    def __init__(self, local_names: set[str], generates: bool) -> None:
        self._local_names = local_names
        self._generates = generates

    def check(self, body: list[ast.stmt], in_loop: bool) -> None:
        for statement in body:
            if not isinstance(statement, _STATEMENTS):
                raise UnsuitableBodyError
            match statement:
                case ast.Return(value) if in_loop or (self._generates and value is not None):
                    # A `return` becomes a `continue`, which in an inner loop would not lead to the next element.
                    raise UnsuitableBodyError
                case ast.Expr(ast.Yield(value) | ast.YieldFrom(value)):
                    self._check_expression(value)
                case ast.For(target, _, inner, orelse) if not orelse:
                    _check_target(target)
                    self._check_expression(statement.iter)
                    self.check(inner, in_loop=True)
                case ast.While(test, inner, orelse) if not orelse:
                    self._check_expression(test)
                    self.check(inner, in_loop=True)
                case ast.For() | ast.While():
                    raise UnsuitableBodyError
                case ast.If(test, inner, orelse):
                    self._check_expression(test)
                    self.check(inner, in_loop)
                    self.check(orelse, in_loop)
                case ast.AnnAssign(value=None):
                    raise UnsuitableBodyError
                case _:
                    for target in _targets(statement):
                        _check_target(target)
                    for child in ast.iter_child_nodes(statement):
                        self._check_expression(child)

    def _check_expression(self, expression: ast.AST | None) -> None:
        for node in ast.walk(expression) if expression is not None else ():
            if isinstance(node, _REFUSED):
                raise UnsuitableBodyError
            if sees_its_frame(node):
                raise UnsuitableBodyError
            if isinstance(node, ast.GeneratorExp) and not self._is_consumed(node, expression):
                raise UnsuitableBodyError
            if isinstance(node, _COMPREHENSIONS) and any(each.is_async for each in node.generators):
                raise UnsuitableBodyError

    def _is_consumed(self, generator: ast.GeneratorExp, expression: ast.AST | None) -> bool:
        """True if a built-in function consumes the generator before the statement ends."""
        return any(
            isinstance(node, ast.Call)
            and generator in node.args
            and isinstance(node.func, ast.Name)
            and node.func.id in _CONSUMERS - self._local_names
            for node in (ast.walk(expression) if expression is not None else ())
        )


def _targets(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets):
            return targets
        case ast.AugAssign(target) | ast.AnnAssign(target):
            return [target]
    return []


def _check_target(target: ast.expr) -> None:
    match target:
        case ast.Name() | ast.Subscript() | ast.Attribute():
            return
        case ast.Tuple(parts) | ast.List(parts):
            for part in parts:
                _check_target(part)
        case _:
            raise UnsuitableBodyError


class _DefiniteAssignment:
    """Follows all paths through a body, and refuses a body that may read a local variable before it is set.

    `known` is the names that are certainly set at a place; None if the place is never reached.
    """

    def __init__(self, local_names: set[str]) -> None:
        self._local_names = local_names

    def block(self, body: list[ast.stmt], known: frozenset[str] | None) -> frozenset[str] | None:
        for statement in body:
            if known is None:
                return None
            known = self._after(statement, known)
        return known

    def _after(self, statement: ast.stmt, known: frozenset[str]) -> frozenset[str] | None:
        match statement:
            case ast.If(test, body, orelse):
                self._read(test, known)
                paths = [path for path in (self.block(body, known), self.block(orelse, known)) if path is not None]
                return frozenset.intersection(*paths) if paths else None
            case ast.For(target, over, body, _):
                self._read(over, known)
                self.block(body, known | self._set_by(target, known))
                return known  # The body may not run at all.
            case ast.While(test, body, _):
                self._read(test, known)
                self.block(body, known)
                return known
            case ast.Return() | ast.Raise():
                self._read(statement, known)
                return None
            case ast.Break() | ast.Continue():
                return None
            case ast.AugAssign(target, _, value):
                self._read(value, known)
                if isinstance(target, ast.Name):
                    self._must_know(target.id, known)
                return known | self._set_by(target, known)
            case ast.Assign(targets, value):
                self._read(value, known)
                return known.union(*(self._set_by(target, known) for target in targets))
            case ast.AnnAssign(target, _, value):
                self._read(value, known)
                return known | self._set_by(target, known)
        self._read(statement, known)
        return known

    def _set_by(self, target: ast.expr, known: frozenset[str]) -> frozenset[str]:
        if isinstance(target, ast.Name):
            return frozenset({target.id})
        if isinstance(target, (ast.Tuple, ast.List)):
            return frozenset[str]().union(*(self._set_by(part, known) for part in target.elts))
        self._read(target, known)
        return frozenset()

    def _read(self, node: ast.AST | None, known: frozenset[str]) -> None:
        if node is None:
            return
        if isinstance(node, _COMPREHENSIONS):
            # Its first iterable belongs to the function, not to the comprehension.
            first = node.generators[0].iter
            self._read(first, known)
            inside = known | _names_set_in(node.generators)
            for child in _inside(node):
                self._read(child, inside)
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._must_know(node.id, known)
        for child in ast.iter_child_nodes(node):
            self._read(child, known)

    def _must_know(self, name: str, known: frozenset[str]) -> None:
        if name in self._local_names and name not in known:
            raise UnsuitableBodyError


def _inside(comprehension: ast.AST) -> Iterable[ast.AST]:
    """The parts of a comprehension, without its first iterable."""
    for child in ast.iter_child_nodes(comprehension):
        if isinstance(child, ast.comprehension):
            is_first = child is comprehension.generators[0]  # type: ignore[attr-defined]
            yield from (each for each in ast.iter_child_nodes(child) if not (is_first and each is child.iter))
        else:
            yield child


def _names_set_in(generators: Iterable[ast.comprehension]) -> frozenset[str]:
    targets = (node for each in generators for node in ast.walk(each.target))
    return frozenset(node.id for node in targets if isinstance(node, ast.Name))
