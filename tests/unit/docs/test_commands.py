"""The shell commands of the documentation exist: verbs, flags and settings of `penstock`, targets of make, modules."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest
from tests.unit.docs.code_blocks import PAGES, ROOT

from penstock.cli import main
from penstock.common.config_keys import find_option

_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#\s.*$", re.MULTILINE)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.*?[^\\])\n", MAKEFILE, re.MULTILINE | re.DOTALL)

of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def calls(page: Path, program: str) -> list[list[str]]:
    """The words after a program's name, for each call of it, also of one within `$(...)`."""
    text = "\n".join(_BLOCK.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    found = re.findall(rf"(?:^|\$\(|; |&& )\s*(?:[.\w]+/)*{program} ([^)\n]*)", _COMMENT.sub("", text), re.MULTILINE)
    return [shlex.split(call.replace("$port", "8081")) for call in found]


@of_each_page
def test_penstock_has_the_verbs_flags_and_settings(page):
    for words in calls(page, "penstock"):
        if words == ["--version"]:
            continue
        command: click.Command = main
        while isinstance(command, click.Group):
            verb, *words = words
            command = command.get_command(click.Context(command), verb)
            assert command is not None, f"penstock {verb}"
        given = command.make_context(verb, list(words)).params
        keys = [setting.partition("=")[0] for setting in given.get("settings", ())]
        unknown = [key for key in keys if not key.startswith("spark.") and find_option(key) is None]
        assert unknown in ([], ["key"])  # The README has `-D key=value`.


@of_each_page
def test_make_has_the_targets(page):
    assert {words[0] for words in calls(page, "make")} <= set(TARGETS[1].split())


@of_each_page
def test_modules_and_files_given_to_python_are_there(page):
    for flag, *words in calls(page, "python"):
        script, module = (ROOT / flag, None) if flag != "-m" else (None, words[0])
        assert script.is_file() if script else importlib.util.find_spec(module), f"python {flag} {words}"
        assert [path for path in words if path.startswith("tests/") and not (ROOT / path).exists()] == []


def test_commands_are_found():
    assert sum(len(calls(page, "penstock")) for page in PAGES) > 60
