"""The verbs for running jobs, on a job that really runs, in this process and without Spark."""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from penstock.cli import job_commands, main
from penstock.cli.job_options import JobCommand
from penstock.cli.locate import LocatedJob
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.rest import sockets
from penstock.rest.client import Address, RestClient
from penstock.rest.polling import OperationFailedError


def penstock(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="penstock")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_DEBUG", raising=False)


@pytest.fixture
def job() -> Iterator[Any]:
    """A job that waits for text."""
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:
        server.settimeout(30)
        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict({"execution.target": "inline"})
        )
        env.socket_text_stream("localhost", server.getsockname()[1]).print()
        client: Any = env.execute_async("waiting for text")
        with contextlib.closing(server.accept()[0]):
            yield client
            client.cancel().result()


def id_of(job: Any) -> str:
    return str(job.get_job_id())


def test_list_shows_the_job_as_flink_does(job):
    shown = penstock("list").stdout
    line = rf"^\d\d\.\d\d\.\d{{4}} \d\d:\d\d:\d\d : {id_of(job)} : waiting for text \([A-Z]+\)$"
    assert re.search(line, shown, re.MULTILINE)
    assert "Jobs -----" in shown


def test_characters_that_the_terminal_does_not_know_are_shown_as_their_numbers():
    @click.command(cls=JobCommand)
    def verb() -> None:
        click.echo("job ☃")

    result = CliRunner(charset="latin-1").invoke(verb)
    assert (result.exit_code, result.stdout) == (0, "job \\u2603\n")


def test_list_as_json_is_one_object(job):
    jobs = json.loads(penstock("list", "--json").stdout)["jobs"]
    assert id_of(job) in [each["jid"] for each in jobs]


def test_ended_jobs_are_listed_only_when_asked_for(job):
    job.cancel().result()
    assert id_of(job) not in penstock("list").stdout
    shown = penstock("list", "-a").stdout
    assert "Terminated Jobs" in shown and f"{id_of(job)} : waiting for text (CANCELED)" in shown


def test_cancel_takes_the_beginning_of_an_id(job):
    result = penstock("cancel", id_of(job)[:12])
    assert (result.exit_code, result.stdout) == (
        0, f"Cancelling job {id_of(job)}.\nCancelled job {id_of(job)}.\n",
    )  # fmt: skip
    assert job.get_job_status().result().name == "CANCELED"


def test_stop_writes_a_savepoint_and_says_where(job, tmp_path):
    result = penstock("stop", "-p", str(tmp_path), id_of(job))
    assert result.exit_code == 0, result.output
    first, last = result.stdout.splitlines()
    assert first == f'Suspending job "{id_of(job)}" with a CANONICAL savepoint.'
    location = re.fullmatch(r"Savepoint completed. Path: (?:file://)?(.*)", last)
    assert location is not None and (Path(location[1]) / "_metadata").is_file()
    assert result.stderr == "-p is --savepointPath, the folder for the savepoint, here\n"
    assert job.get_job_status().result().name == "FINISHED"


@pytest.mark.parametrize("words", [("stop", "-p"), ("cancel", "-s")])
def test_savepoint_is_named_even_if_the_end_of_the_job_is_not_seen(job, tmp_path, monkeypatch, words):
    def not_in_time(_: LocatedJob) -> None:
        raise OperationFailedError("has not ended within 60 s")

    monkeypatch.setattr(job_commands, "wait_for_end", not_in_time)
    result = penstock(*words, str(tmp_path), id_of(job))
    assert result.exit_code == 1 and "has not ended within 60 s" in result.stderr
    assert f"The savepoint is complete: file://{tmp_path}/savepoint-{id_of(job)[:6]}-" in result.stderr


def test_drain_is_reported(job, tmp_path):
    result = penstock("stop", "-d", "--savepointPath", str(tmp_path), id_of(job))
    assert result.stdout.startswith(f'Draining job "{id_of(job)}"') and result.stderr == "-d is --drain here\n"


def test_stop_without_any_folder_says_what_to_set(job):
    result = penstock("stop", "-p", id_of(job))
    assert result.exit_code == 1
    assert "execution.checkpointing.savepoint-dir" in result.stderr


