"""The page for PyFlink's users names everything that is refused, and nothing that is not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "penstock"
PAGE = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")


def refusals(node: ast.AST, path: tuple[str, ...]) -> Iterator[str]:
    """Where UnsupportedFeatureError is raised: module, classes and function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Raise) and "UnsupportedFeatureError(" in ast.unparse(child):
            yield ".".join(path)
        is_named = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from refusals(child, (*path, child.name) if is_named else path)


def test_the_table_of_refusals_is_complete_and_true():
    listed = set(re.findall(r"^\| `([\w.]+)` \|", PAGE.partition("## What raises")[2], re.MULTILINE))
    found = {
        name
        for file in SOURCE.rglob("*.py")
        for name in refusals(ast.parse(file.read_text(encoding="utf-8")), _module(file))
        if not name.rpartition(".")[2].startswith("build_")  # Inside the runtime: a description nobody can run
        and not name.startswith("table.")  # SQL that is not supported: the planner's user is told which function it is
    }
    assert found - listed == set(), "add these to the table in docs/compatibility.md"
    assert listed - found == set(), "these work now: remove them from the table in docs/compatibility.md"


def _module(file: Path) -> tuple[str, ...]:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def test_configuration_keys_on_the_page_exist():
    from penstock.common.config_keys import KNOWN_OPTIONS

    keys = re.findall(r"`((?:penstock|execution|pipeline|python)\.[a-z][\w.-]+)`", PAGE)
    own_modules = {"penstock.common.exceptions.UnsupportedFeatureError", "penstock.table"}
    assert [key for key in keys if key not in KNOWN_OPTIONS and key not in own_modules] == []
