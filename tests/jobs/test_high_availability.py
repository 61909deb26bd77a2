"""Several job managers as processes of their own: one is killed or put to sleep, its jobs continue at another."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from free_ports import free_port

import penstock
from penstock.rest.security.access_token import own_token

pytestmark = [pytest.mark.slow]

WITHIN_S = 120

JOB = """
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink, RollingPolicy

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_sequence(1, {numbers})
counts = numbers.map(lambda n: (n % 10, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
builder = FileSink.for_row_format("{out}", Encoder.simple_string_encoder())
builder = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size={part_size}))
sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
counts.map(lambda pair: f"{{pair[0]}} {{pair[1]}}").sink_to(sink)
env.execute("counting")
"""
NUMBERS = 30_000
PART_SIZE = 20_000
"""Some files are finished at each checkpoint, and one is open."""
SETTINGS = {
    "high-availability.type": "filesystem",
    "penstock.high-availability.lease-duration": "3 s",
    "penstock.high-availability.renew-interval": "500 ms",
    "execution.checkpointing.interval": "300 ms",
    "penstock.epoch.max-records": "200",
    "penstock.epoch.interval": "50 ms",
}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "penstock.cli", *words]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(penstock.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}


def eventually(question: Callable[[], object], what: str) -> object:
    deadline = time.monotonic() + WITHIN_S
    while not (answer := question()):
        assert time.monotonic() < deadline, f"it did not happen within {WITHIN_S} s: {what}"
        threading.Event().wait(0.1)
    return answer


class JobManager:
    """A process that contends."""

    def __init__(self, folder: Path, name: str, settings: dict[str, str]) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._log = folder / f"{name}.log"
        words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command("jobmanager", "start", "--port", str(self.port), *words),
                cwd=folder,
                env=environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def get(self, path: str) -> dict | None:
        """What it answers, if it does: no redirects, no patience."""
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        token = own_token(self.port)
        headers = {} if token is None else {"Authorization": f"Bearer {token.secret}"}
        try:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return json.loads(response.read()) if response.status == 200 else None
        except OSError:
            return None
        finally:
            connection.close()

    @property
    def role(self) -> str | None:
        told = self.get("/jobmanager/leadership")
        return None if told is None else told["role"]

    def wait_until(self, role: str) -> None:
        def is_so() -> bool:
            assert self.process.poll() is None, self.log
            return self.role == role

        eventually(is_so, f"{self.address} is {role}\n{self.log}")

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Cluster:
    """Job managers that stand by for each other, and a job whose results can be counted."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, settings: dict[str, str], numbers: int) -> None:
        self.folder = folder
        self._numbers = numbers
        self._stack = stack
        self._settings = {**SETTINGS, "high-availability.storageDir": str(folder / "ha"), **settings}
        (folder / "job.py").write_text(JOB.format(numbers=numbers, out=folder / "out", part_size=PART_SIZE))
        (folder / "out").mkdir()

    def setting(self, name: str) -> str:
        return self._settings[f"high-availability.{name}"]

    def start(self, name: str) -> JobManager:
        manager = JobManager(self.folder, name, self._settings)
        self._stack.callback(manager.end)
        return manager

    def start_two(self) -> tuple[JobManager, JobManager]:
        a = self.start("a")
        a.wait_until("leader")
        b = self.start("b")
        b.wait_until("standby")
        return a, b

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*words), cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=WITHIN_S
        )

    def submit(self, managers: str) -> str:
        submitted = self.run("run", "-d", "-m", managers, "job.py")
        found = re.search(r"^Job has been submitted with JobID ([0-9a-f]{32})$", submitted.stdout, re.MULTILINE)
        assert found is not None, submitted.stderr
        return found[1]

    def shown(self) -> list[str]:
        files = [path for path in (self.folder / "out").rglob("part-*") if path.is_file()]
        return [line for path in files for line in path.read_text().splitlines()]

    def checkpoints(self) -> int:
        """The newest checkpoint of any job."""
        names = [path.name for path in (self.folder / "ha" / "default" / "checkpoints").glob("*/chk-*")]
        return max((int(name.removeprefix("chk-")) for name in names), default=0)

    def wait_for_checkpoints(self) -> None:
        """Until the job has taken some more."""
        before = self.checkpoints()
        eventually(lambda: self.checkpoints() > before + 5 and self.shown(), "more checkpoints")

    def wait_for_end(self, job: str, manager: JobManager) -> None:
        def is_finished() -> bool:
            told = manager.get(f"/jobs/{job}/status")
            assert told is None or told["status"] not in ("FAILED", "CANCELED"), manager.log
            return told == {"status": "FINISHED"}

        eventually(is_finished, f"{job} is finished\n{manager.log}")

    def assert_each_count_is_there_once(self) -> None:
        shown = Counter(self.shown())
        assert [line for line, times in shown.items() if times > 1] == []
        assert set(shown) == {f"{key} {count}" for key in range(10) for count in range(1, self._numbers // 10 + 1)}

    def assert_nothing_is_left(self) -> None:
        folders = [self.folder / "ha" / "default" / name for name in ("jobs", "checkpoints")]
        eventually(lambda: not any(list(folder.iterdir()) for folder in folders), "jobs that ended are forgotten")


StartCluster = Callable[..., Cluster]


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    with contextlib.ExitStack() as stack:

        def start(numbers: int = NUMBERS, **settings: str) -> Cluster:
            return Cluster(tmp_path, stack, {"execution.target": "inline", **settings}, numbers)

        yield start


def test_job_of_a_killed_leader_continues_at_the_next_one_and_its_client_follows_it(start_cluster):
    cluster = start_cluster()
    a, b = cluster.start_two()
    with subprocess.Popen(
        command("run", "-m", f"{b.address},{a.address}", "job.py"),
        cwd=cluster.folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        cluster.wait_for_checkpoints()
        a.send(signal.SIGKILL)
        printed, complaints = client.communicate(timeout=WITHIN_S)
    assert client.returncode == 0, complaints
    assert printed == "", "stdout is for results"
    job = re.search(r"^Job has been submitted with JobID ([0-9a-f]{32})$", complaints, re.MULTILINE)[1]
    assert f"Job {job} continues at {b.address}." in complaints
    assert f"job {job} 'counting' continues from" in b.log
    cluster.assert_each_count_is_there_once()
    cluster.assert_nothing_is_left()


def test_leader_that_slept_does_no_harm_when_it_wakes_up(start_cluster):
    cluster = start_cluster()
    a, b = cluster.start_two()
    job = cluster.submit(b.address)
    listed = cluster.run("list", "-m", b.address)
    assert f" : {job} : counting (" in listed.stdout, listed.stderr
    cluster.wait_for_checkpoints()
    a.send(signal.SIGSTOP)
    b.wait_until("leader")
    cluster.wait_for_checkpoints()
    a.send(signal.SIGCONT)
    a.wait_until("standby")
    told = [cluster.run("jobmanager", "status", "--port", str(each.port)).stdout for each in (a, b)]
    assert f"on port {a.port} stands by; leader: {b.address}" in told[0]
    assert f"on port {b.port} leads: " in told[1]
    cluster.wait_for_end(job, b)
    cluster.assert_each_count_is_there_once()
    cluster.assert_nothing_is_left()
    assert "is suspended" in a.log


@pytest.mark.spark
def test_job_on_spark_continues_at_the_next_leader(start_cluster):
    cluster = start_cluster(20_000, **{"execution.target": "spark", "penstock.epoch.max-records": "1000"})
    a, b = cluster.start_two()
    job = cluster.submit(f"{b.address},{a.address}")
    cluster.wait_for_checkpoints()
    a.send(signal.SIGKILL)
    b.wait_until("leader")
    cluster.wait_for_end(job, b)
    cluster.assert_each_count_is_there_once()
    cluster.assert_nothing_is_left()
