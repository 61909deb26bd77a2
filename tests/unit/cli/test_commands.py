from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from penstock.cli import main

JOB = """
import sys
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
print("arguments", sys.argv[1:])
env.from_collection([1, 2, 3]).map(lambda x: x + 1).key_by(lambda x: x % 2).reduce(lambda a, b: a + b).print()
env.execute("small sums")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_DEBUG", raising=False)
    Path("job.py").write_text(JOB)


def penstock(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="penstock")


def test_version_is_reported():
    assert penstock("--version").output.startswith("penstock, version ")


def test_info_draws_the_plan_without_running_the_job():
    result = penstock("info", "-p", "2", "job.py", "--rows", "5")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == ["----------------------- Execution Plan -----------------------", "small sums"]
    assert "▼ HASH" in result.stdout and "parallelism 2" in result.stdout
    assert "arguments" not in result.stdout and "arguments ['--rows', '5']" in result.stderr


def test_info_json_prints_the_plan_and_nothing_else():
    nodes = json.loads(penstock("info", "--json", "job.py").stdout)["nodes"]
    assert nodes[0]["pact"] == "Data Source" and nodes[-1]["pact"] == "Data Sink"


def test_info_svg_writes_a_picture():
    result = penstock("info", "--svg", "plan.svg", "job.py")
    assert ElementTree.parse("plan.svg").getroot().tag.endswith("svg") and "Wrote plan.svg" in result.stderr


def test_info_code_prints_the_loop_of_every_chain_and_nothing_else():
    Path("job.py").write_text(JOB.replace(".key_by", ".filter(lambda x: x > 2).name('Large').key_by"))
    printed = penstock("info", "--code", "job.py").stdout
    assert printed.startswith(
        "# Source: Collection Source -> Map -> Large\n# penstock chain Map -> Large\ndef fused(values, timestamps"
    )
    assert "\x1b" not in printed
    ast.parse(printed)


def test_info_code_of_a_job_without_generated_code_says_so():
    Path("job.py").write_text(JOB.replace(".map(lambda x: x + 1)", ""))
    result = penstock("info", "--code", "job.py")
    assert result.exit_code == 0 and result.stdout == ""
    assert "No code is generated for this job" in result.stderr


def test_info_of_a_pyflink_program_as_it_is():
    Path("job.py").write_text(JOB.replace("penstock", "pyflink"))
    assert penstock("info", "--pyflink", "job.py").exit_code == 0


def test_run_announces_the_job_and_prints_its_results():
    result = penstock("run", "-t", "inline", "job.py", "x")
    assert result.exit_code == 0, result.output
    assert re.search(r"^Job has been submitted with JobID [0-9a-f]{32}$", result.stderr, re.MULTILINE)
    assert "arguments ['x']" in result.stdout


def test_failing_function_is_reported_with_operator_and_record_and_without_the_runtimes_frames():
    Path("job.py").write_text(JOB.replace("lambda x: x + 1", "lambda x: x / 0"))
    result = penstock("run", "-t", "inline", "job.py")
    assert result.exit_code == 1
    told = result.stderr
    assert "ZeroDivisionError: division by zero" in told and "Map" in told and "penstock/runtime" not in told


@pytest.mark.parametrize("verb", ["run", "info"])
def test_script_without_execute_is_an_error_that_names_it(verb):
    Path("job.py").write_text(JOB.replace("env.execute", "# env.execute"))
    result = penstock(verb, "job.py")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        1,
        "penstock: job.py ended without running a job; call env.execute() at its end",
    )


@pytest.mark.parametrize("verb", ["run", "info"])
def test_missing_script_ends_with_two(verb):
    result = penstock(verb, "gone.py")
    assert (result.exit_code, result.stderr) == (2, "penstock: no such file: gone.py\n")


def test_flag_that_cannot_be_honoured_ends_with_one_and_says_why():
    result = penstock("run", "-c", "org.example.Job", "job.py")
    assert result.exit_code == 1
    assert result.stderr.startswith("penstock: -c/--class is for Java programs")


def test_failing_script_ends_with_one_and_its_traceback():
    Path("job.py").write_text("raise LookupError('no rates')")
    result = penstock("run", "job.py")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:2] == ['  File "job.py", line 1, in <module>']
    assert result.stderr.endswith("LookupError: no rates\n")


def test_exit_code_of_the_script_is_kept():
    Path("job.py").write_text("raise SystemExit(7)")
    assert penstock("run", "job.py").exit_code == 7


def test_interrupted_run_ends_with_130():
    Path("job.py").write_text("raise KeyboardInterrupt")
    assert penstock("run", "job.py").exit_code == 130
