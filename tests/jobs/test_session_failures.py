"""Jobs of a session cluster on Spark when something fails: what they report, how often they restart, what they show."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from free_ports import free_port

import penstock
from penstock.rest.client import Address, RestClient, RestClientError

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WITHIN_S = 120
NUMBERS = 3_000

COUNTING_JOB = """
import os
import signal
from pathlib import Path

from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink

FOLDER = Path("{folder}")

def trouble(number):
    for name, at in {troubles}:
        mark = FOLDER / f"{{name}}-{{at}}"
        if number == at and not mark.exists():
            mark.touch()
            if name == "error":
                1 // 0
            os.kill(os.getpid(), signal.SIGKILL)
    return number

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_sequence(1, {numbers}).map(trouble).name("trouble")
counts = numbers.map(lambda n: (n % 10, 1)).key_by(lambda pair: pair[0]).sum(1)
builder = FileSink.for_row_format(str(FOLDER / "out"), Encoder.simple_string_encoder())
counts.sink_to(builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
env.execute("counting")
"""
LINES_JOB = """
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink

env = StreamExecutionEnvironment.get_execution_environment()
builder = FileSink.for_row_format("{folder}/out", Encoder.simple_string_encoder())
sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
env.socket_text_stream("127.0.0.1", {port}).sink_to(sink)
env.execute("lines")
"""
SETTINGS = {
    "execution.checkpointing.interval": "200 ms",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "200 ms",
    "penstock.epoch.max-records": "100",
    # The job lasts long enough to be disturbed.
    "penstock.epoch.interval": "50 ms",
}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "penstock.cli", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), cwd=folder, env=environment(), capture_output=True, text=True, timeout=WITHIN_S
    )


def eventually(question: Callable[[], object], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not question():
        assert time.monotonic() < deadline, what()
        threading.Event().wait(0.05)


class JobManager:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        words = [word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}")]
        words += ["-D", f"execution.checkpointing.dir={folder / 'checkpoints'}"]
        log = str(folder / "manager.log")
        started = run(folder, "jobmanager", "start", "--daemon", "--port", str(self.port), "--log", log, *words)
        assert started.returncode == 0, started.stderr
        self.pid = int(re.search(r"Job manager (\d+) listens", started.stdout)[1])
        self.rest = RestClient(Address(host="127.0.0.1", port=self.port))

    def submit(self, folder: Path, *words: str) -> Job:
        submitted = run(folder, "run", "-d", "-m", f"127.0.0.1:{self.port}", "-p", "2", *words, "job.py")
        found = re.search(r"JobID ([0-9a-f]{32})$", submitted.stdout, re.MULTILINE)
        assert found is not None, submitted.stderr
        return Job(self, found[1], folder)

    def kill(self) -> None:
        """With all that it has started."""
        os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        run(self.folder, "jobmanager", "stop", "--port", str(self.port))


class Job:
    def __init__(self, manager: JobManager, job_id: str, folder: Path) -> None:
        self._manager = manager
        self.id = job_id
        self._folder = folder

    def get(self, path: str, **query: str) -> Any:
        return self._manager.rest.get(f"/jobs/{self.id}{path}", **query)

    @property
    def status(self) -> str:
        return self.get("/status")["status"]

    @property
    def restarts(self) -> int:
        (metric,) = self.get("/metrics", get="numRestarts")
        return int(metric["value"])

    def checkpoints(self) -> dict[str, int]:
        return self.get("/checkpoints")["counts"]

    def failures(self) -> list[dict[str, Any]]:
        return self.get("/exceptions")["exceptionHistory"]["entries"]

    def wait_for_end(self) -> str:
        """The status it ends with."""
        eventually(lambda: self.status in ("FINISHED", "FAILED", "CANCELED"), lambda: (self.status, self.failures()))
        return self.status

    def lines(self) -> Counter[str]:
        files = (self._folder / "out").glob("part-*")
        return Counter(line for part in files for line in part.read_text().splitlines())

    def assert_each_count_is_there_once(self) -> None:
        lines = self.lines()
        assert [line for line, times in lines.items() if times > 1] == []
        assert set(lines) == {f"({key},{count})" for key in range(10) for count in range(1, NUMBERS // 10 + 1)}


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobManager]:
    """One for all tests; the last one kills it."""
    started = JobManager(tmp_path_factory.mktemp("session"))
    yield started
    with contextlib.suppress(RestClientError):
        started.stop()


def counting_job(folder: Path, troubles: list[tuple[str, int]]) -> None:
    (folder / "job.py").write_text(COUNTING_JOB.format(folder=folder, numbers=NUMBERS, troubles=troubles))


def test_error_in_a_function_restarts_the_job_from_its_checkpoint(manager, tmp_path):
    counting_job(tmp_path, [("error", 700), ("error", 2900)])
    job = manager.submit(tmp_path)
    assert job.wait_for_end() == "FINISHED"
    assert job.restarts == 2
    failures = job.failures()
    assert ["ZeroDivisionError" in each["stacktrace"] for each in failures] == [True, True]
    assert all("trouble" in each["taskName"] for each in failures)
    job.assert_each_count_is_there_once()


def test_error_that_comes_again_fails_the_job_when_its_restarts_are_used_up(manager, tmp_path):
    counting_job(tmp_path, [("error", 700), ("error", 701), ("error", 702)])
    job = manager.submit(tmp_path, "-D", "restart-strategy.fixed-delay.attempts=2")
    assert job.wait_for_end() == "FAILED"
    assert job.restarts == 2 and len(job.failures()) == 3
    assert max(job.lines().values(), default=1) == 1
    kept = list((manager.folder / "checkpoints" / job.id).glob("chk-*/_metadata"))
    assert len(kept) == 1


def test_python_process_that_is_killed_restarts_the_job_from_its_checkpoint(manager, tmp_path):
    counting_job(tmp_path, [("killed", 1500)])
    job = manager.submit(tmp_path)
    assert job.wait_for_end() == "FINISHED"
    assert job.restarts == 1 and len(job.failures()) == 1
    job.assert_each_count_is_there_once()


def test_job_continues_when_the_storage_of_its_checkpoints_is_back(manager, tmp_path):
    counting_job(tmp_path, [])
    checkpoints = tmp_path / "checkpoints"
    tolerant = ("-D", "execution.checkpointing.tolerable-failed-checkpoints=1000")
    job = manager.submit(tmp_path, "-D", f"execution.checkpointing.dir={checkpoints}", *tolerant)
    eventually(lambda: job.checkpoints()["completed"] > 0, job.failures)
    checkpoints.rename(tmp_path / "away")
    checkpoints.touch()  # Nothing can be written below a file.
    eventually(lambda: job.checkpoints()["failed"] > 0 or job.failures(), lambda: job.status)
    assert job.status in ("RUNNING", "RESTARTING")
    checkpoints.unlink()
    (tmp_path / "away").rename(checkpoints)
    assert job.wait_for_end() == "FINISHED"
    job.assert_each_count_is_there_once()


def test_job_waits_for_a_source_that_is_down(manager, tmp_path):
    port = free_port()
    (tmp_path / "job.py").write_text(LINES_JOB.format(folder=tmp_path, port=port))
    job = manager.submit(tmp_path)
    eventually(lambda: job.restarts > 1, job.failures)
    assert f"127.0.0.1:{port}" in job.failures()[0]["stacktrace"]
    with contextlib.closing(socket.create_server(("127.0.0.1", port))) as server:
        server.settimeout(WITHIN_S)
        with contextlib.closing(server.accept()[0]) as connection:
            restarts = job.restarts
            connection.sendall("".join(f"{number}\n" for number in range(500)).encode())
            eventually(lambda: job.status == "RUNNING", job.failures)
    assert job.wait_for_end() == "FINISHED"
    assert job.lines() == Counter(str(number) for number in range(500))
    assert job.restarts == restarts


def test_job_of_a_killed_job_manager_is_continued_at_another_one(manager, tmp_path):
    counting_job(tmp_path, [])
    job = manager.submit(tmp_path)
    eventually(lambda: job.checkpoints()["completed"] > 2, job.failures)
    manager.kill()
    another = JobManager(tmp_path)
    try:
        continued = another.submit(tmp_path, "-s", str(manager.folder / "checkpoints" / job.id))
        assert continued.wait_for_end() == "FINISHED"
        assert continued.checkpoints()["restored"] == 1
        continued.assert_each_count_is_there_once()
    finally:
        another.stop()
