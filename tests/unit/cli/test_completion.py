"""What a shell offers while a command is typed."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from penstock.cli import main
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment


def offered(*words: str) -> list[str]:
    """For the last of the words, as Bash asks; each with its kind in front."""
    asked = {
        "_PENSTOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["penstock", *words]),
        "COMP_CWORD": str(len(words)),
    }
    return CliRunner().invoke(main, [], env=asked, prog_name="penstock").stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ru"], ["plain,run"]),
        (["jobmanager", "sta"], ["plain,start", "plain,status"]),
        (["run", "--claimM"], ["plain,--claimMode"]),
        (["run", "-cm", "no"], ["plain,no_claim"]),
        (["run", "-t", ""], ["plain,local", "plain,spark", "plain,inline", "plain,remote"]),
        (["run", "-p", "2", "exam"], ["file,exam"]),
        (["run", "-py", "exam"], ["file,exam"]),
    ],
)
def test_verbs_flags_values_and_files_are_offered(words, expected):
    assert offered(*words) == expected


@pytest.mark.parametrize("verb", ["cancel", "stop", "savepoint", "checkpoint"])
def test_running_jobs_are_offered_where_a_verb_takes_one(verb):
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:
        server.settimeout(30)
        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict({"execution.target": "inline"})
        )
        env.socket_text_stream("localhost", server.getsockname()[1]).print()
        client = env.execute_async("waiting")
        with contextlib.closing(server.accept()[0]):
            job = str(client.get_job_id())
            assert f"plain,{job}" in offered(verb, job[:4])
            client.cancel().result()
    assert f"plain,{job}" not in offered(verb, job[:4])


def test_package_is_the_command():
    shown = subprocess.run([sys.executable, "-m", "penstock", "--help"], stdout=subprocess.PIPE, text=True, check=True)
    assert shown.stdout.startswith("Usage: penstock [OPTIONS] COMMAND [ARGS]...")
