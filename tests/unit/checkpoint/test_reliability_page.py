"""The program on the page about reliability runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"


def test_program_of_the_page_runs():
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    variables: dict[str, object] = {}
    exec(compile(program, str(PAGE), "exec"), variables)
    assert len(variables["plan"].operations()) == 0, "the notes are gone with their folder"  # type: ignore[attr-defined]


def test_files_that_the_page_names_are_there():
    for name in re.findall(r"`(tests/[\w/.]+|chaos/[\w.]+)`", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parents[1] / name).exists(), name
