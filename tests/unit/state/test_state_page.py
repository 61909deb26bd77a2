"""The page about state: its program prints what it says, and its settings are those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.cli.program import Program
from penstock.common import config_keys
from penstock.datastream.launch import Launch, launching

PAGE = (Path(__file__).parents[3] / "docs" / "state.md").read_text(encoding="utf-8")


def test_program_on_the_page_prints_what_it_says(tmp_path, capsys):
    ((program, expected),) = re.findall(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", PAGE, re.DOTALL)
    script = tmp_path / "program.py"
    script.write_text(program, encoding="utf-8")
    with launching(Launch(configuration={"execution.target": "inline"})):
        Program(str(script)).run()
    assert capsys.readouterr().out == expected


def test_settings_and_their_defaults_are_on_the_page():
    for option in (config_keys.STATE_BACKEND, config_keys.DISK_LOCAL_DIR, config_keys.DISK_CACHE_ENTRIES):
        assert f"| `{option.key}` |" in PAGE
    assert f"| {config_keys.DISK_CACHE_ENTRIES.default} |" in PAGE
