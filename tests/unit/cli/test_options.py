from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from penstock.cli.errors import NoSuchFile
from penstock.cli.options import ProgramCommand, Request, program_options, read_request
from penstock.cluster.leader_lookup import JobManagers
from penstock.common.configuration import Configuration
from penstock.common.exceptions import UnsupportedFeatureError


@pytest.fixture(autouse=True)
def folder_with_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_CONF_DIR", raising=False)
    monkeypatch.delenv("PENSTOCK_DEBUG", raising=False)
    Path("job.py").write_text("")


def request(*words: str) -> Request:
    seen: list[Request] = []

    @click.command(cls=ProgramCommand)
    @program_options
    def command(**given: Any) -> None:
        seen.append(read_request(given))

    command.main(list(words), standalone_mode=False)
    return seen[0]


def test_words_after_the_script_are_its_own_arguments():
    program = request("-p", "2", "job.py", "-p", "7", "--input", "x").program
    assert (program.target, program.arguments) == ("job.py", ("-p", "7", "--input", "x"))


def test_two_dashes_between_the_script_and_its_arguments_are_not_an_argument():
    for words, arguments in {
        ("job.py", "--", "--input", "x", "--", "y"): ("--input", "x", "--", "y"),
        ("--", "job.py", "--input", "x"): ("--input", "x"),
        ("job.py", "x", "--", "y"): ("x", "--", "y"),
        ("-py", "job.py", "--", "--input", "x"): ("--input", "x"),
    }.items():
        assert request(*words).program.arguments == arguments


def test_options_may_follow_py_until_the_first_unknown_one():
    asked = request("-py", "job.py", "-p", "3", "--input", "x", "-p", "9")
    assert asked.program.arguments == ("--input", "x", "-p", "9")
    assert asked.configuration == {"parallelism.default": "3"}


def test_unknown_single_dash_words_of_the_program_are_not_taken_apart():
    assert request("-py", "job.py", "-input", "x").program.arguments == ("-input", "x")


def test_module_instead_of_a_script():
    program = request("-pym", "package.job", "--rows", "5").program
    assert (program.target, program.is_module, program.arguments) == ("package.job", True, ("--rows", "5"))


def test_settings_in_both_spellings_keep_what_follows_the_first_equals_sign():
    asked = request("-Dpipeline.name=a=b", "-D", "rest.port=0", "job.py")
    assert asked.configuration == {"pipeline.name": "a=b", "rest.port": "0"}


def test_config_file_is_weaker_than_D_and_D_weaker_than_a_flag():
    Path("config.yaml").write_text("a: file\nb: file\nparallelism.default: 1\n")
    asked = request("--conf", ".", "-Db=command", "-Dparallelism.default=2", "-p3", "--master", "local[2]", "job.py")
    assert asked.configuration == {
        "a": "file", "b": "command", "parallelism.default": "3", "spark.master": "local[2]",
    }  # fmt: skip


def test_target_is_a_setting_like_any_other():
    assert request("-t", "inline", "job.py").configuration == {"execution.target": "inline"}


def test_flags_for_starting_from_a_savepoint_are_settings():
    asked = request("-s", "savepoints/1", "-n", "-cm", "claim", "job.py")
    assert asked.configuration == {
        "execution.state-recovery.path": "savepoints/1",
        "execution.state-recovery.ignore-unclaimed-state": "true",
        "execution.state-recovery.claim-mode": "CLAIM",
    }


def test_job_manager_is_a_target_with_an_address():
    asked = request("-m", "river:8082", "-d", "-sae", "job.py")
    assert asked.configuration == {
        "execution.target": "remote",
        "rest.address": "river",
        "rest.port": "8082",
        "execution.attached": "false",
        "execution.shutdown-on-attached-exit": "true",
    }


@pytest.mark.parametrize("key", ["high-availability.type", "high-availability"])
def test_job_manager_that_is_named_counts_and_not_an_elected_one(key):
    asked = request(f"-D{key}=zookeeper", "-m", "river:8082", "job.py")
    managers = JobManagers.of(Configuration.from_dict(asked.configuration))
    assert managers is not None and str(managers.leader()) == "river:8082"


def test_target_of_a_detached_job_may_be_written_in_any_case():
    assert request("-Dexecution.target=Remote", "-d", "job.py").configuration["execution.attached"] == "false"
    assert request("-Dexecution.target=remote", "-Dexecution.attached=FALSE", "job.py").is_detached
    assert not request("-Dexecution.target=remote", "job.py").is_detached


def test_python_files_are_split_at_commas():
    Path("lib").mkdir()
    asked = request("-pyfs", "lib,job.py", "-Dpython.files=more.zip", "job.py")
    assert asked.program.python_files == ("lib", "job.py")
    assert asked.configuration == {"python.files": "more.zip,lib,job.py"}


def test_flags_of_dependencies_are_settings():
    asked = request("-pyarch", "a.zip#x", "-pyreq", "r.txt#packages", "-pyexec", "python3", "job.py")
    assert asked.configuration == {
        "python.archives": "a.zip#x", "python.requirements": "r.txt#packages", "python.executable": "python3",
    }  # fmt: skip


@pytest.mark.parametrize("words", [("gone.py",), ("-py", "gone.py"), ("-pyfs", "gone.py", "job.py")])
def test_missing_file_is_named(words):
    with pytest.raises(NoSuchFile, match=r"no such file: gone\.py"):
        request(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "which job"),
        (("--paralelism", "2", "job.py"), "No such option"),
        (("-Dnonsense", "job.py"), "expected key=value, got 'nonsense'"),
        (("-py", "job.py", "-pym", "job"), "give only one"),
        (("-p", "0", "job.py"), "0 is not in the range"),
        (("-n", "job.py"), "-n and -cm go with -s"),
        (("-d", "job.py"), "--detached goes with a job manager"),
        (("-s", "savepoints/1", "-cm", "keep", "job.py"), "'keep' is not one of"),
    ],
)
def test_wrong_command_lines_are_refused(words, message):
    with pytest.raises(click.UsageError, match=message):
        request(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-t", "yarn-session"), "-t/--target yarn-session is not supported, only local, spark, inline, remote are"),
        (("-py", "job.py", "-pyclientexec", "py"), "-pyclientexec/--pyClientExecutable does not choose a Python"),
    ],
)
def test_flags_that_cannot_be_honoured_say_what_to_do_instead(words, message):
    with pytest.raises(UnsupportedFeatureError, match=message):
        request(*words, "job.py")


def test_help_names_flinks_flags():
    @click.command(cls=ProgramCommand)
    @program_options
    def command(**given: Any) -> None: ...

    shown = CliRunner().invoke(command, ["--help"]).output
    assert all(flag in shown for flag in ("-p, --parallelism", "-py, --python", "-pym, --pyModule", "-D KEY=VALUE"))
