"""Jobs that run until they are told to stop; the same on both targets."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from penstock.common import JobStatus, Time
from penstock.common.exceptions import JobExecutionError
from penstock.common.serialization import Encoder
from penstock.datastream.connectors import FileSink

PATIENCE_S = 60
QUICK = {"penstock.epoch.interval": "10 ms"}


class LineServer:
    """Takes one client and sends it lines."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE_S)
        self.port: int = self._listening.getsockname()[1]
        self._connection: socket.socket | None = None

    def send(self, *lines: str) -> None:
        if self._connection is None:
            self._connection, _ = self._listening.accept()
        self._connection.sendall("".join(f"{line}\n" for line in lines).encode())

    def hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def close(self) -> None:
        self.hang_up()
        self._listening.close()


@pytest.fixture
def server() -> Iterator[LineServer]:
    with contextlib.closing(LineServer()) as server:
        yield server


def wait_until(is_so: Callable[[], bool]) -> None:
    """Things that happen in other threads and processes are waited for, but never slept for."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.02)


def test_socket_word_count_gives_each_key_once_with_its_subtask(run_target, server, capsys):
    env = run_target(1, QUICK)
    (
        env.socket_text_stream("127.0.0.1", server.port)
        .flat_map(lambda line: line.split())
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .time_window(Time.milliseconds(500))
        .sum(1)
        .set_parallelism(3)
        .print()
    )
    job = env.execute_async("Socket Window WordCount")
    try:
        server.send("1 2 3 4 5 6 7 8 9 10")
        printed: list[str] = []

        def has_all() -> bool:
            printed.extend(capsys.readouterr().out.splitlines())
            return len(printed) >= 10

        wait_until(has_all)
        assert all(re.fullmatch(r"[123]> \(\d+,1\)", line) for line in printed), printed
        assert sorted(int(line.partition("(")[2].partition(",")[0]) for line in printed) == list(range(1, 11))
        assert len({line[0] for line in printed}) > 1, "the keys are spread over the subtasks"
    finally:
        job.cancel().result()


def test_end_of_the_stream_ends_the_job(run_target, server, capsys):
    env = run_target(1, QUICK)
    env.socket_text_stream("127.0.0.1", server.port).map(str.upper).print()
    job = env.execute_async()
    server.send("one", "two")
    server.hang_up()
    job.get_job_execution_result().result()
    assert capsys.readouterr().out.split() == ["ONE", "TWO"]
    assert job.get_job_status().result() is JobStatus.FINISHED


def test_elements_come_while_the_job_runs_and_closing_ends_it(run_target, server):
    env = run_target(1, QUICK)
    sums = env.socket_text_stream("127.0.0.1", server.port).map(int).key_by(lambda _: 0).reduce(lambda a, b: a + b)
    with sums.execute_and_collect() as collected:
        seen = []
        for number in (1, 2, 3):
            server.send(str(number))
            seen.append(next(collected))
    assert seen == [1, 3, 6]


def test_running_job_reports_its_status_and_can_be_cancelled(run_target, server):
    env = run_target(2, QUICK)
    env.socket_text_stream("127.0.0.1", server.port).key_by(lambda line: line).map(lambda line: line).print()
    job = env.execute_async("endless")
    server.send("hello")
    wait_until(lambda: job.get_job_status().result() is JobStatus.RUNNING)
    assert re.fullmatch(r"[0-9a-f]{32}", str(job.get_job_id()))
    job.cancel().result()
    assert job.get_job_status().result() is JobStatus.CANCELED
    with pytest.raises(JobExecutionError, match=rf"job 'endless' \({job.get_job_id()}\) was cancelled"):
        job.get_job_execution_result().result()


def test_files_of_a_job_without_checkpoints_can_be_read_at_once_and_outlive_it(run_target, server, tmp_path):
    env = run_target(1, QUICK)
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    env.socket_text_stream("127.0.0.1", server.port).sink_to(sink)
    job = env.execute_async()
    server.send("hello")
    wait_until(lambda: [path.read_text() for path in tmp_path.rglob(".part-*")] == ["hello\n"])
    job.cancel().result()
    assert [path.read_text() for path in tmp_path.rglob(".part-*")] == ["hello\n"]


@pytest.mark.spark
def test_cancelling_stops_a_function_that_never_returns(on_spark):
    env = on_spark()

    def never(value):
        threading.Event().wait()
        return value

    env.from_collection([1]).map(never).print()
    job = env.execute_async()
    wait_until(lambda: job.master.execution_graph.job_vertices[0].subtasks[0].state.value == "INITIALIZING")
    job.cancel().result()
    assert job.get_job_status().result() is JobStatus.CANCELED


def test_finished_job_reports_its_result(run_target):
    env = run_target()
    env.from_collection([1, 2]).print()
    job = env.execute_async("short")
    result = job.get_job_execution_result().result()
    assert str(result.get_job_id()) == str(job.get_job_id())
    assert result.get_net_runtime() >= 0
    assert job.get_job_status().result() is JobStatus.FINISHED


def test_two_jobs_run_side_by_side(run_target, server, capsys):
    env = run_target(1, QUICK)
    env.socket_text_stream("127.0.0.1", server.port).print()
    endless = env.execute_async("endless")
    server.send("first")
    other = run_target()
    other.from_collection(["second"]).print()
    other.execute("short")
    server.hang_up()
    endless.get_job_execution_result().result()
    assert sorted(capsys.readouterr().out.split()) == ["first", "second"]


def test_collecting_with_a_limit_ends_the_job(run_target, server):
    env = run_target(1, QUICK)
    stream = env.socket_text_stream("127.0.0.1", server.port)
    threading.Thread(target=server.send, args=[str(number) for number in range(10)], daemon=True).start()
    assert stream.execute_and_collect("some", 3) == ["0", "1", "2"]


def test_limit_above_the_number_of_elements_gives_all(run_target):
    assert run_target().from_collection([1, 2]).execute_and_collect(limit=10) == [1, 2]


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_must_be_positive(run_target, limit):
    with pytest.raises(ValueError, match=f"limit must be positive, got {limit}"):
        run_target().from_collection([1]).execute_and_collect(limit=limit)


def test_socket_that_refuses_fails_the_job(run_target):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    env = run_target()
    env.socket_text_stream("127.0.0.1", port).print()
    message = rf"socket source 127\.0\.0\.1:{port}: cannot connect \(Connection refused\); start a server there first"
    with pytest.raises(JobExecutionError, match=message):
        env.execute()
