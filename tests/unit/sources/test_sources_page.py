"""The page about sources: its settings exist, and what it promises about its programs holds."""

from __future__ import annotations

import re

from tests.unit.docs.code_blocks import ROOT, code_blocks

from penstock.common.config_keys import KNOWN_OPTIONS

PAGE = ROOT / "docs" / "connectors" / "sources.md"


def test_settings_on_the_page_exist_and_have_these_defaults():
    rows = re.findall(r"^\| `(penstock\.[\w.-]+)` \| ([\w ,]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 5
    for key, default in rows:
        expected = None if default == "none" else int(re.sub(r"\D", "", default))
        assert KNOWN_OPTIONS[key].default == expected, key


def test_a_source_of_ones_own_needs_about_thirty_lines():
    assert len(code_blocks(PAGE)[0].program.splitlines()) <= 30
