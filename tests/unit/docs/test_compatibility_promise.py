"""What docs/compatibility_promise.md says of versions and tests is what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "compatibility_promise.md").read_text(encoding="utf-8")
PAIRS = [(each["python"], each["pyspark"]) for each in json.loads((ROOT / ".ci" / "matrix.json").read_text())["pairs"]]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_table_of_versions_is_that_of_the_matrix():
    rows = re.findall(r"^\| (3\.\d+) \| ([\d., ]+) \|$", PAGE, re.MULTILINE)
    assert [(python, pyspark) for python, many in rows for pyspark in many.split(", ")] == PAIRS


def test_every_python_that_the_package_claims_is_in_the_matrix():
    claimed = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    assert claimed == sorted({python for python, _ in PAIRS}, key=lambda each: int(each.partition(".")[2]))
    assert f'requires-python = ">={claimed[0]}"' in PROJECT
    assert f"Python {claimed[0]} to {claimed[-1]}" in PAGE


def test_oldest_and_newest_pyspark_are_in_the_matrix():
    pysparks = sorted(pyspark for _, pyspark in PAIRS)
    assert f'"pyspark>={pysparks[0]}"' in PROJECT
    assert f"PySpark {pysparks[0]} to {pysparks[-1]}" in PAGE


def test_tests_that_hold_the_promise_are_there():
    named = re.findall(r"`(tests/[\w/.]+)`", PAGE)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
