"""Workers on Spark: how many there are, who stays after a failure, and what is done about one that hangs."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from penstock.datastream import MapFunction, RuntimeContext

pytestmark = pytest.mark.spark

GONE_WITHIN_S = 20
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "5",
    "restart-strategy.fixed-delay.delay": "1 ms",
    "execution.checkpointing.interval": "1 ms",
    "penstock.epoch.max-records": "2",
}


def keep_interpreter(seconds: float) -> None:
    """One call that takes about so long, and during which no other thread of the process runs."""
    steps, took_s = 100_000, 0.0
    while took_s < 0.1:
        steps *= 2
        began = time.thread_time()
        sum(range(steps))
        took_s = time.thread_time() - began
    sum(range(int(steps * seconds / took_s)))


class NotesItsProcess(MapFunction):
    """Leaves a line for every subtask that was opened: attempt, subtask, process."""

    def __init__(self, folder: Path, troubles: dict[int, str] | None = None) -> None:
        self.folder, self.troubles = folder, troubles or {}

    def open(self, runtime_context: RuntimeContext) -> None:
        line = f"{runtime_context.get_attempt_number()} {runtime_context.get_index_of_this_subtask()} {os.getpid()}\n"
        with open(self.folder / "opened", "a") as file:
            file.write(line)

    def map(self, value: int) -> int:
        trouble = self.troubles.get(value)
        mark = self.folder / f"trouble-{value}"
        if trouble and not mark.exists():
            mark.touch()
            if trouble == "raise":
                raise ValueError("once")
            if trouble == "compute":
                keep_interpreter(4)
                return value
            os.kill(os.getpid(), getattr(signal, trouble))
        return value


def opened(folder: Path) -> list[tuple[int, int, int]]:
    """Attempt, subtask and process of everybody who was opened."""
    lines = (folder / "opened").read_text().splitlines()
    return [tuple(map(int, line.split())) for line in lines]  # type: ignore[misc]


def run(env, folder: Path, troubles: dict[int, str] | None = None) -> list[tuple[int, int]]:
    numbers = env.from_sequence(1, 40).rebalance().map(NotesItsProcess(folder, troubles))
    counts = numbers.map(lambda number: (number % 4, 1)).key_by(lambda pair: pair[0])
    with counts.reduce(lambda a, b: (a[0], a[1] + b[1])).execute_and_collect() as results:
        return sorted(results)


EXPECTED = [(key, count) for key in range(4) for count in range(1, 11)]


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_as_many_processes_as_the_master_names_host_all_subtasks(on_spark, tmp_path, parallelism):
    """The session of the tests is `local[2]`."""
    assert run(on_spark(parallelism), tmp_path) == EXPECTED
    processes = {subtask: process for _, subtask, process in opened(tmp_path)}
    assert len(processes) == parallelism and len(set(processes.values())) == min(2, parallelism)
    assert all(processes[subtask] == processes[subtask % 2] for subtask in processes)


def test_exception_of_a_function_leaves_the_processes(on_spark, tmp_path):
    env = on_spark(2, RESTARTS)
    assert run(env, tmp_path, {7: "raise", 23: "raise"}) == EXPECTED
    attempts = opened(tmp_path)
    assert {attempt for attempt, _, _ in attempts} == {0, 1, 2}
    assert len({process for _, _, process in attempts}) == 2


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_job_continues_when_a_worker_is_killed_or_hangs(on_spark, tmp_path, how):
    env = on_spark(2, {**RESTARTS, "heartbeat.interval": "100 ms", "heartbeat.timeout": "3 s"})
    assert run(env, tmp_path, {20: how}) == EXPECTED
    processes = {process for _, _, process in opened(tmp_path)}
    assert len(processes) == 4  # The whole group is started again.
    deadline = time.monotonic() + GONE_WITHIN_S  # Spark gives a process that is to end two seconds.
    while any(map(_is_alive, processes)) and time.monotonic() < deadline:
        threading.Event().wait(0.1)
    assert not any(map(_is_alive, processes))


def test_a_worker_that_computes_without_an_answer_is_not_given_up(on_spark, tmp_path):
    env = on_spark(2, {**RESTARTS, "heartbeat.interval": "100 ms", "heartbeat.timeout": "1500 ms"})
    assert run(env, tmp_path, {20: "compute"}) == EXPECTED
    assert {attempt for attempt, _, _ in opened(tmp_path)} == {0}


def test_two_jobs_with_several_regions_each_find_their_slots(on_spark, tmp_path):
    clients = []
    for number in range(2):
        env = on_spark(2)
        for region in range(3):
            folder = tmp_path / f"{number}-{region}"
            folder.mkdir()
            env.from_sequence(1, 10).rebalance().map(NotesItsProcess(folder)).print()
        clients.append(env.execute_async())
    for client in clients:
        client.get_job_execution_result().result()
    assert all(len(opened(folder)) == 2 for folder in tmp_path.iterdir())


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
