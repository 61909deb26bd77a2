"""A standalone Spark cluster on this machine: a master and workers, from the classes that come with PySpark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark
from chaos.processes import end_session

import penstock

sys.path.insert(0, str(Path(__file__).parent))

from several_hosts import Host

WITHIN_S = 120


def environment(host: Host | None = None) -> dict[str, str]:
    """For everything that is started: Penstock and the tests' modules are found in all processes.

    A host has a temporary folder of its own.
    """
    of_this_machine = ("TMPDIR", "SPARK_SUBMIT_OPTS")
    return {
        **{name: value for name, value in os.environ.items() if host is None or name not in of_this_machine},
        "PYTHONPATH": str(Path(penstock.__file__).parents[1]),
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": "127.0.0.1" if host is None else host.address,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
    }


def _of_daemons(given: dict[str, str]) -> dict[str, str]:
    """Java does not look at TMPDIR; executors get this from their worker."""
    return {**given, "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={given.get('TMPDIR', '/tmp')}"}


class SparkProcess:
    """A master or a worker, in a session of its own with all that it starts."""

    def __init__(self, folder: Path, name: str, *words: str, host: Host | None = None) -> None:
        self._log = folder / f"{name}.log"
        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        command = [str(program), f"org.apache.spark.deploy.{words[0]}", *words[1:]]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command if host is None else host.command(*command),
                cwd=folder,
                env=_of_daemons(environment(host)),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """What its log says."""
        deadline = time.monotonic() + WITHIN_S
        while (found := re.search(pattern, self.log)) is None:
            assert self.process.poll() is None and time.monotonic() < deadline, self.log
            threading.Event().wait(0.1)
        return found

    def kill(self) -> None:
        """With all executors and Python processes of it, as when its machine fails."""
        end_session(self.process.pid)
        self.process.wait()


class SparkCluster:
    """A master, and workers with one core each; on hosts of their own if there are some, the first one the master's."""

    def __init__(self, folder: Path, workers: int, hosts: Sequence[Host] = ()) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._hosts = [*hosts] or [None] * (workers + 1)
        address = _address_of(self._hosts[0])
        master = ("master.Master", "--host", address, "--port", "0", "--webui-port", "0")
        self._processes = [SparkProcess(folder, "master", *master, host=self._hosts[0])]
        self.url = self._processes[0].wait_for(rf"spark://{re.escape(address)}:\d+")[0]
        self.workers = [self._start_worker(f"worker-{number}", self._hosts[number + 1]) for number in range(workers)]
        for worker in self.workers:
            worker.wait_for("Successfully registered with master")

    def _start_worker(self, name: str, host: Host | None) -> SparkProcess:
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / name))
        address = ("--host", _address_of(host), "--webui-port", "0")
        worker = SparkProcess(self._folder, name, "worker.Worker", *address, *size, self.url, host=host)
        self._processes.append(worker)
        return worker

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()


def _address_of(host: Host | None) -> str:
    return "127.0.0.1" if host is None else host.address
