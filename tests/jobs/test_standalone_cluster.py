"""Jobs on a Spark cluster of several processes: a master and two workers."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from free_ports import free_port

sys.path.insert(0, str(Path(__file__).parent))

from spark_cluster import WITHIN_S, SparkCluster, environment

from penstock.rest.client import Address, RestClient, RestClientError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="ends processes that it finds in /proc"),
]

WORDS_JOB = """
from penstock.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["to be or", "not to be"]).flat_map(lambda line: line.split())
counts = words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
counts.print()
env.execute("words on a cluster")
"""
COUNTING_JOB = """
from penstock.common.serialization import Encoder
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(200)
counts = env.from_sequence(1, {numbers}).map(lambda n: (n % 10, 1)).key_by(lambda pair: pair[0]).sum(1)
builder = FileSink.for_row_format("{out}", Encoder.simple_string_encoder())
counts.sink_to(builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
env.execute("counting on a cluster")
"""
NUMBERS = 4_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """One for all tests: the last one loses a worker."""
    started = SparkCluster(tmp_path_factory.mktemp("spark"), workers=2)
    yield started
    started.stop()


def penstock_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "penstock.cli", *words]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        penstock_command(*words), cwd=folder, env=environment(), capture_output=True, text=True, timeout=WITHIN_S
    )


def eventually(question: Callable[[], object], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not question():
        assert time.monotonic() < deadline, what()
        threading.Event().wait(0.1)


def on_cluster(cluster: SparkCluster, folder: Path) -> list[str]:
    settings = {
        "penstock.working-dir": str(folder / "work"),
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
    }
    return ["--master", cluster.url, *(word for key, value in settings.items() for word in ("-D", f"{key}={value}"))]


def test_job_runs_on_a_cluster_of_several_workers(cluster, tmp_path):
    (tmp_path / "job.py").write_text(WORDS_JOB)
    words = on_cluster(cluster, tmp_path)
    ended = run(tmp_path, "run", *words, "-p", "2", "-D", "penstock.epoch.max-records=1", "job.py")
    assert ended.returncode == 0, ended.stderr
    lines = [line.partition("> ")[2] for line in ended.stdout.splitlines() if "> " in line]
    assert sorted(lines) == ["(be,1)", "(be,2)", "(not,1)", "(or,1)", "(to,1)", "(to,2)"]
    assert all("Asked to launch executor" in worker.log for worker in cluster.workers)


@pytest.fixture
def job_manager(cluster: SparkCluster, tmp_path: Path) -> Iterator[int]:
    """The port of a job manager whose Spark is the cluster."""
    port = free_port()
    words = ["--daemon", "--port", str(port), "--log", "manager.log", *on_cluster(cluster, tmp_path)]
    started = run(tmp_path, "jobmanager", "start", *words)
    assert started.returncode == 0, started.stderr
    yield port
    assert run(tmp_path, "jobmanager", "stop", "--port", str(port)).returncode == 0


def test_job_continues_when_a_worker_dies(cluster, job_manager, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "job.py").write_text(COUNTING_JOB.format(numbers=NUMBERS, out=tmp_path / "out"))
    pace = ["-D", "penstock.epoch.max-records=100", "-D", "penstock.epoch.interval=50 ms"]
    words = ["-d", "-m", f"localhost:{job_manager}", "-p", "2", *pace]
    submitted = run(tmp_path, "run", *words, "job.py")
    job = re.search(r"JobID ([0-9a-f]{32})$", submitted.stdout, re.MULTILINE)[1]
    rest = RestClient(Address(host="localhost", port=job_manager))

    def told(path: str) -> dict:
        try:
            return rest.get(f"/jobs/{job}{path}")
        except RestClientError as error:
            return {"error": str(error)}

    eventually(lambda: told("/checkpoints")["counts"]["completed"] > 2, lambda: str(told("/exceptions")))
    cluster.workers[0].kill()
    eventually(
        lambda: told("/status")["status"] in ("FINISHED", "FAILED"), lambda: (tmp_path / "manager.log").read_text()
    )
    assert told("/status") == {"status": "FINISHED"}, told("/exceptions")
    lines = Counter(line for part in (tmp_path / "out").glob("part-*") for line in part.read_text().splitlines())
    assert set(lines.values()) == {1}
    assert set(lines) == {f"({key},{count})" for key in range(10) for count in range(1, NUMBERS // 10 + 1)}
