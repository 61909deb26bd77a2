"""What functions print and log in other processes arrives: workers are processes of their own here, without Spark."""

from __future__ import annotations

import contextlib
import logging
import pickle
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import pytest
from pyspark.accumulators import Accumulator

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.functions import MapFunction
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.jobmaster.execution.worker_group import GroupSettings, WorkerGroup
from penstock.jobmaster.job_log import JobLog
from penstock.jobmaster.sinks.job_output import JobOutput
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.rows import FAILURE, FROM_DRIVER, OUTPUT, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.task_output import LoggedRecord, PrintedLine, read_written
from penstock.spark.batch_executor import TasksDone
from penstock.spark.batch_task import StageTask
from penstock.testing.memory_folder import MemoryFolder

WITHIN_S = 60
HOST = """
import pickle, sys
from penstock.spark.resident_task import host_worker
host_worker([pickle.loads(sys.stdin.buffer.read())])
"""
LEVELS = (("", logging.WARNING), ("fish", logging.INFO))


class Talking(MapFunction):
    def map(self, value: Any) -> Any:
        print("printed", value)
        logging.getLogger("fish").info("logged %s", value)
        logging.getLogger("other").info("too little to tell")
        if value == "bad":
            raise ValueError("a bad word")
        return value

    def close(self) -> None:
        print("closed")


def graph_of(mode: str) -> JobGraph:
    config = Configuration.from_dict({"execution.runtime-mode": mode})
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(2)
    env.from_sequence(1, 4).rebalance().map(Talking()).print()
    return build_job_graph(env.get_stream_graph())


@contextlib.contextmanager
def workers(log: JobLog) -> Iterator[WorkerGroup]:
    group = WorkerGroup(2, GroupSettings(), lambda: None, log.take)
    hosts = []
    for place in group.places():
        host = subprocess.Popen([sys.executable, "-c", HOST], stdin=subprocess.PIPE)
        assert host.stdin is not None
        host.stdin.write(pickle.dumps(place))
        host.stdin.close()
        hosts.append(host)
    try:
        assert group.wait_until_registered(WITHIN_S)
        group.introduce(WITHIN_S)
        yield group
        assert group.release()
    finally:
        group.close()
        for host in hosts:
            host.wait(WITHIN_S)
        group.hang_up()


def run(records: list[Any]) -> tuple[list[tuple[bool, str]], JobLog, list[Row]]:
    output = JobOutput()
    shown: list[tuple[bool, str]] = []
    output.write_lines = shown.extend
    log = JobLog("ab" * 16, "talk", Configuration(), output)
    with workers(log) as group:
        deployment = JobDeployment("0" * 32, graph_of("STREAMING"), log_levels=LEVELS)
        assert group.deploy(encode_in_driver(deployment), MemoryFolder()) == []
        source = Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment(records, False).encode())
        rows = group.run_epoch(EpochCommand(1, 0), [source])
    log.close()
    return shown, log, rows


def test_lines_and_records_arrive_once_with_where_they_were_written(caplog):
    caplog.set_level(logging.INFO)
    shown, log, _ = run([1, 2, 3, 4])
    assert sorted(shown) == [(False, "closed")] * 2 + [(False, f"printed {at}") for at in (1, 2, 3, 4)]
    told = [record for record in caplog.records if record.name in ("fish", "other")]
    assert sorted(record.getMessage() for record in told) == [f"logged {at}" for at in (1, 2, 3, 4)]
    assert {record.subtask for record in told} == {0, 1}  # type: ignore[attr-defined]
    assert sum("logged" in text for _, text in log.lines()) == 4


def test_what_was_written_before_a_failure_arrives_too():
    shown, _, rows = run(["bad"])
    assert (False, "printed bad") in shown
    assert any(row.vertex == FAILURE for row in rows)


def test_tasks_of_a_batch_job_bring_it_with_their_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    # This process is not a worker: others of its tests need its folders.
    monkeypatch.setattr("penstock.spark.resident_task.remove_own_folders", lambda: None)
    deployment = JobDeployment("0" * 32, graph_of("BATCH"), log_levels=LEVELS)
    broadcast, done = SimpleNamespace(value=encode_in_driver(deployment)), Accumulator(-1, {}, TasksDone())
    rows = [
        Row(0, subtask, FROM_DRIVER, 0, 0, SourceAssignment(part, True).encode())
        for subtask, part in enumerate([[1, 2], [3, 4]])
    ]
    before = logging.root.handlers[:]
    for stage in range(len(deployment.stages())):
        task = StageTask(broadcast, MemoryFolder(), EpochCommand(1, 0, is_last=True), (stage,), 1, done)
        rows = list(cloudpickle.loads(cloudpickle.dumps(task))(0, rows))
    written = [each for row in rows if row.vertex == OUTPUT for each in read_written(row.chunk)]
    assert sorted(each.text for each in written if isinstance(each, PrintedLine)) == [
        "closed", "closed", "printed 1", "printed 2", "printed 3", "printed 4",
    ]  # fmt: skip
    assert sum(isinstance(each, LoggedRecord) for each in written) == 4
    assert capsys.readouterr().out == "" and logging.root.handlers == before
    assert {at: each.records_in for at, each in done.value.items()} == {(0, 0): 2, (0, 1): 2, (1, 0): 2, (1, 1): 2}
