"""Takes small functions apart, so that a generated loop can do their work without calling them.

A call often costs more than the work of such a function. A function qualifies if it is a lambda, a `def` that only
returns an expression, or a generator that only yields expressions, and if its source is available and compiles to
exactly the code of the function. Names keep their meaning: for each record, globals are looked up in the function's own
module, and variables of an enclosing function in their cells.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import itertools
import linecache
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from penstock.runtime.loop_bodies import logs, sees_its_frame

_PLAIN = (
    ast.Name,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)
_EXPRESSIONS = (
    *_PLAIN,
    ast.Attribute,
    ast.Call,
    ast.keyword,
    ast.Starred,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.JoinedStr,
    ast.FormattedValue,
)
# Python 3.11 raises SystemError if two threads convert syntax trees at the same time.
ONE_AT_A_TIME = threading.RLock()
"""Held while text is parsed into a syntax tree, or a tree is compiled."""
_NAMES_IN_LOOPS = re.compile(
    r"(values|timestamps|timestamp|out|append|out_timestamps|append_timestamp|zip|value|key|(select|reduce)(_\w+)?"
    r"|partials|get|held|records_made|open_slot|add_one|convert|copied|immutable_types|type_of|tuple_type|item"
    r"|times|start|end|gap|parts|part|ended|panes|keys|opened|create"
    r"|[vrf]\d+(_\w+)?|cell_\w+|self_\w+|\w+_of_python)$"
)
"""The names of local variables in generated loops, which would hide a global of the same name."""


@dataclass(frozen=True)
class SmallFunction:
    """A function that can be inlined."""

    function: FunctionType
    results: tuple[ast.expr, ...]
    """The expression that it returns, or those that it yields, in order."""
    is_generator: bool
    uses_globals: bool

    def only_picks(self, parameter: int, items: int) -> bool:
        """True if it uses a parameter, a tuple with `items` items, only to pick items by constant indices."""
        name = self.function.__code__.co_varnames[parameter]
        nodes = [node for result in self.results for node in ast.walk(result)]
        picks = sum(_picked(node, name, items) is not None for node in nodes)
        return picks == sum(isinstance(node, ast.Name) and node.id == name for node in nodes)

    def renamed(self, arguments: tuple[str, ...], name: str) -> list[ast.expr]:
        """Expressions for the results, with `arguments` in place of the parameters. `name` makes cell names unique.

        If an argument is a tuple of expressions, an item that is picked from it becomes the item's expression.
        """
        parameters = self.function.__code__.co_varnames[: len(arguments)]
        # Parsed, so that a negative number gets the parentheses it needs.
        names = {name: ast.parse(text, mode="eval").body for name, text in zip(parameters, arguments, strict=True)}
        cells = {variable: cell_name(name, variable) for variable in self.function.__code__.co_freevars}
        renaming = _Renaming(names, cells)
        return [renaming.visit(copy.deepcopy(result)) for result in self.results]


def cells_of(function: FunctionType, name: str) -> dict[str, Any]:
    """The cells of the variables of enclosing functions, by their names in the loop."""
    variables, cells = function.__code__.co_freevars, function.__closure__ or ()
    return {cell_name(name, variable): cell for variable, cell in zip(variables, cells, strict=True)}


def small_function(function: Any, parameters: int) -> SmallFunction | None:
    """`function`, which takes `parameters` arguments, ready to be inlined; None if it does not qualify."""
    node = source_of(function, parameters)
    return None if node is None else _taken_apart(node, function)


def source_of(function: Any, parameters: int) -> ast.Lambda | ast.FunctionDef | None:
    """The source of a function; None if it does not take exactly `parameters` arguments, or has no matching source."""
    if not isinstance(function, FunctionType) or not _takes_just(function, parameters) or _is_watched():
        return None
    if any(map(_is_empty, function.__closure__ or ())):  # Only a call raises Python's own error for such a variable.
        return None
    try:
        with ONE_AT_A_TIME:
            filename, line = function.__code__.co_filename, function.__code__.co_firstlineno
            nodes, imported = _functions_in("".join(linecache.getlines(filename)))
            shallow = (node for node in nodes.get(line, []) if not _is_deep(node))
            return next((node for node in shallow if _is_source_of(node, function, imported)), None)
    except SystemError:  # The user's program was parsing Python in another thread.
        return None


def _is_empty(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _takes_just(function: FunctionType, parameters: int) -> bool:
    code = function.__code__
    takes_more = code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    is_other = code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
    return code.co_argcount == parameters and not takes_more and not is_other


def _is_watched() -> bool:
    """True under a debugger, a profiler or a coverage tool, which must see the calls of all functions."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(monitoring.get_tool(tool) is not None for tool in range(3))


