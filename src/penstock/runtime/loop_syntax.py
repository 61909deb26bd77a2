"""Makes pieces of syntax trees for generated loops from text. Each gets the location of the code that it replaces."""

from __future__ import annotations

import ast
from collections.abc import Sequence

OWN = "penstock_"
"""The prefix of a generated loop's own variables."""


def names_in(body: Sequence[ast.AST]) -> set[str]:
    return {node.id for root in body for node in ast.walk(root) if isinstance(node, ast.Name)}


def has_one_argument(node: ast.Call) -> bool:
    return len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)


def indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def parsed(text: str, at: ast.AST) -> list[ast.stmt]:
    """The statements in `text`, located where the user's code `at` is."""
    statements = ast.parse(text).body
    for node in (node for root in statements for node in ast.walk(root)):
        if "lineno" in node._attributes:
            ast.copy_location(node, at)
    return statements


def expression(text: str, at: ast.AST) -> ast.expr:
    """The expression in `text`, located where the user's code `at` is."""
    root = ast.parse(text, mode="eval").body
    for node in ast.walk(root):
        if "lineno" in node._attributes:
            ast.copy_location(node, at)
    return root


def assignment(name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), at)], value), at)
