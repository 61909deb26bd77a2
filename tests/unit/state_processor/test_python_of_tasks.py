"""Which Python the tasks of a session run that the program has made itself."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from penstock.state_processor.jobs import use_this_python


@pytest.mark.parametrize(
    ("master", "chosen", "expected"),
    [
        ("local[2]", None, sys.executable),
        ("local[2]", "/opt/python", "python3"),
        ("spark://host:7077", None, "python3"),
    ],
)
def test_local_tasks_run_the_python_of_the_program_unless_another_is_named(monkeypatch, master, chosen, expected):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if chosen is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    context = SimpleNamespace(master=master, pythonExec="python3")
    use_this_python(context)
    assert context.pythonExec == expected
