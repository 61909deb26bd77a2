"""What is left when a job ends, restarts or cannot begin."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.common import RestartStrategies
from penstock.datastream import MapFunction, RuntimeContext


def test_a_working_folder_that_cannot_be_made_fails_the_job_at_once(run_target: Any) -> None:
    env = run_target(1, {"penstock.working-dir": "/proc/not-a-folder"})
    with pytest.raises(OSError, match="not-a-folder"):
        list(env.from_collection([1]).map(lambda x: x).execute_and_collect())


def test_a_limit_does_not_wait_for_one_element_more(run_target: Any) -> None:
    with socket.create_server(("localhost", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.sendall(b"a\nb\n")
            stop.wait(30)
            connection.close()

        stop = threading.Event()
        threading.Thread(target=serve, daemon=True).start()
        lines = run_target().socket_text_stream("localhost", server.getsockname()[1])
        assert lines.map(str.upper).execute_and_collect(limit=2) == ["A", "B"]
        stop.set()


def test_a_limit_of_nothing_is_refused_before_the_job_starts(run_target: Any) -> None:
    with pytest.raises(ValueError, match="limit must be positive, got 0"):
        run_target().from_collection([1]).execute_and_collect(limit=0)


@pytest.mark.parametrize("kind", ["flat_map", "filter", "map"])
def test_chains_of_a_hundred_operators_run(run_target: Any, kind: str) -> None:
    stream = run_target().from_collection([1, 2, 3])
    for _ in range(100):
        match kind:
            case "flat_map":
                stream = stream.flat_map(lambda x: [x])
            case "filter":
                stream = stream.filter(lambda x: x != 2)
            case "map":
                stream = stream.map(lambda x: x + 1)
    assert list(stream.execute_and_collect()) == {"flat_map": [1, 2, 3], "filter": [1, 3], "map": [101, 102, 103]}[kind]


class NotesItsEnd(MapFunction):
    """Writes a file for every object that was opened and for every one that was closed."""

    def __init__(self, folder: Path, failures: int) -> None:
        self.folder, self.failures = folder, failures

    def open(self, runtime_context: RuntimeContext) -> None:
        self.name = f"{os.getpid()}-{time.monotonic_ns()}"
        (self.folder / f"opened-{self.name}").touch()

    def map(self, value: Any) -> Any:
        if len(list(self.folder.glob("opened-*"))) <= self.failures:
            raise ValueError("not yet")
        return value

    def close(self) -> None:
        (self.folder / f"closed-{self.name}").touch()


def wait_until(condition: Any) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(condition())


def test_functions_are_closed_and_their_processes_gone_after_restarts_and_cancel(
    run_target: Any, tmp_path: Path
) -> None:
    with socket.create_server(("localhost", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            connection, _ = server.accept()
            connections.append(connection)
            connection.sendall(b"a\n")

        threading.Thread(target=serve, daemon=True).start()
        env = run_target()
        env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 10))
        env.socket_text_stream("localhost", server.getsockname()[1]).map(NotesItsEnd(tmp_path, failures=2)).print()
        client = env.execute_async()
        assert wait_until(lambda: len(list(tmp_path.glob("opened-*"))) == 3)
        assert wait_until(lambda: client.get_job_status().result().name == "RUNNING")
        client.cancel().result()
    opened = {path.name.partition("-")[2] for path in tmp_path.glob("opened-*")}
    assert wait_until(lambda: {path.name.partition("-")[2] for path in tmp_path.glob("closed-*")} == opened)
    processes = {int(name.partition("-")[0]) for name in opened} - {os.getpid()}
    assert wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
