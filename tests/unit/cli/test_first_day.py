"""What a person meets in the first hours: short tracebacks, hints, one line of advice."""

from __future__ import annotations

import subprocess
import sys
import traceback

import pytest
from click.testing import CliRunner

from penstock.cli import main
from penstock.common import Configuration
from penstock.common.exceptions import ConfigurationError, UserFunctionError
from penstock.common.notices import PenstockWarning
from penstock.datastream import StreamExecutionEnvironment


def environment() -> StreamExecutionEnvironment:
    config = Configuration.from_dict({"execution.target": "inline"})
    return StreamExecutionEnvironment.get_execution_environment(config)


def wrong(order):
    return order["prize"]


@pytest.mark.parametrize("how", ["execute", "execute_and_collect"])
def test_a_failure_shows_few_frames_besides_the_users(how, monkeypatch):
    monkeypatch.delenv("PENSTOCK_DEBUG", raising=False)
    env = environment()
    stream = env.from_collection([{"price": 1}]).map(wrong)
    with pytest.raises(UserFunctionError, match="KeyError: 'prize'") as caught:
        if how == "execute":
            stream.print()
            env.execute()
        else:
            list(stream.execute_and_collect())
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[0].name == "test_a_failure_shows_few_frames_besides_the_users" and len(frames) <= 5
    assert len("".join(traceback.format_exception(caught.value)).splitlines()) < 35
    assert 'return order["prize"]' in str(caught.value)


def test_all_frames_are_there_to_debug(monkeypatch):
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    env = environment()
    env.from_collection([{}]).map(wrong).print()
    with pytest.raises(UserFunctionError) as caught:
        env.execute()
    assert len(traceback.extract_tb(caught.value.__traceback__)) > 5


def test_a_job_without_a_sink_says_so_once():
    env = environment()
    env.from_collection([1]).map(lambda n: n).name("double")
    with pytest.warns(PenstockWarning, match="nothing reads the results of 'double': they go nowhere"):
        env.execute()


def test_a_missing_watermark_strategy_is_named():
    with pytest.raises(TypeError, match=r"from_source needs a WatermarkStrategy, got None; .*no_watermarks\(\)"):
        environment().from_source(object(), None, "numbers")


def test_a_duration_is_refused_in_one_sentence():
    with pytest.raises(ConfigurationError) as caught:
        environment().configure(Configuration().set_string("execution.checkpointing.interval", "often"))
    assert str(caught.value).count("is not a duration") == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rn", "job.py"], "did you mean 'run'?"),
        (["savepont"], "did you mean 'savepoint'?"),
        (["job.py"], "to run it: penstock run job.py"),
        (["xyz"], "verbs are cancel, "),
    ],
)
def test_unknown_verbs_get_suggestions(words, hint):
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 2 and hint in answer.output


def test_pythons_own_hints_survive(tmp_path):
    job = tmp_path / "job.py"
    job.write_text("import json\njson.dunps({})\n")
    ended = subprocess.run(
        [sys.executable, "-m", "penstock.cli", "run", "-t", "inline", str(job)], capture_output=True, text=True
    )
    assert "Did you mean: 'dumps'?" in ended.stderr


def test_warnings_have_no_source_path(tmp_path):
    job = tmp_path / "job.py"
    job.write_text(
        "from penstock.common import Configuration\n"
        "from penstock.datastream import StreamExecutionEnvironment\n"
        "config = Configuration().set_string('paralelism.default', '2')\n"
        "for _ in range(2):\n"
        "    StreamExecutionEnvironment.get_execution_environment(config)\n"
    )
    ended = subprocess.run([sys.executable, str(job)], capture_output=True, text=True, check=True)
    assert ended.stderr.splitlines() == [
        "penstock: unknown configuration key 'paralelism.default', did you mean 'parallelism.default'?; it has no "
        "effect"
    ]
