"""The process of a job manager: its lock and files, its servers, its beginning and its end."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import EnvironmentSetupError
from penstock.rest import sockets
from penstock.rest.driver_server import LOOPBACK, bind_tcp, chosen_ports
from penstock.rest.polling import poll
from penstock.rest.server import LazyServer

_log = logging.getLogger(__name__)

_JOBS_END_WITHIN_S = 20
_LOCKED_WITHIN_S = 1
_LOOK_AT_SPARK_S = 5
_SLOTS_PER_CORE = 8
_FEWEST_SLOTS = 32


@dataclass(frozen=True)
class JobManagerFiles:
    """What the job manager of a port leaves for others to find, in the folder of this user."""

    port: int

    @property
    def pid(self) -> Path:
        return sockets.folder() / f"jobmanager-{self.port}.pid"

    @property
    def log(self) -> Path:
        return sockets.folder() / f"jobmanager-{self.port}.log"

    @property
    def socket(self) -> Path:
        return sockets.folder() / f"jobmanager-{self.port}"

    def running_pid(self) -> int | None:
        """The process that holds the lock; None if there is none. A file without a holder is what a dead one left."""
        try:
            with self.pid.open() as file:
                if _try_lock(file):
                    return None
                return int(file.read() or 0) or None
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Be the only job manager of the port, for all to see."""
        with self.pid.open("a+") as file:
            # Others lock it for a moment to find out whether anybody holds it.
            if poll(lambda: _try_lock(file) or None, _LOCKED_WITHIN_S) is None:
                raise EnvironmentSetupError(
                    f"a job manager for port {self.port} runs already; `penstock jobmanager status` tells, "
                    f"`penstock jobmanager stop` ends it"
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                self.pid.unlink(missing_ok=True)


def _try_lock(file: IO[str]) -> bool:
    """True if nobody else holds it; held until the file is closed, or its process ends in whatever way."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def run_job_manager(config: Configuration) -> None:
    """Serve until told to stop: by DELETE /cluster, Ctrl-C or SIGTERM."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)-5s %(name)s - %(message)s", stream=sys.stdout
    )
    for talkative in ("py4j", "uvicorn"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    host = config.get_optional(keys.REST_BIND_ADDRESS) or LOOPBACK
    listener = _bound(host, chosen_ports(config) or str(keys.REST_PORT.default))
    port = listener.getsockname()[1]
    with JobManagerFiles(port).held(), tempfile.TemporaryDirectory(prefix="penstock-jobmanager-") as folder:
        stop = threading.Event()
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, lambda *_: stop.set())
        spark = _session(config)
        for each in (signal.SIGTERM, signal.SIGINT):  # Spark has put its own in.
            signal.signal(each, lambda *_: stop.set())
        _serve(config, Path(folder), spark, listener, stop)


def _bound(host: str, ports: str) -> socket.socket:
    try:
        return bind_tcp(host, ports)
    except OSError as error:
        raise EnvironmentSetupError(
            f"{error}; `penstock jobmanager status` tells whether a job manager has it"
        ) from error


def _session(config: Configuration) -> Any:
    """The session that all jobs share. Tasks wait for Python most of the time, so there are more slots than cores."""
    cores = os.cpu_count() or 1
    slots = config.get_optional(keys.TASK_SLOTS) or max(_FEWEST_SLOTS, _SLOTS_PER_CORE * cores)
    defaults = {
        "spark.master": f"local[{slots}]",
        "spark.scheduler.mode": "FAIR",  # Each job is a pool of its own: none waits behind another.
        "spark.app.name": "penstock job manager",
    }
    settings = Configuration.from_dict({**defaults, **config.to_dict()})
    return importlib.import_module("penstock.spark.session").get_session(settings)


def _serve(config: Configuration, folder: Path, spark: Any, listener: socket.socket, stop: threading.Event) -> None:
    from penstock.rest.app import build_app
    from penstock.rest.operations import Operations
    from penstock.rest.session_cluster import SessionCluster
    from penstock.rest.submission_routes import submission_routes

    executors = importlib.import_module("penstock.spark.task_managers")
    cluster = SessionCluster(config, folder, spark, hosts=lambda: executors.task_managers(spark))
    app = build_app(
        cluster.dispatcher,
        Operations(config.get(keys.REST_STORE_DURATION)),
        stop.set,
        submission_routes(cluster),
    )
    host, port = listener.getsockname()[:2]
    own = sockets.listen(JobManagerFiles(port).socket.name)
    servers = [LazyServer(each, lambda: app).start() for each in (listener, own.listener)]
    _log.info("the job manager listens on %s:%d", host, port)
    try:
        while not stop.wait(_LOOK_AT_SPARK_S):
            if not executors.is_alive(spark):
                raise EnvironmentSetupError("Spark has ended, and with it all jobs; start the job manager again")
        _log.info("the job manager ends; %d jobs are cancelled", len(cluster.dispatcher.running()))
    finally:
        own.remove()
        cluster.close(_JOBS_END_WITHIN_S)
        for server in servers:
            server.close(1)
        if executors.is_alive(spark):
            spark.stop()
