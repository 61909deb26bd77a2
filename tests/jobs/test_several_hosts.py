"""A cluster of several hosts with addresses, names and temporary folders of their own; only checkpoints are shared."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chaos.processes import end_session, kill, roles_in

sys.path.insert(0, str(Path(__file__).parent))

from several_hosts import Network, can_make_hosts
from spark_cluster import SparkCluster, environment

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not can_make_hosts(), reason="makes network namespaces, as root"),
]

WITHIN_S = 240
NUMBERS = 12_000
JOB = """
import logging
import platform
from penstock.common.serialization import Encoder
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.datastream.connectors import BucketAssigner, FileSink

class NotesItsHost(MapFunction):
    def open(self, runtime_context):
        with open("{shared}/hosts", "a") as file:
            file.write(platform.node() + "\\n")

    def map(self, value):
        return value

logging.basicConfig(level=logging.INFO, format="%(message)s")
env = StreamExecutionEnvironment.get_execution_environment()
counts = env.from_sequence(1, {numbers}).rebalance().map(NotesItsHost()).map(lambda n: (n % 10, 1))
builder = FileSink.for_row_format("{shared}/out", Encoder.simple_string_encoder())
sink = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
counts.key_by(lambda pair: pair[0]).sum(1).sink_to(sink)
env.execute("counting on several hosts")
"""
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    # Spark, too, is to notice soon that a host is cut off.
    "spark.network.timeout": "12s",
    "spark.network.timeoutInterval": "3s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "12s",
    "spark.executor.heartbeatInterval": "2s",
    "heartbeat.interval": "500 ms",
    "heartbeat.timeout": "5 s",
    "execution.checkpointing.interval": "200 ms",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "200 ms",
    "penstock.epoch.max-records": "50",
    "penstock.epoch.interval": "100 ms",
}


@pytest.fixture
def shared() -> Iterator[Path]:
    """Not below the temporary folder, of which each host has one of its own."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-hosts-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def network(shared: Path) -> Iterator[Network]:
    made = Network(shared, hosts=3)
    yield made
    made.remove()


@pytest.fixture
def cluster(network: Network, shared: Path) -> Iterator[SparkCluster]:
    started = SparkCluster(shared / "spark", 2, network.hosts)
    yield started
    started.stop()


class RunningJob:
    """The job, with its driver on the first host."""

    def __init__(self, network: Network, cluster: SparkCluster, shared: Path, numbers: int, **settings: str) -> None:
        self._shared = shared
        self._numbers = numbers
        self._log = shared / "driver.log"
        (shared / "job.py").write_text(JOB.format(shared=shared, numbers=numbers))
        given = {**SETTINGS, "execution.checkpointing.dir": f"{shared}/checkpoints", **settings}
        words = [word for key, value in given.items() for word in ("-D", f"{key}={value}")]
        words += ["--master", cluster.url, "-p", "2", f"{shared}/job.py"]
        driver = network.hosts[0]
        command = driver.command(sys.executable, "-m", "penstock.cli", "run", *words)
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                command, env=environment(driver), stdout=out, stderr=out, start_new_session=True
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def eventually(self, question: Callable[[], object]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not question():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log[-3000:]
            threading.Event().wait(0.1)

    def newest_checkpoint(self) -> int:
        found = self._shared.glob("checkpoints/*/chk-*/_metadata")
        return max((int(path.parent.name[4:]) for path in found), default=0)

    def goes_on(self) -> None:
        reached = self.newest_checkpoint()
        self.eventually(lambda: self.newest_checkpoint() > reached + 3)

    def restarts(self) -> int:
        return self.log.count("restarting in")

    def end_well(self) -> None:
        assert self.process.wait(WITHIN_S) == 0, self.log[-3000:]
        parts = (self._shared / "out").glob("part-*")
        lines = Counter(line for part in parts for line in part.read_text().splitlines())
        assert set(lines.values()) == {1}
        assert set(lines) == {f"({key},{count})" for key in range(10) for count in range(1, self._numbers // 10 + 1)}


@pytest.fixture
def start_job(network: Network, cluster: SparkCluster, shared: Path) -> Iterator[Callable[..., RunningJob]]:
    started: list[RunningJob] = []

    def start(numbers: int, **settings: str) -> RunningJob:
        started.append(RunningJob(network, cluster, shared, numbers, **settings))
        return started[-1]

    yield start
    for job in started:
        end_session(job.process.pid)
        job.process.wait()


def test_job_survives_a_killed_executor_a_host_that_is_cut_off_and_one_that_is_gone(
    network, cluster, shared, start_job
):
    driver, first, second = network.hosts
    job = start_job(NUMBERS)
    job.goes_on()
    assert set((shared / "hosts").read_text().split()) == {first.name, second.name}
    [executor] = roles_in(cluster.workers[0].process.pid)["executor"]
    assert kill(executor)
    job.eventually(lambda: job.restarts() == 1)
    job.goes_on()
    before = job.restarts()
    second.cut_off()
    job.eventually(lambda: job.restarts() > before)
    job.goes_on()
    second.plug_in()
    job.goes_on()
    cluster.workers[0].kill()
    job.end_well()
    assert not any(os.scandir(driver.tmp / f"penstock-files-{os.getuid()}"))


def test_who_survives_restores_from_the_copies_on_its_own_host(network, cluster, shared, start_job):
    """It has its subtasks again; and those of the lost one as well, if there is no other executor yet."""
    _, first, second = network.hosts
    job = start_job(NUMBERS // 4, **{"execution.state-recovery.from-local": "true"})
    job.goes_on()
    assert set((shared / "hosts").read_text().split()) == {first.name, second.name}
    said_before = len(job.log)
    [executor] = roles_in(cluster.workers[0].process.pid)["executor"]
    assert kill(executor)
    job.eventually(lambda: job.restarts() == 1)
    job.goes_on()
    said = job.log[said_before:]
    copied = set(re.findall(rf"shared/v\d+-s(\d)\S+ is read from its copy on this host, {second.name}\b", said))
    fetched = set(re.findall(rf"shared/v\d+-s(\d)\S+ has no copy on this host, {second.name}\b", said))
    assert copied and not copied & fetched, said[-3000:]
    job.end_well()
