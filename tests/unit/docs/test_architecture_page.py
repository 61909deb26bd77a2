"""docs/architecture.md names files, modules, classes and functions that are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "penstock"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = "|".join(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
STEPS = re.findall(r"^\| `([\w/]+)\.py` \| `([\w.]+)` \|", PAGE, re.MULTILINE)


def test_every_module_that_is_named_is_there():
    dotted = set(re.findall(rf"`((?:{PACKAGES})\.[a-z_.]+)`", PAGE))
    files = set(re.findall(r"`([\w/]+)\.py`", PAGE))
    places = [PACKAGE / name.replace(".", "/") for name in dotted | files]
    assert len(places) > 60
    assert [place for place in places if not (place.is_dir() or place.with_suffix(".py").exists())] == []


def test_drawing_of_the_layers_has_every_package():
    drawing = PAGE.split("```")[1]
    assert [package for package in PACKAGES.split("|") if not re.search(rf"\b{package}\b", drawing)] == []


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_every_step_of_a_walk_is_there(file, name):
    found = importlib.import_module("penstock." + file.replace("/", "."))
    for part in name.split("."):
        found = getattr(found, part)


def test_there_are_three_walks():
    assert len(STEPS) > 40
