"""Every example prints what `examples/expected` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.program import Program
from penstock.datastream.launch import Launch, launching

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS_A_SERVER = {"socket_window_word_count"}
NAMES = sorted(file.stem for file in EXAMPLES.glob("*.py") if file.stem not in NEEDS_A_SERVER)
ALSO_ON_SPARK = {
    "accumulators", "batch_mode", "broadcast_state", "cached_files", "event_time_windows", "joins", "keyed_state",
}  # fmt: skip
RUNS = [(name, "inline") for name in NAMES] + [
    pytest.param(name, "spark", marks=pytest.mark.spark) for name in sorted(ALSO_ON_SPARK)
]


@pytest.mark.parametrize(("name", "target"), RUNS)
def test_example_prints_what_is_expected(name, target, capsys, request):
    if target == "spark":
        request.getfixturevalue("spark")
    with launching(Launch(configuration={"execution.target": target, "parallelism.default": "3"})):
        Program(str(EXAMPLES / f"{name}.py")).run()
    expected = (EXAMPLES / "expected" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    printed = capsys.readouterr().out.splitlines()
    if target == "inline":
        assert printed == expected
    else:  # Which of several subtasks prints first is open.
        assert sorted(printed) == sorted(expected)


def test_the_list_of_examples_is_complete():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in sorted(EXAMPLES.glob("*.py")) if f"[{file.name}]({file.name})" not in listed] == []
    assert sorted(file.stem for file in (EXAMPLES / "expected").glob("*.txt")) == NAMES
