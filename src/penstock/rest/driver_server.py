"""Lets other processes of this user control the jobs of this one, and shows them in a browser."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import PenstockError
from penstock.common.port_range import listen
from penstock.jobmaster.dispatcher import Dispatcher, RunningJob
from penstock.jobmaster.local_job_client import LocalJobClient
from penstock.rest import sockets
from penstock.rest.documents.process import log_tail
from penstock.rest.security.access import LOOPBACK, ServerAccess, check_binding, reached_at
from penstock.rest.server import LazyServer

if TYPE_CHECKING:
    from penstock.jobmaster.metrics.reporters import Reporters

_log = logging.getLogger(__name__)

_ANSWERS_READ_WITHIN_S = 5
"""How long a process waits at its end for those who asked for a savepoint and have not heard the result."""


_DASHBOARD_PORTS = f"{keys.REST_PORT.default}-{keys.REST_PORT.default + 200}"
"""Of these the first that is free is taken, unless the user has named others."""
NO_WEB = "PENSTOCK_NO_WEB"
"""A variable that turns the dashboard off for all programs that are started with it, such as tests."""


class DriverServer:
    """The REST API of a process whose program runs jobs: on a Unix socket, and with the dashboard on a TCP port."""

    def __init__(self, config: Configuration) -> None:
        self.dispatcher = Dispatcher(_describe, config, hosts=_spark_executors)
        self._operations: Any = None
        self._socket = sockets.listen()
        self._owner = os.getpid()
        self._servers = [LazyServer(self._socket.listener, self._app).start()]
        self._ports: set[str] = set()
        self._lock = threading.Lock()
        self._reporters: Reporters | None = None
        log_tail()
        atexit.register(self._close)

    def add(self, client: LocalJobClient, config: Configuration) -> None:
        job = self.dispatcher.add(client, config)
        self._socket.announce(job.job_id)
        client.when_done(lambda: self._socket.withdraw(job.job_id))

    def report_metrics(self, config: Configuration) -> None:
        """Start the reporters that the configuration names; most programs name none."""
        if not any(key.startswith("metrics.reporter") for key in config.key_set()):
            return
        from penstock.jobmaster.metrics.reporters import Reporters
        from penstock.jobmaster.metrics.samples import of_process

        if self._reporters is None:
            self._reporters = Reporters(lambda: of_process(self.dispatcher))
        self._reporters.start(config)

    def listen_on_tcp(self, config: Configuration) -> None:
        """Serve the ports that the user named, or a free one for the dashboard; one line says where that is."""
        is_shown = config.get(keys.WEB_UI_ENABLED) and not os.environ.get(NO_WEB)
        ports = chosen_ports(config) or (_DASHBOARD_PORTS if is_shown else None)
        if ports is None or ports in self._ports:
            return
        self._ports.add(ports)  # One that is taken is reported once, and does no harm.
        listener = bind_tcp(config, ports)
        access = ServerAccess.to(listener, config)
        self._servers.append(LazyServer(listener, self._app, access).start())
        if is_shown:
            print(f"Dashboard: {access.page(reached_at(listener, config))}", file=sys.stderr, flush=True)

    def _app(self) -> Any:
        from penstock.rest.app import build_app
        from penstock.rest.routes.operations import Operations

        with self._lock:
            if self._operations is None:
                self._operations = Operations(self.dispatcher.config.get(keys.REST_STORE_DURATION))
        return build_app(self.dispatcher, self._operations, self.dispatcher.cancel_all)

    def _close(self) -> None:
        if os.getpid() != self._owner:  # A forked child inherits our exit handlers.
            return
        if self._operations is not None:
            self._operations.wait_until_read(_ANSWERS_READ_WITHIN_S)
        if self._reporters is not None:
            self._reporters.close()
        for server in self._servers:
            server.close(1)
        self._socket.remove()


def _describe(job: RunningJob) -> dict[str, Any]:
    from penstock.rest.documents.by_path import describe

    return describe(job)


def _spark_executors() -> list[dict[str, Any]] | None:
    if "pyspark" not in sys.modules:
        return None
    known: list[dict[str, Any]] | None = importlib.import_module("penstock.spark.task_managers").task_managers_here()
    return known


_server: DriverServer | None = None
_server_lock = threading.Lock()


def make_controllable(client: LocalJobClient, config: Configuration) -> None:
    """Let `penstock list` and other verbs find the job. If that is impossible, the job runs all the same."""
    global _server
    try:
        with _server_lock:
            if _server is None:
                _server = DriverServer(config)
            _server.dispatcher.config = config
        _server.add(client, config)
        _server.listen_on_tcp(config)
        _server.report_metrics(config)
    except (OSError, PenstockError) as error:
        _log.warning("job %s cannot be controlled from other processes: %s", client.get_job_id(), error)


def chosen_ports(config: Configuration) -> str | None:
    """The port, or the ports to try, that the user named; None if there are none."""
    bind_port, port = config.get_optional(keys.REST_BIND_PORT), config.get_optional(keys.REST_PORT)
    return bind_port if bind_port is not None else None if port is None else str(port)


def bind_tcp(config: Configuration, ports: str) -> socket.socket:
    """Listen on the first free port of a list like `8081` or `50100-50200,8081` (Flink's form)."""
    host = config.get_optional(keys.REST_BIND_ADDRESS) or LOOPBACK
    check_binding(host, config)
    return listen(host, ports, keys.REST_BIND_PORT.key, backlog=64)