# --- from a function to its source -----------------------------------------------------------------------------------

_Node = ast.Lambda | ast.FunctionDef
_MOST_LEVELS = 64
"""What works on syntax trees calls itself for each level, several times; Python allows some 1,000 calls."""


@functools.lru_cache(maxsize=16)
def _functions_in(source: str) -> tuple[dict[int, list[_Node]], frozenset[str]]:
    """The functions in a file by their first line, and the names that its imports bind."""
    nodes: dict[int, list[_Node]] = {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # The file is no longer Python, or never was.
        return nodes, frozenset()
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.FunctionDef) and not node.decorator_list):
            nodes.setdefault(node.lineno, []).append(node)
    return nodes, frozenset(_names_imported_in(tree.body))


def _names_imported_in(statements: list[ast.stmt]) -> Iterator[str]:
    """The names that imports bind in the scope of these statements."""
    for statement in statements:
        match statement:
            case ast.Import(names) | ast.ImportFrom(names=names):
                yield from (each.asname or each.name.partition(".")[0] for each in names if each.name != "*")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case _:
                inner = (each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt))
                handled = (each.body for each in getattr(statement, "handlers", []))
                yield from _names_imported_in([*inner, *itertools.chain.from_iterable(handled)])


def _is_deep(node: ast.AST) -> bool:
    """True for a tree of too many levels: each `elif`, and each operator in a row of them, is one."""
    nodes = [node]
    for _ in range(_MOST_LEVELS):
        nodes = [child for each in nodes for child in ast.iter_child_nodes(each)]
        if not nodes:
            return False
    return True


def _is_source_of(node: _Node, function: FunctionType, imported: frozenset[str]) -> bool:
    """True if `node` compiles to what `function` runs: a file may have changed, and a line may have several lambdas."""
    code = function.__code__
    if isinstance(node, ast.FunctionDef) != (code.co_name != "<lambda>"):
        return False
    try:
        own = _compiled(node, code.co_freevars, imported)
    except SyntaxError:  # It only compiles where it was written, because of a nonlocal variable, for example.
        return False
    return own is not None and _does_the_same(own, code)


def _does_the_same(own: CodeType, code: CodeType) -> bool:
    parts = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(own, part) != getattr(code, part) for part in parts):
        return False
    if len(own.co_consts) != len(code.co_consts):
        return False
    inner = None
    for one, other in zip(own.co_consts, code.co_consts, strict=True):
        if isinstance(one, CodeType) and isinstance(other, CodeType):
            if not _does_the_same(one, other):
                return False
        elif not _is_name_of(inner, one, other) and repr(one) != repr(other):  # Not `!=`: 1 equals True and 1.0.
            return False
        inner = one
    return True


def _is_name_of(inner: Any, *names: Any) -> bool:
    """True if both are qualified names of `inner`, which Python 3.10 puts after the code of an inner function."""
    return isinstance(inner, CodeType) and all(
        isinstance(name, str) and name.endswith(f".<locals>.{inner.co_name}") for name in names
    )


