"""Jobs in this process, for the tests of this folder: whole, or epoch by epoch."""

from __future__ import annotations

import itertools

import pytest

from penstock.checkpoint.handles import HandleBook
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.stage_executor import InlineExecutor, run_whole_epoch
from penstock.runtime.rows import FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.stream_task import JobDeployment
from penstock.runtime.task_host import EpochCommand, TaskHost, forget_run

run_numbers = itertools.count()


@pytest.fixture
def env():
    """An environment whose jobs run in this process."""
    configuration = Configuration().set_string("execution.target", "inline")
    return StreamExecutionEnvironment.get_execution_environment(configuration)


class MemoryStorage:
    def __init__(self):
        self.files = {}

    def write(self, name, content):
        self.files[name] = content

    def read(self, name):
        return self.files[name]


class EpochRun:
    """A job epoch by epoch. `rebuilds` throws the tasks away after every epoch and restores them for the next."""

    def __init__(self, build, parallelism, rebuilds):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        build(env.socket_text_stream("nowhere", 1))._sink("collected", CollectSinkDescription("collected"))
        self._deployment = JobDeployment("0" * 32, build_job_graph(env.get_stream_graph()))
        self._rebuilds = rebuilds
        self._storage = MemoryStorage()
        self._executor = InlineExecutor()
        self._executor.deploy(self._deployment, self._storage)
        self._book = HandleBook()
        self._epoch = 0
        self._run_id = ""

    def epoch(self, elements, now_ms=0, is_last=False):
        """What the sink collected, sorted."""
        if self._rebuilds or not self._run_id:
            self.close()
            self._run_id = f"operators {next(run_numbers)}"
        self._epoch += 1
        command = EpochCommand(
            self._epoch, self._run_id, "attempt", self._book.orders(), now_ms, keeps_state=not is_last
        )
        rows = [Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment(elements, is_last).encode())]
        host = TaskHost(self._deployment, self._storage, command)
        result = run_whole_epoch(self._executor, host, self._deployment, command, rows)
        assert result.failures == []
        self._book.complete(result.acks)
        return sorted(repr(value) for ack in result.acks for part in ack.outcome.collected.values() for value in part)

    def close(self):
        forget_run(self._run_id)


@pytest.fixture
def run_epochs():
    """`run_epochs(build, parts, parallelism, rebuilds)`: what comes out in each epoch, and at the end of input."""

    def run(build, parts, parallelism, rebuilds):
        job = EpochRun(build, parallelism, rebuilds)
        try:
            outputs = [job.epoch(part, at * 1000) for at, part in enumerate(parts)]
            return [*outputs, job.epoch([], len(parts) * 1000, is_last=True)]
        finally:
            job.close()

    return run
