from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from benchmarks import open_windows
from benchmarks.job import Setting, digest_of, results_of
from benchmarks.startup import _RESULT, Start, median_of, median_steps
from benchmarks.startup_marks import CLI, EPOCH, EPOCH_DONE, LOADED, MARKS_FOLDER, PYTHON, SUBMITTED, read_marks
from benchmarks.systems import ROOT


@pytest.mark.parametrize("line", ["(be,2)", "1> (be,2)", "('be', 2)"])
def test_a_result_is_known_in_what_each_system_prints(line):
    assert _RESULT.match(line)


def test_announcements_are_no_results():
    assert not _RESULT.match("Job has been submitted with JobID 3f2a")


def test_the_first_mark_of_a_step_counts(tmp_path):
    for name, marks in {"1": [["a", 3.0], ["b", 4.0]], "2": [["a", 2.0]]}.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, marks)))
    assert read_marks(tmp_path) == {"a": 2.0, "b": 4.0}


def test_steps_of_a_start_are_marked_in_order(tmp_path):
    command = [sys.executable, "-m", "benchmarks.startup_marks", "-t", "inline", "examples/word_count.py"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, MARKS_FOLDER: str(tmp_path), "PYTHONPATH": path}
    subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    marks = read_marks(tmp_path)
    assert sorted(marks, key=marks.__getitem__) == [PYTHON, CLI, LOADED, SUBMITTED, EPOCH, EPOCH_DONE]


def test_medians_of_runs_and_steps():
    starts = [Start(3, 4, 1.0), Start(1, 2, None), Start(2, 3, 2.0)]
    assert median_of(starts) == Start(2, 3, 1.5)
    assert list(median_steps([{"late": 3.0, "early": 1.0}, {"late": 5.0, "early": 2.0}])) == ["early", "late"]


def test_open_windows_gives_the_right_counts():
    setting = Setting(2_000, 2, 30, config={"execution.target": "inline"})
    assert digest_of(results_of(open_windows.build, setting)) == digest_of(open_windows.expected(setting))
