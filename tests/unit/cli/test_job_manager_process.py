"""What the process of a job manager leaves for others to find, and what does not end it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.commands import main
from penstock.cluster import job_manager_process
from penstock.cluster.job_manager_process import JobManagerFiles, StopRequest
from penstock.rest import sockets
from penstock.rest.client import Address, RestClient


def test_daemon_may_choose_among_several_ports():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        first = taken.getsockname()[1]
        settings = {"rest.bind-port": f"{first}-{min(first + 50, 65535)}", "execution.target": "inline"}
        options = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        started = CliRunner().invoke(main, ["jobmanager", "start", "--daemon", "--json", *options])
        assert started.exit_code == 0, started.stderr
        port = json.loads(started.stdout)["port"]
        try:
            assert first < port <= first + 50
            assert RestClient(Address(host="127.0.0.1", port=port)).get("/overview")["jobs-running"] == 0
        finally:
            stopped = CliRunner().invoke(main, ["jobmanager", "stop", "--port", str(port)])
    assert stopped.exit_code == 0, stopped.stderr


@pytest.fixture
def files(tmp_path, monkeypatch) -> JobManagerFiles:
    monkeypatch.setattr(sockets, "folder", lambda: tmp_path)
    return JobManagerFiles(8191)


def test_job_manager_that_starts_while_the_former_one_ends_is_found(files, monkeypatch):
    monkeypatch.setattr(job_manager_process, "_LOCKED_WITHIN_S", 30)
    former = files.pid.open("a+")
    fcntl.flock(former, fcntl.LOCK_EX)
    found, is_held, release = [], threading.Event(), threading.Event()

    def start() -> None:
        with files.held():
            found.append(files.running_pid())
            is_held.set()
            release.wait(30)

    starting = threading.Thread(target=start)
    starting.start()
    threading.Event().wait(0.3)  # Time to open the file of the former one
    files.pid.unlink()
    former.close()
    try:
        assert is_held.wait(30)
        assert (found, files.running_pid()) == ([os.getpid()], os.getpid())
    finally:
        release.set()
        starting.join()
    assert files.running_pid() is None


def test_storage_that_is_away_for_a_while_does_not_end_the_job_manager(caplog):
    attempts = []

    def recover() -> None:
        attempts.append(len(attempts))
        if len(attempts) == 1:
            raise OSError("stale file handle")

    leader: Any = SimpleNamespace(is_alive=True, cluster=SimpleNamespace(clean=lambda: None), recover=recover)
    for _ in range(2):
        job_manager_process._look_after(leader)
    assert attempts == [0, 1] and "trying again: stale file handle" in caplog.text


def test_job_manager_that_ends_by_itself_meanwhile_counts_as_stopped(files, monkeypatch):
    answers = iter([12345, None])
    monkeypatch.setattr(JobManagerFiles, "running_pid", lambda self: next(answers))

    def gone(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", gone)
    stopped = CliRunner().invoke(main, ["jobmanager", "stop", "--port", "8191"])
    assert (stopped.exit_code, stopped.stdout) == (0, "Stopped job manager 12345.\n")


def test_signal_is_heard_at_any_moment():
    """The handler of a signal runs between any two lines of what the main thread does."""
    stop = StopRequest()
    is_handling = False

    def handle(*_: Any) -> Any:
        nonlocal is_handling
        if not is_handling:
            is_handling = True
            stop.set()
            is_handling = False
        return handle

    def serve() -> None:
        sys.settrace(handle)
        stop.wait(30)

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    serving.join(30)
    assert not serving.is_alive()
    assert stop.wait(0) and stop.wait(0), "it stays so"


def test_nobody_has_asked_for_the_end():
    assert not StopRequest().wait(0.01)
