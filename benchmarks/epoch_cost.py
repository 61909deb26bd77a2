"""What an epoch costs in time and CPU time, process by process, without Spark: one record at a time.

    python -m benchmarks.epoch_cost --parallelism 2 --epochs 2000

The job of benchmarks/latency_job.py runs on real workers, in processes that are forked here instead of by Spark. A
record is sent when the result of the last one has come, so that every epoch has one.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import os
import pstats
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from benchmarks.latency_job import build
from benchmarks.latency_run import result_in
from benchmarks.process_tree import process_ids
from penstock.checkpoint.folders import Folder
from penstock.checkpoint.savepoints import one_after_the_other
from penstock.common.configuration import Configuration
from penstock.common.job_id import JobID
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import TakeOutput, TaskDone
from penstock.jobmaster.execution.worker_group import GroupSettings, WorkerGroup
from penstock.jobmaster.job_master import JobMaster
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.resident_worker import ResidentWorker, WorkerPlace
from penstock.runtime.rows import Row
from penstock.runtime.thread_dump import ProcessThreads

PROFILE = "EPOCH_COST_PROFILE"
WARM_UP = 500
WINDOW = 100
"""CPU time is taken over so many epochs: on a busy machine the least of several is what comes closest."""
KEYS = 10
_PROC = Path("/proc")


class ForkedWorkers:
    """Runs a region in workers that are forked from this process."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._group: WorkerGroup | None = None

    def deploy(self, deployment: JobDeployment, folder: Folder, on_loss: Callable[[], None]) -> None:
        if self._group is None or self._group.is_broken:
            self._group = WorkerGroup(self._workers, GroupSettings(), on_loss)
            for place in self._group.places():
                if os.fork() == 0:
                    _host(place)
            assert self._group.wait_until_registered(30), "workers have not called"
            self._group.introduce(30)
        failures = self._group.deploy(encode_in_driver(deployment), folder)
        assert not failures, failures

    @property
    def group(self) -> WorkerGroup:
        assert self._group is not None, "the region is deployed first"
        return self._group

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        return self.group.run_epoch(command, source_rows)

    def check(self) -> None:
        self.group.check()

    def executors(self) -> tuple[str, int]:
        return "forked", 1

    def sibling(self) -> ForkedWorkers:
        raise AssertionError("the job has one region")

    def show_output(self, take: TakeOutput) -> None:
        """Functions write where the program does."""

    def tasks_done(self) -> list[TaskDone]:
        return []

    def threads(self) -> list[ProcessThreads]:
        return []

    def run_copies(self, copies: Iterable[Any]) -> list[Any]:
        return one_after_the_other(copies)

    def end_run(self) -> None:
        if not self.group.release():
            self.group.lose("it was not released")

    def end_region(self) -> None:
        self.group.close(is_over=True)

    def cancel(self) -> None:
        self.group.cancel()

    def close(self) -> None:
        self.group.hang_up()


def _host(place: WorkerPlace) -> None:
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # As in a Spark task.
    _profiled(f"worker {place.index}", ResidentWorker(place).run)
    os._exit(0)


def _profiled(name: str, run: Callable[[], object]) -> None:
    if PROFILE not in os.environ:
        run()
        return
    profile = cProfile.Profile(time.thread_time)
    try:
        profile.runcall(run)
    finally:
        with Path(os.environ[PROFILE], f"{name}.txt").open("w") as out:
            pstats.Stats(profile, stream=out).sort_stats("tottime").print_stats(60)


def run_job(port: int, parallelism: int, settings: list[str]) -> None:
    config = Configuration.from_dict(dict(each.split("=", 1) for each in settings))
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
    build(env, port).print()
    job = JobMaster(
        JobID.generate(), build_job_graph(env.get_stream_graph()), config, ForkedWorkers(min(2, parallelism))
    )
    _profiled("driver", job.run)


def cpu_ms(session: int) -> dict[int, float]:
    """CPU time by process of a session."""
    found = {}
    for process in process_ids(session):
        tasks = (_PROC / str(process) / "task").iterdir()
        found[process] = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6
    return found


class Feeder:
    """Sends records one at a time, each when the result of the last one has come."""

    def __init__(self, connection: socket.socket, results: IO[str]) -> None:
        self._connection = connection
        self._results = results
        self._sent = 0

    def feed(self, records: int) -> list[float]:
        """Milliseconds from sending each record to its result."""
        return [self._feed_one() for _ in range(records)]

    def _feed_one(self) -> float:
        began = time.perf_counter()
        self._connection.sendall(b"key-%d\n" % (self._sent % KEYS))
        self._sent += 1
        while result_in(self._results.readline().strip()) is None:
            pass
        return (time.perf_counter() - began) * 1000


def measure(parsed: argparse.Namespace) -> None:
    environment = {**os.environ, **({PROFILE: parsed.profile} if parsed.profile else {})}
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-m", "benchmarks.epoch_cost", f"--port={server.getsockname()[1]}"]
        command += [f"--parallelism={parsed.parallelism}", "--config=penstock.epoch.interval=0 ms"]
        command += [f"--config={each}" for each in parsed.config]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True, start_new_session=True)
        assert child.stdout is not None
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        took: list[float] = []
        costs: list[dict[int, float]] = []
        with connection:
            feeder = Feeder(connection, child.stdout)
            feeder.feed(WARM_UP)
            for _ in range(max(1, parsed.epochs // WINDOW)):
                before = cpu_ms(child.pid)
                took += feeder.feed(WINDOW)
                after = cpu_ms(child.pid)
                costs.append({process: (ms - before[process]) / WINDOW for process, ms in after.items()})
        child.wait()
    show(child.pid, sorted(took), sorted(costs, key=lambda each: sum(each.values())))


def show(driver: int, took: list[float], costs: list[dict[int, float]]) -> None:
    print(f"milliseconds: median {statistics.median(took):.2f}, a tenth below {took[len(took) // 10]:.2f}")
    for name, cost in (("least", costs[0]), ("median", costs[len(costs) // 2])):
        parts = ", ".join(f"{'driver' if each == driver else 'worker'} {ms:.2f}" for each, ms in cost.items())
        print(f"CPU milliseconds of an epoch, {name} of {len(costs)} times: {sum(cost.values()):.2f} ({parts})")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epoch_cost", description=__doc__)
    parser.add_argument("--parallelism", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--epochs", type=int, default=2000, help="(%(default)s)")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of the job")
    parser.add_argument("--profile", metavar="FOLDER", help="write profiles of driver and workers there")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.port is None:
        measure(parsed)
    else:
        run_job(parsed.port, parsed.parallelism, parsed.config)


if __name__ == "__main__":
    main()
