"""The programs on the page about sinks print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.cli.program import Program
from penstock.datastream.launch import Launch, launching

PAGE = (Path(__file__).parents[3] / "docs" / "connectors" / "sinks.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(
    r"```python\n(.*?)```\n\nprints (?:`(.*?)`|\n*```\n(.*?)```)", PAGE.replace("prints\n", "prints "), re.DOTALL
)


def test_the_page_has_a_program_for_each_kind_of_sink():
    assert len(PROGRAMS) == PAGE.count("```python") == 3


@pytest.mark.parametrize(("program", "line", "lines"), PROGRAMS, ids=["files", "own sink", "transactions"])
def test_program_on_the_page_prints_what_it_says(program, line, lines, tmp_path, capsys):
    script = tmp_path / "program.py"
    script.write_text(program, encoding="utf-8")
    with launching(Launch(configuration={"execution.target": "inline"})):
        Program(str(script)).run()
    assert capsys.readouterr().out.strip() == (line or lines).strip()
