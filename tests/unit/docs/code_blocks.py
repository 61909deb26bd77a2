"""The Python code blocks of the documentation: what each runs, and what it says it prints.

A block is opened by one of

    ```python                       it is a program of its own
    ```python continued             it goes on where the block before it ended
    ```python plan: <reason>        its job can be built, but not run here
    ```python no-run: <reason>      it can only be compiled, and its imports carried out

and may be followed by "prints `line`" or "prints" and a block of lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"^```python(?P<marks>[^\n]*)\n(?P<program>.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTS = re.compile(r"\n\nprints(?: `(?P<line>[^`\n]*)`|\n\n```(?:text)?\n(?P<lines>.*?)```)", re.DOTALL)
_MARKS = re.compile(r"|continued|(?P<kind>plan|no-run): (?P<reason>\S.*)")


@dataclass(frozen=True)
class CodeBlock:
    """One block; `program` includes the blocks that it continues, and `printed` what they print."""

    page: str
    line: int
    program: str
    printed: str | None
    kind: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def code_blocks(page: Path) -> list[CodeBlock]:
    """The blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    blocks: list[CodeBlock] = []
    for found in _BLOCK.finditer(text):
        marks = _MARKS.fullmatch(found["marks"].strip())
        name, line = page.relative_to(ROOT).as_posix(), text.count("\n", 0, found.start()) + 1
        if marks is None:
            raise ValueError(f"{name}:{line}: a Python block is marked {found['marks'].strip()!r}; see {__name__}")
        program, printed = found["program"], _printed(text[found.end() :])
        if marks[0] == "continued":
            program = blocks[-1].program + program
            printed = None if printed is None else (blocks[-1].printed or "") + printed
        blocks.append(CodeBlock(name, line, program, printed, marks["kind"] or "run", marks["reason"] or ""))
    return blocks


def _printed(after: str) -> str | None:
    """What the text right behind a block says that it prints."""
    found = _PRINTS.match(after)
    return None if found is None else found["lines"] or f"{found['line']}\n"
