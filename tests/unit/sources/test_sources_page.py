"""The programs on the page about sources print what it says, and its settings exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.cli.program import Program
from penstock.common.config_keys import KNOWN_OPTIONS
from penstock.datastream.launch import Launch, launching

PAGE = (Path(__file__).parents[3] / "docs" / "connectors" / "sources.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```\n\nprints `(.*?)`\n", PAGE, re.DOTALL)
KINDS = ["simple source", "source of interfaces", "files", "hybrid source", "generated elements", "source function"]


def test_the_page_has_a_program_for_each_kind_of_source():
    assert len(PROGRAMS) == PAGE.count("```python") == len(KINDS)


@pytest.mark.parametrize(("program", "printed"), PROGRAMS, ids=KINDS)
def test_program_on_the_page_prints_what_it_says(program, printed, tmp_path, capsys):
    script = tmp_path / "program.py"
    script.write_text(program, encoding="utf-8")
    with launching(Launch(configuration={"execution.target": "inline"})):
        Program(str(script)).run()
    assert capsys.readouterr().out.strip() == printed


def test_settings_on_the_page_exist_and_have_these_defaults():
    rows = re.findall(r"^\| `(penstock\.[\w.-]+)` \| ([\w ,]+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for key, default in rows:
        expected = None if default == "none" else int(re.sub(r"\D", "", default))
        assert KNOWN_OPTIONS[key].default == expected, key


def test_a_source_of_ones_own_needs_about_thirty_lines():
    assert len(PROGRAMS[0][0].splitlines()) <= 30
