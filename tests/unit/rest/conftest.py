"""A real job that waits for input, and its REST API on the Unix socket of this process; a session cluster over TCP."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.cluster.session_cluster import SessionCluster
from penstock.cluster.submission_routes import submission_routes
from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.rest import sockets
from penstock.rest.app import build_app
from penstock.rest.client import Address, RestClient
from penstock.rest.routes.operations import Operations
from penstock.rest.security.access import ServerAccess
from penstock.rest.security.access_token import AccessToken, own_token
from penstock.rest.server import LazyServer


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


@dataclass
class Cluster:
    """A job manager in this process, whose jobs run without Spark; clients reach it over TCP."""

    port: int
    has_ended: threading.Event
    session: SessionCluster

    @property
    def token(self) -> AccessToken:
        token = own_token(self.port)
        assert token is not None
        return token

    @property
    def rest(self) -> RestClient:
        return RestClient(Address(host="127.0.0.1", port=self.port))

    def environment(self, **settings: str) -> StreamExecutionEnvironment:
        given = {"execution.target": "remote", "rest.address": "127.0.0.1", "rest.port": str(self.port)}
        config = Configuration.from_dict({**given, **{key.replace("_", "."): value for key, value in settings.items()}})
        return StreamExecutionEnvironment.get_execution_environment(config)


StartCluster = Callable[..., Cluster]


@contextlib.contextmanager
def clusters(folder: Path) -> Iterator[StartCluster]:
    with contextlib.ExitStack() as stack:

        def start(settings: dict[str, str] | None = None) -> Cluster:
            own = folder / f"cluster-{len(list(folder.iterdir()))}"
            config = Configuration.from_dict(settings or {})
            session = SessionCluster(config, own, target="inline")
            has_ended = threading.Event()
            app = build_app(session.dispatcher, Operations(60_000), has_ended.set, submission_routes(session))
            listener = stack.enter_context(contextlib.closing(socket.create_server(("127.0.0.1", 0))))
            server = LazyServer(listener, lambda: app, ServerAccess.to(listener, config)).start()
            stack.callback(server.close, 5)
            stack.callback(session.close, 5)
            return Cluster(listener.getsockname()[1], has_ended, session)

        yield start


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    """`start_cluster(settings)` starts a job manager."""
    with clusters(tmp_path) as start:
        yield start


@pytest.fixture
def cluster(start_cluster: StartCluster) -> Cluster:
    return start_cluster()


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for many tests that change nothing in it."""
    with clusters(tmp_path_factory.mktemp("clusters")) as start:
        yield start({"web.submit.enable": "true"})
