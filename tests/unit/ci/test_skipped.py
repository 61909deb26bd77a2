"""What `make test` says at its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FEW_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # Some take seconds to load.
TESTS = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_with_a_server(number):
    pytest.skip("the server is not installed; run: make servers")

@pytest.mark.skipif(True, reason="needs PyFlink")
def test_with_pyflink():
    pass

@pytest.mark.xfail(reason="not yet")
def test_that_fails():
    assert False

def test_that_runs():
    pass
"""


def said(results):
    program = [sys.executable, str(ROOT / ".ci" / "skipped.py"), str(results)]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


def test_skipped_tests_are_counted_by_what_they_need(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_all.py").write_text('import pytest\npytest.skip("needs a browser", allow_module_level=True)\n')
    for name in ("test_some", "test_all"):
        processes = ["-p", "xdist", "-n", "1"] if name == "test_some" else []
        run = [sys.executable, "-m", "pytest", *processes, f"--junitxml=results/{name}.xml", f"{name}.py"]
        subprocess.run(run, cwd=tmp_path, env=os.environ | FEW_PLUGINS, capture_output=True, check=False)
    assert said(tmp_path / "results").splitlines() == [
        "5 tests or files of tests were skipped:",
        "     3  the server is not installed; run: make servers",
        "     1  needs PyFlink",
        "     1  needs a browser",
    ]


def test_nothing_skipped_is_said_too(tmp_path):
    (tmp_path / "some.xml").write_text('<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>')
    assert said(tmp_path) == "No test was skipped.\n"


def test_results_that_are_missing_do_not_look_like_success(tmp_path):
    assert said(tmp_path) == f"There are no results in {tmp_path}: the tests were interrupted.\n"