def _compiled(node: _Node, free_variables: tuple[str, ...], imported: Iterable[str]) -> CodeType | None:
    """The code of a function within another one that has `free_variables`, in a module that imports these names.

    The imports matter because `module.function()` compiles to other code than `variable.method()`, and the compiler
    recognizes modules by their imports.
    """
    inner: ast.stmt = ast.Return(node) if isinstance(node, ast.Lambda) else node
    outer = ast.parse(f"def outer({', '.join(free_variables)}): pass")
    outer.body[0].body = [inner]  # type: ignore[attr-defined]
    outer.body += [ast.Import([ast.alias("imported", name)]) for name in imported]
    module = compile(ast.fix_missing_locations(outer), "<function>", "exec", dont_inherit=True)
    return next((code for outside in _codes_in(module) for code in _codes_in(outside)), None)


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


# --- what a function consists of -------------------------------------------------------------------------------------


def _taken_apart(node: _Node, function: FunctionType) -> SmallFunction | None:
    results, is_generator = _results_of(node)
    known = set(function.__code__.co_varnames) | set(function.__code__.co_freevars)
    # Between two yields other code runs. A loop computes all results at once, so they must not depend on that code.
    allowed = _PLAIN if is_generator else _EXPRESSIONS
    if not results or not all(_is_allowed(part, allowed, known) for result in results for part in ast.walk(result)):
        return None
    if not all(map(_can_be_text, results)):
        return None
    names = {part.id for result in results for part in ast.walk(result) if isinstance(part, ast.Name)}
    return SmallFunction(function, tuple(results), is_generator, uses_globals=not names <= known)


def _results_of(node: _Node) -> tuple[list[ast.expr], bool]:
    """The expressions that a function returns or yields, and whether it yields; no expressions if it does more."""
    if isinstance(node, ast.Lambda):
        return [node.body], False
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        return [body[0].value], False
    yields = [each.value.value for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Yield)]
    values = [value for value in yields if value is not None]
    return (values, True) if len(values) == len(body) else ([], False)


def _is_allowed(part: ast.AST, allowed: tuple[type[ast.AST], ...], known: set[str]) -> bool:
    is_own = isinstance(part, ast.Name) and part.id in known
    if not isinstance(part, allowed) or (sees_its_frame(part) and not is_own) or logs(part):
        return False
    return is_own or not isinstance(part, ast.Name) or can_stand_in_loop(part.id)


def can_stand_in_loop(name: str) -> bool:
    """True if no variable of a generated loop can hide a global of this name."""
    return _NAMES_IN_LOOPS.match(name) is None


def _picked(node: ast.AST, name: str, items: int) -> int | None:
    """The index of the item that `node` picks from the variable `name`; None if it is another expression."""
    match node:
        case ast.Subscript(ast.Name(id=variable), ast.Constant(int() as at)) if variable == name:
            return at if type(at) is int and 0 <= at < items else None
    return None


def _can_be_text(result: ast.expr) -> bool:
    """True if an expression can be written on one line; some f-strings cannot."""
    try:
        text = ast.unparse(result)
        return "\n" not in text and ast.dump(ast.parse(text, mode="eval").body) == ast.dump(result)
    except (ValueError, SyntaxError):
        return False


def cell_name(name: str, variable: str) -> str:
    return f"cell_{name}_{variable}"


class _Renaming(ast.NodeTransformer):
    """Replaces parameters with arguments, and variables of enclosing functions with their cells."""

    def __init__(self, names: dict[str, ast.expr], cells: dict[str, str]) -> None:
        self._names = names
        self._cells = cells

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name):
            argument = self._names.get(node.value.id)
            if isinstance(argument, ast.Tuple):
                at = _picked(node, node.value.id, len(argument.elts))
                return self.generic_visit(node) if at is None else argument.elts[at]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._cells:
            return ast.Attribute(ast.Name(self._cells[node.id], ast.Load()), "cell_contents", ast.Load())
        return self._names.get(node.id, node)
