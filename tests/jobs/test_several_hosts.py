"""A cluster of several hosts with addresses, names and temporary folders of their own; only checkpoints are shared."""

from __future__ import annotations

import os
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


def eventually(question: Callable[[], object], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not question():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
        threading.Event().wait(0.1)


def newest_checkpoint(shared: Path) -> int:
    return max((int(path.parent.name[4:]) for path in shared.glob("checkpoints/*/chk-*/_metadata")), default=0)


def test_job_survives_a_killed_executor_a_host_that_is_cut_off_and_one_that_is_gone(network, cluster, shared):
    driver, first, second = network.hosts
    log = shared / "driver.log"
    (shared / "job.py").write_text(JOB.format(shared=shared, numbers=NUMBERS))
    settings = {**SETTINGS, "execution.checkpointing.dir": f"{shared}/checkpoints"}
    words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    words += ["--master", cluster.url, "-p", "2", f"{shared}/job.py"]
    command = [sys.executable, "-m", "penstock.cli", "run", *words]
    with log.open("wb") as out:
        process = subprocess.Popen(
            driver.command(*command), env=environment(driver), stdout=out, stderr=out, start_new_session=True
        )

    def goes_on() -> None:
        reached = newest_checkpoint(shared)
        eventually(lambda: newest_checkpoint(shared) > reached + 3, process, log)

    def restarts() -> int:
        return log.read_text().count("restarting in")

    try:
        goes_on()
        assert set((shared / "hosts").read_text().split()) == {first.name, second.name}
        [executor] = roles_in(cluster.workers[0].process.pid)["executor"]
        assert kill(executor)
        eventually(lambda: restarts() == 1, process, log)
        goes_on()
        before = restarts()
        second.cut_off()
        eventually(lambda: restarts() > before, process, log)
        goes_on()
        second.plug_in()
        goes_on()
        cluster.workers[0].kill()
        assert process.wait(WITHIN_S) == 0, log.read_text()[-3000:]
    finally:
        end_session(process.pid)
        process.wait()
    lines = Counter(line for part in (shared / "out").glob("part-*") for line in part.read_text().splitlines())
    assert set(lines.values()) == {1}
    assert set(lines) == {f"({key},{count})" for key in range(10) for count in range(1, NUMBERS // 10 + 1)}
    assert not any(os.scandir(driver.tmp / f"penstock-files-{os.getuid()}"))
