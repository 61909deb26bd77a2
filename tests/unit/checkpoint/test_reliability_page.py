"""The files that the page about reliability names exist."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"


def test_files_that_the_page_names_are_there():
    for name in re.findall(r"`(tests/[\w/.]+|chaos/[\w.]+)`", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parents[1] / name).exists(), name
