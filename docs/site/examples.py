"""The page of examples: every program of `examples/`, with what it prints."""

from __future__ import annotations

import ast
from pathlib import Path

_OPENING = """# Examples

One idea each. All but the socket one end by themselves, and the tests compare what they print with what is shown here
(the order of lines from different subtasks may differ). Run one with `penstock run examples/word_count.py`, or without
Spark with `penstock run -t inline examples/word_count.py`.
"""


def page(folder: Path) -> str:
    """A section for each program, opened by its docstring."""
    return "\n".join([_OPENING, *(_section(script) for script in sorted(folder.glob("*.py")))])


def _section(script: Path) -> str:
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    summary = ast.get_docstring(tree) or ""
    body = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    printed = script.parent / "expected" / f"{script.stem}.txt"
    output = f"\nprints\n\n```text\n{printed.read_text(encoding='utf-8').rstrip()}\n```\n" if printed.exists() else ""
    title = script.stem.replace("_", " ").capitalize()
    return f"## {title}\n\n`examples/{script.name}`: {summary}\n\n```python\n{body}\n```\n{output}"
