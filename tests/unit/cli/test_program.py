from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from penstock.cli.program import Program

TELL = """
import json, os, sys
json.dump([__name__, sys.argv, sys.path[0], os.environ["PYTHONPATH"].split(os.pathsep)[0]], open("told.json", "w"))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    return tmp_path


def test_script_is_main_with_its_arguments_and_its_folder_first_on_the_path(folder):
    Path("jobs/tell.py").write_text(TELL)
    Program("jobs/tell.py", arguments=("--rows", "5")).run()
    jobs = str(folder / "jobs")
    assert json.loads(Path("told.json").read_text()) == ["__main__", ["jobs/tell.py", "--rows", "5"], jobs, jobs]


def test_module_is_found_in_the_working_folder(folder):
    Path("tell_from_module.py").write_text(TELL)
    Program("tell_from_module", is_module=True, arguments=("x",)).run()
    name, argv, first, _ = json.loads(Path("told.json").read_text())
    assert (name, argv[1:], first) == ("__main__", ["x"], str(folder))


def test_python_files_can_be_imported(folder):
    Path("shared").mkdir()
    Path("shared/shared_by_jobs.py").write_text("ANSWER = 42")
    Path("jobs/ask.py").write_text("from shared_by_jobs import ANSWER; open('told', 'w').write(str(ANSWER))")
    Program("jobs/ask.py", python_files=("shared",)).run()
    assert Path("told").read_text() == "42"


def test_everything_is_put_back_even_when_the_script_fails():
    Path("jobs/fail.py").write_text("import sys\nsys.path.append('more')\nraise RuntimeError('no')")
    before = list(sys.argv), list(sys.path), dict(os.environ)
    with pytest.raises(RuntimeError, match="no"):
        Program("jobs/fail.py").run()
    assert (sys.argv, sys.path, dict(os.environ)) == before


@pytest.mark.parametrize("chosen", [None, "/usr/bin/other-python"])
def test_workers_of_a_session_that_the_program_makes_itself_have_this_python_unless_another_was_chosen(
    monkeypatch, chosen
):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if chosen is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    Path("jobs/python.py").write_text("import os; open('told', 'w').write(os.environ['PYSPARK_PYTHON'])")
    Program("jobs/python.py").run()
    assert Path("told").read_text() == (chosen or sys.executable)
