"""The command line as a person uses it: a process on Spark, ended by Ctrl-C or by an error."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.processes import end_session, processes_of, wait_until_gone
from free_ports import free_port

import penstock

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "socket_window_word_count.py"
STARTS_WITHIN_S = 90
ENDS_WITHIN_S = 20


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The example, on a port that is free now."""
    script = tmp_path / EXAMPLE.name
    script.write_text(EXAMPLE.read_text().replace("1234", str(free_port())))
    return script


def port_of(script: Path) -> int:
    return int(script.read_text().partition('socket_text_stream("localhost", ')[2].partition(")")[0])


@contextlib.contextmanager
def running(script: Path) -> Iterator[subprocess.Popen[str]]:
    """`penstock run script`, in a session of its own so that every process of it can be found again."""
    environment = {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "run", "--master", "local[2]", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end_session(process.pid)
        process.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc")
def test_ctrl_c_ends_the_job_and_leaves_no_process_behind(script):
    with contextlib.closing(socket.create_server(("localhost", port_of(script)))) as server:
        server.settimeout(STARTS_WITHIN_S)
        with running(script) as process:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"some words to count\n")
                assert process.stdout is not None
                # Lines appear when the first window closes: the workers are running by then.
                while not (line := process.stdout.readline()).endswith(",1)\n"):
                    assert line, process.stderr and process.stderr.read()
                assert len(processes_of(process.pid)) > 1
                os.kill(process.pid, signal.SIGINT)
                _, errors = process.communicate(timeout=ENDS_WITHIN_S)
            assert process.returncode == 130
            assert "Traceback" not in errors
            assert wait_until_gone(process.pid, ENDS_WITHIN_S) == []


def test_refused_socket_ends_with_one_clear_sentence(script):
    with running(script) as process:
        _, errors = process.communicate(timeout=STARTS_WITHIN_S)
        assert process.returncode == 1
        port = port_of(script)
        assert (
            f"socket source localhost:{port}: cannot connect (Connection refused); start a server there first, for "
            f"example `nc -lk {port}`, or give socket_text_stream a max_retry"
        ) in errors
        assert "Traceback" not in errors
