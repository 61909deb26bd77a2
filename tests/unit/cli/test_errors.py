from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.errors import report
from penstock.cli.program import Program
from penstock.common.exceptions import InvalidProgramError, UserFunctionError


def failure_of(script: str, path: Path) -> BaseException:
    path.write_text(script)
    with pytest.raises(BaseException) as caught:
        Program(str(path)).run()
    return caught.value


def test_error_of_the_script_is_shown_from_its_own_frames_on(tmp_path, capsys):
    job = tmp_path / "job.py"
    report(failure_of("def half(x):\n    return x / 0\n\nhalf(3)\n", job), is_debug=False)
    told = capsys.readouterr().err
    assert told.splitlines()[:2] == ["Traceback (most recent call last):", f'  File "{job}", line 4, in <module>']
    assert told.endswith("ZeroDivisionError: division by zero\n") and "runpy" not in told


def test_syntax_error_shows_the_line_and_no_frames(tmp_path, capsys):
    report(failure_of("a = (\n", tmp_path / "job.py"), is_debug=False)
    told = capsys.readouterr().err
    assert "SyntaxError" in told and "job.py" in told and "runpy" not in told


def test_debug_shows_the_whole_stack(tmp_path, capsys):
    report(failure_of("1 / 0\n", tmp_path / "job.py"), is_debug=True)
    assert "runpy" in capsys.readouterr().err


def test_penstock_error_is_one_message_with_the_place_in_the_script(tmp_path, capsys):
    job = tmp_path / "job.py"
    script = "from penstock.graph.drawing import draw_text\n" + (
        "a = {'id': 1, 'predecessors': [{'id': 2}]}\n"
        "b = {'id': 2, 'predecessors': [{'id': 1}]}\n"
        "draw_text({'nodes': [a, b]}, [])\n"
    )
    error = failure_of(script, job)
    assert isinstance(error, InvalidProgramError)
    report(error, is_debug=False)
    assert capsys.readouterr().err.splitlines() == [
        "penstock: the plan has a cycle, and only a job without cycles can be drawn",
        f"  at {job}:4: draw_text({{'nodes': [a, b]}}, [])",
    ]


def test_failure_in_a_user_function_names_operator_subtask_record_and_the_users_frames(capsys):
    report(
        UserFunctionError(
            "job 'count' failed: ValueError: bad", operator="parse", subtask=2, record="'x7'",
            user_traceback='File "job.py", line 3, in parse\n    int(text)\n',
        ),
        is_debug=False,
    )  # fmt: skip
    assert capsys.readouterr().err.splitlines() == [
        "penstock: job 'count' failed: ValueError: bad",
        "  operator: parse, subtask 2",
        "  record: 'x7'",
        '  File "job.py", line 3, in parse',
        "      int(text)",
    ]


def test_nothing_is_said_twice(capsys):
    message = "operator 'parse', subtask 2 failed on record 'x7'\n  File \"job.py\", line 3"
    report(
        UserFunctionError(message, operator="parse", subtask=2, record="'x7'", user_traceback='File "job.py", line 3'),
        is_debug=False,
    )
    assert capsys.readouterr().err == f"penstock: {message}\n"


@pytest.mark.parametrize("kind", ["JobExecutionError", "EnvironmentSetupError"])
def test_failure_that_is_not_the_scripts_points_at_none_of_its_lines(kind, tmp_path, capsys):
    script = f"from penstock.common.exceptions import {kind}\nraise {kind}('no space left')\n"
    report(failure_of(script, tmp_path / "job.py"), is_debug=False)
    assert capsys.readouterr().err == "penstock: no space left\n"