def test_savepoint_lets_the_job_continue_and_can_be_disposed(job, tmp_path):
    told = json.loads(penstock("savepoint", "--json", id_of(job), str(tmp_path)).stdout)
    assert not job.get_job_status().result().is_terminal_state()
    result = penstock("savepoint", "-d", told["location"])
    assert result.stdout.endswith(f"Savepoint '{told['location']}' disposed.\n")
    assert result.stderr == "-d is --dispose here\n"
    assert list(tmp_path.iterdir()) == []


def test_detached_savepoint_gives_the_id_of_its_trigger(job, tmp_path):
    result = penstock("savepoint", id_of(job), str(tmp_path), "-type", "native", "-detached")
    assert re.search(r"triggerId: [0-9a-f]{32}$", result.stdout)


def test_folder_that_is_no_savepoint_is_not_disposed(tmp_path):
    result = penstock("savepoint", "--dispose", str(tmp_path))
    assert result.exit_code == 1 and "is no savepoint" in result.stderr
    assert tmp_path.is_dir()


def test_cancel_with_a_savepoint_warns_and_ends_as_canceled(job, tmp_path):
    result = penstock("cancel", "-s", str(tmp_path), id_of(job))
    assert f"Cancelled job {id_of(job)}. Savepoint stored in " in result.stdout
    assert "DEPRECATION WARNING" in result.stderr
    assert job.get_job_status().result().name == "CANCELED"


def test_checkpoint_is_reported_with_its_id(job):
    result = penstock("checkpoint", "-full", id_of(job))
    assert re.search(rf"^Checkpoint\(FULL\) \d+ for job {id_of(job)} completed\.$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize("verb", ["cancel", "stop", "savepoint", "checkpoint"])
def test_unknown_job_ends_with_one(verb):
    result = penstock(verb, "0" * 32)
    assert (result.exit_code, result.stderr.startswith(f"penstock: there is no job {'0' * 32}")) == (1, True)


@pytest.mark.parametrize("verb", ["cancel", "stop", "savepoint", "checkpoint"])
def test_missing_job_ends_with_two(verb):
    assert penstock(verb).exit_code == 2


def test_word_that_is_no_id_is_reported(job):
    assert "'my-job' is not a job id" in penstock("cancel", "my-job").stderr


def test_job_manager_that_does_not_answer_is_reported():
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:
        address = f"localhost:{server.getsockname()[1]}"
    result = penstock("list", "-m", address)
    assert result.exit_code == 1 and f"nobody answers at {address}" in result.stderr


def test_socket_of_a_dead_process_is_removed_by_whoever_finds_it():
    job_id = "ab" * 16
    dead = sockets.listen()
    dead.announce(job_id)
    dead.listener.close()
    assert "there is no job" in penstock("cancel", job_id).stderr
    assert not dead.path.exists() and job_id not in sockets.announced_jobs()


@pytest.mark.parametrize(
    "words",
    [("savepoint",), ("savepoint", "-detached"), ("stop",), ("stop", "-detached"), ("cancel", "-s")],
    ids=" ".join,
)
def test_a_savepoint_without_any_folder_says_to_name_one_and_the_job_continues(job, words):
    result = penstock(*words, id_of(job))
    assert result.exit_code == 1
    assert "name a folder" in result.stderr and "execution.checkpointing.savepoint-dir" in result.stderr
    assert not job.get_job_status().result().is_terminal_state()


def test_a_relative_folder_is_where_the_command_is_given_for_jobs_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = LocatedJob(RestClient(Address(path=tmp_path / "driver")), {})
    elsewhere = LocatedJob(RestClient(Address(host="manager", port=8081)), {})
    assert here.folder("savepoints") == str(tmp_path / "savepoints")
    assert [here.folder(each) for each in ("/data", "file:/data", "s3://b/data", "", None)] == [
        "/data", "file:/data", "s3://b/data", None, None,
    ]  # fmt: skip
    assert elsewhere.folder("savepoints") == "savepoints"
