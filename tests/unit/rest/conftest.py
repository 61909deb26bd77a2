"""A real job that waits for input, and its REST API on the Unix socket of this process."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.rest import sockets
from penstock.rest.client import Address, RestClient


@dataclass
class WaitingJob:
    """Counts the words that `send` gives it."""

    client: Any
    connection: socket.socket
    rest: RestClient

    @property
    def id(self) -> str:
        return str(self.client.get_job_id())

    @property
    def path(self) -> str:
        return f"/jobs/{self.id}"

    def get(self, path: str = "", **query: str) -> Any:
        return self.rest.get(self.path + path, **query)

    def send(self, text: str) -> None:
        self.connection.sendall(text.encode())

    def end(self) -> None:
        """Let the source end, and wait for the job."""
        self.connection.close()
        self.client.get_job_execution_result().result()


def counted(text: Any) -> Any:
    return text.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1)


StartJob = Callable[..., WaitingJob]


def rest_of(job_id: str) -> RestClient:
    path = sockets.socket_of(job_id)
    assert path is not None
    return RestClient(Address(path))


@pytest.fixture
def start_job() -> Iterator[StartJob]:
    """`start_job(settings, define)` starts a job on text from a socket; what runs at the end is cancelled."""
    with contextlib.ExitStack() as stack:

        def start(settings: dict[str, str] | None = None, define: Any = None) -> WaitingJob:
            server = stack.enter_context(contextlib.closing(socket.create_server(("localhost", 0))))
            server.settimeout(30)
            config = Configuration.from_dict({"execution.target": "inline", **(settings or {})})
            env = StreamExecutionEnvironment.get_execution_environment(config)
            text = env.socket_text_stream("localhost", server.getsockname()[1])
            (define or counted)(text).print()
            client: Any = env.execute_async("waiting")
            connection = stack.enter_context(contextlib.closing(server.accept()[0]))
            stack.callback(lambda: client.cancel().result())
            return WaitingJob(client, connection, rest_of(str(client.get_job_id())))

        yield start


@pytest.fixture
def job(start_job: StartJob) -> WaitingJob:
    return start_job()


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """`eventually(question)` gives the first answer that is true."""

    def ask(question: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + 30
        while not (answer := question()):
            assert time.monotonic() < deadline, "it never came to be"
            threading.Event().wait(0.02)
        return answer

    return ask
