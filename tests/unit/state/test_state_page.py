"""The settings on the page about state are those that there are."""

from __future__ import annotations

from pathlib import Path

from penstock.common import config_keys

PAGE = (Path(__file__).parents[3] / "docs" / "state.md").read_text(encoding="utf-8")


def test_settings_and_their_defaults_are_on_the_page():
    for option in (config_keys.STATE_BACKEND, config_keys.DISK_LOCAL_DIR, config_keys.DISK_CACHE_ENTRIES):
        assert f"| `{option.key}` |" in PAGE
    assert f"| {config_keys.DISK_CACHE_ENTRIES.default} |" in PAGE
