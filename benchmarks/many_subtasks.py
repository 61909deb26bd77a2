"""What an epoch costs the driver, by the number of subtasks: the real job master against workers that answer at once.

    python -m benchmarks.many_subtasks

A source and a keyed count, without the work. Time is the CPU time of the driver from the answers of one epoch to the
commands of the next; bytes are all that it sends and gets. Both should be the same for each subtask, however many.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

from penstock.checkpoint.savepoints import one_after_the_other
from penstock.common.clocks import wall_clock_ms
from penstock.common.configuration import Configuration
from penstock.common.job_id import JobID
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors import DiscardingSink
from penstock.graph.job_graph import build_job_graph
from penstock.jobmaster.execution.stage_executor import TakeOutput, TaskDone
from penstock.jobmaster.job_master import JobMaster
from penstock.runtime.protocol import EpochCommand, EpochOutcome, JobDeployment, TaskAck
from penstock.runtime.rows import ACKNOWLEDGEMENT, Row
from penstock.runtime.saved_state import SHARED, StateHandle
from penstock.runtime.state.table import Extent
from penstock.runtime.thread_dump import ProcessThreads

SUBTASKS_PER_WORKER = 8
HEADER_BYTES = 40


class AnsweringWorkers:
    """In the place of workers: they acknowledge, and do nothing."""

    def __init__(self) -> None:
        self.driver_ms: list[float] = []
        self.bytes: list[int] = []
        self._answered: float | None = None

    def deploy(self, deployment: JobDeployment, folder: Any, on_loss: Callable[[], None]) -> None:
        self._subtasks = [
            (vertex.id, subtask) for vertex in deployment.vertices() for subtask in range(vertex.parallelism)
        ]
        self._workers = max(1, len(self._subtasks) // SUBTASKS_PER_WORKER)

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        sent = sum(len(part.encode()) + HEADER_BYTES for part in command.by_worker(self._workers))
        sent += sum(len(row.chunk) + HEADER_BYTES for row in source_rows)
        asked = time.process_time()
        rows = [Row(ACKNOWLEDGEMENT, at[1], 0, 0, 0, _ack(command, *at).encode()) for at in self._subtasks]
        sent += sum(len(row.chunk) + HEADER_BYTES for row in rows)
        if self._answered is not None:
            self.driver_ms.append((asked - self._answered) * 1000)
            self.bytes.append(sent)
        self._answered = time.process_time()
        return rows

    def show_output(self, take: TakeOutput) -> None:
        """They write nothing."""

    def tasks_done(self) -> list[TaskDone]:
        return []

    def threads(self) -> list[ProcessThreads]:
        return []

    def executors(self) -> tuple[str, int]:
        return "nobody", 1

    def sibling(self) -> AnsweringWorkers:
        raise AssertionError("the job has one region")

    def check(self) -> None:
        """They never go."""

    def run_copies(self, copies: Iterable[Any]) -> list[Any]:
        return one_after_the_other(copies)

    end_run = end_region = cancel = close = check


def _ack(command: EpochCommand, vertex: int, subtask: int) -> TaskAck:
    outcome = EpochOutcome(command.is_last, None, 1, 1, 0, [], {}, {}, {})
    handle = None
    if command.is_checkpoint:
        name = f"{SHARED}/v{vertex}-s{subtask}-e{command.epoch}"
        handle = StateHandle(name, command.epoch, 100, Extent.ALL, frozenset({("0" * 32, "keyed", "count")}))
    now_ms = wall_clock_ms()
    return TaskAck(vertex, subtask, command.epoch, handle, outcome, now_ms, now_ms)


def measure(parallelism: int, epochs: int, checkpoint_interval: str | None = None) -> AnsweringWorkers:
    """Run a job of two vertices with this parallelism."""
    settings = {"penstock.epoch.max-records": "1", "penstock.epoch.interval": "0 ms"}
    if checkpoint_interval is not None:
        settings["execution.checkpointing.interval"] = checkpoint_interval
    config = Configuration.from_dict(settings)
    env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
    numbers = env.from_sequence(1, parallelism * epochs).map(lambda number: (number, 1))
    numbers.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).sink_to(DiscardingSink())
    workers = AnsweringWorkers()
    JobMaster(JobID.generate(), build_job_graph(env.get_stream_graph()), config, workers).run()
    return workers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_subtasks", description=__doc__)
    parser.add_argument("--subtasks", default="10,100,1000", help="how many, comma separated (%(default)s)")
    parser.add_argument("--epochs", type=int, default=100, help="(%(default)s)")
    parsed = parser.parse_args()
    print("subtasks  ms an epoch  µs a subtask  bytes a subtask  with a checkpoint: ms, bytes a subtask")
    for subtasks in map(int, parsed.subtasks.split(",")):
        plain = measure(subtasks // 2, parsed.epochs)
        saved = measure(subtasks // 2, parsed.epochs, "1 ms")
        ms, size = statistics.median(plain.driver_ms), statistics.median(plain.bytes)
        saved_ms, saved_size = statistics.median(saved.driver_ms), statistics.median(saved.bytes)
        print(
            f"{subtasks:8,}  {ms:11.2f}  {ms * 1000 / subtasks:12.1f}  {size / subtasks:15.0f}  "
            f"{saved_ms:17.2f}  {saved_size / subtasks:.0f}"
        )


if __name__ == "__main__":
    main()
