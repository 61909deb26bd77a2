"""A driver and workers that stay, without Spark: each worker is a thread of this process, with real sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable

from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph, build_job_graph
from penstock.jobmaster.execution.worker_group import GroupSettings, WorkerGroup
from penstock.runtime.chunk import encode_in_driver
from penstock.runtime.protocol import EpochCommand, JobDeployment, TaskAck
from penstock.runtime.resident_worker import ResidentWorker, WorkerPlace
from penstock.runtime.rows import ACKNOWLEDGEMENT, FROM_DRIVER, Row
from penstock.runtime.sources import SourceAssignment
from penstock.runtime.worker import Worker
from penstock.testing.memory_folder import MemoryFolder

WITHIN_S = 30
ONE_MACHINE = GroupSettings()
OVER_TCP = GroupSettings(host="127.0.0.1")


def graph_of(build: Callable, parallelism: int) -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    build(env.socket_text_stream("nowhere", 1))._sink("collected", CollectSinkDescription("collected"))
    return build_job_graph(env.get_stream_graph())


def counted(stream):
    return stream.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def counted_behind_two_exchanges(stream):
    return counted(stream.rebalance().map(lambda word: word.upper()).rescale().map(lambda word: word.lower()))


def failing_at_bad(stream):
    def check(word: str) -> str:
        if word == "bad":
            raise ValueError("a bad word")
        return word

    return counted(stream.rebalance().map(check))


class Group:
    """A group whose workers are threads."""

    def __init__(
        self,
        workers: int,
        group_settings: GroupSettings = ONE_MACHINE,
        start: Callable[[list[WorkerPlace]], None] | None = None,
        former_hosts: tuple[str, ...] = (),
    ) -> None:
        self.losses: list[bool] = []
        self.ended: list[int] = []
        self.group = WorkerGroup(workers, group_settings, lambda: self.losses.append(True))
        self.workers: dict[int, ResidentWorker] = {}
        self._epoch = self._previous = 0
        self.threads: list[threading.Thread] = []
        (start or self._start)(self.group.places())
        assert self.group.wait_until_registered(WITHIN_S)
        self.group.introduce(WITHIN_S, former_hosts)

    def _start(self, places: list[WorkerPlace]) -> None:
        self.threads = [threading.Thread(target=self._host, args=(at,), name=f"called {at.index}") for at in places]
        for thread in self.threads:
            thread.start()

    def _host(self, place: WorkerPlace) -> None:
        worker = self.workers[place.index] = ResidentWorker(place, end_process=self.ended.append)
        worker.run()

    def deploy(self, graph: JobGraph) -> list[Row]:
        self._previous = 0
        return self.group.deploy(encode_in_driver(deployment_of(graph)), MemoryFolder())

    def run(self, records: list[str], is_report: bool = False) -> list[Row]:
        self._epoch += 1
        command = EpochCommand(self._epoch, 0, previous_epoch=self._previous, is_report=is_report)
        rows = self.group.run_epoch(command, [source_row(records)])
        self._previous = self._epoch
        return rows

    def close(self) -> None:
        self.group.close()
        for thread in self.threads:
            thread.join(WITHIN_S)
            assert not thread.is_alive()
        self.group.hang_up()


def deployment_of(graph: JobGraph) -> JobDeployment:
    return JobDeployment("0" * 32, graph)


def source_row(records: list[str]) -> Row:
    return Row(0, 0, FROM_DRIVER, 0, 0, SourceAssignment(records, False).encode())


def collected(rows: list[Row]) -> dict[int, list]:
    """What each subtask of the sink has got, in order."""
    acks = [TaskAck.decode(row.chunk) for row in rows if row.vertex == ACKNOWLEDGEMENT]
    return {ack.subtask: values for ack in acks for values in ack.outcome.collected.values()}


def acknowledged(rows: list[Row]) -> set[tuple[int, int]]:
    acks = [TaskAck.decode(row.chunk) for row in rows if row.vertex == ACKNOWLEDGEMENT]
    assert len({(ack.vertex, ack.subtask) for ack in acks}) == len(acks)
    return {(ack.vertex, ack.subtask) for ack in acks}


def alone(graph: JobGraph, epochs: list[list[str]]) -> list[dict[int, list]]:
    """What a single worker without sockets gives for each epoch."""
    worker = Worker(deployment_of(graph), MemoryFolder())
    results = []
    for number, records in enumerate(epochs, start=1):
        command = EpochCommand(number, 0, previous_epoch=number - 1)
        results.append(collected(list(worker.run_epoch(command, [source_row(records)]))))
    worker.close()
    return results
