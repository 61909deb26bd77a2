"""Jobs controlled from other processes, as a person does at two terminals."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from free_ports import free_port

import penstock

pytestmark = [pytest.mark.slow]

WITHIN_S = 120

WAITING_JOB = """
from penstock.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.socket_text_stream("localhost", {port}).map(str.upper).print()
env.execute("waiting for text")
"""
HELPER = "def double(x): return 2 * x\n"
GOOD_JOB = """
from penstock.datastream import StreamExecutionEnvironment
from doubling import double
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).rebalance().map(double).set_parallelism(2).key_by(lambda x: 0).sum().print()
env.execute("good")
"""
FAILING_JOB = """
from penstock.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 0]).map(lambda x: 1 // x).print()
env.execute("failing")
"""
ENDLESS_JOB = """
from penstock.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()

def forever(x):
    while True:
        pass

env.from_collection([1, 2]).map(forever).print()
env.execute("endless")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"doubling": HELPER, "good": GOOD_JOB, "failing": FAILING_JOB, "endless": ENDLESS_JOB}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "penstock.cli", *words]


def settings() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), cwd=folder, env=settings(), capture_output=True, text=True, timeout=WITHIN_S)


def test_job_of_its_own_process_is_listed_and_stopped_from_another_one(folder):
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:
        (folder / "waiting.py").write_text(WAITING_JOB.format(port=server.getsockname()[1]))
        with subprocess.Popen(
            command("run", "-t", "inline", "waiting.py"), cwd=folder, env=settings(), stderr=subprocess.PIPE, text=True
        ) as process:
            server.settimeout(WITHIN_S)
            with contextlib.closing(server.accept()[0]):
                assert process.stderr is not None
                job = next(line.split()[-1] for line in process.stderr if "has been submitted" in line)
                assert f"{job} : waiting for text" in run(folder, "list").stdout
                stopped = run(folder, "stop", "-p", str(folder / "savepoints"), job[:16])
                assert stopped.returncode == 0, stopped.stderr
                assert "Savepoint completed. Path: " in stopped.stdout
                assert process.wait(WITHIN_S) == 0
        assert job not in run(folder, "list").stdout


@pytest.fixture
def job_manager(folder: Path) -> Iterator[str]:
    """The address of a job manager of its own on Spark."""
    port = str(free_port())
    started = run(folder, "jobmanager", "start", "--daemon", "--port", port, "--log", "manager.log")
    assert started.returncode == 0, started.stderr
    try:
        yield f"localhost:{port}"
    finally:
        assert run(folder, "jobmanager", "stop", "--port", port).returncode == 0


@pytest.mark.spark
def test_jobs_of_a_session_cluster_run_at_once_and_do_no_harm_to_each_other(folder, job_manager):
    endless = run(folder, "run", "-d", "-m", job_manager, "endless.py")
    submitted = re.search(r"^Job has been submitted with JobID ([0-9a-f]{32})$", endless.stdout, re.MULTILINE)
    assert submitted is not None, endless.stderr

    failing = run(folder, "run", "-m", job_manager, "failing.py")
    assert failing.returncode == 1 and "ZeroDivisionError" in failing.stderr
    good = run(folder, "run", "-m", job_manager, "good.py")
    assert good.returncode == 0 and good.stdout.splitlines()[-1].endswith("12"), good.stderr

    cancelled = run(folder, "cancel", "-m", job_manager, submitted[1])
    assert cancelled.stdout.endswith(f"Cancelled job {submitted[1]}.\n"), cancelled.stderr
    jobs = json.loads(run(folder, "list", "-a", "--json", "-m", job_manager).stdout)["jobs"]
    assert {job["name"]: job["state"] for job in jobs} == {
        "endless": "CANCELED",
        "failing": "FAILED",
        "good": "FINISHED",
    }
    told = run(folder, "jobmanager", "status", "--port", job_manager.partition(":")[2])
    assert "0 running jobs, 1 finished, 1 cancelled, 1 failed" in told.stdout
