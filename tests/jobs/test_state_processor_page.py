"""The program on the page about the state processor prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.cli.program import Program
from penstock.datastream.launch import Launch, launching

PAGE = (Path(__file__).parents[2] / "docs" / "state_processor.md").read_text(encoding="utf-8")


@pytest.mark.spark
def test_program_on_the_page_prints_what_it_says(spark, tmp_path, capsys):
    ((program, expected),) = re.findall(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", PAGE, re.DOTALL)
    script = tmp_path / "program.py"
    script.write_text(program, encoding="utf-8")
    with launching(Launch(configuration={"execution.target": "spark"})):
        Program(str(script)).run()
    assert capsys.readouterr().out == expected


def test_every_member_of_reader_and_writer_is_on_the_page():
    from penstock.state_processor import SavepointReader, SavepointWriter

    members = [name for kind in (SavepointReader, SavepointWriter) for name in vars(kind) if not name.startswith("_")]
    assert [name for name in members if f"`.{name}" not in PAGE] == []
