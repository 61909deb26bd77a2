"""The process of a job manager: its lock and files, its servers, its beginning and its end."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import queue
import re
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import EnvironmentSetupError, LeadershipLostError
from penstock.common.redaction import RedactingFormatter
from penstock.rest import sockets
from penstock.rest.documents.process import log_tail
from penstock.rest.driver_server import bind_tcp, chosen_ports
from penstock.rest.polling import poll
from penstock.rest.security.access import ServerAccess, reached_at
from penstock.rest.server import LazyServer

if TYPE_CHECKING:
    from penstock.cluster.contender import Contender
    from penstock.cluster.high_availability.services import HighAvailability
    from penstock.cluster.leader import Leader

_log = logging.getLogger(__name__)

_PID_FILE = re.compile(r"jobmanager-(\d+)\.pid")
_LOCKED_WITHIN_S = 1
_LOOK_AT_SPARK_S = 5


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
        """The process that holds the lock; None if there is none: one that died leaves a file that nobody holds."""
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
        # Others lock it for a moment to find out whether anybody holds it.
        locked = poll(self._locked, _LOCKED_WITHIN_S)
        if locked is None:
            raise EnvironmentSetupError(
                f"a job manager for port {self.port} is already running; `penstock jobmanager status` shows it, "
                f"`penstock jobmanager stop` ends it"
            )
        with locked as file:
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                self.pid.unlink(missing_ok=True)

    def _locked(self) -> IO[str] | None:
        """The file, if nobody else holds it."""
        file = self.pid.open("a+")
        # A job manager that ends removes its file. Whoever has opened it before would hold a file that nobody finds.
        if _try_lock(file) and _is_at(file, self.pid):
            return file
        file.close()
        return None


def running_job_managers() -> list[JobManagerFiles]:
    """Those of this user on this machine, by port."""
    ports = sorted(
        int(found.group(1)) for each in sockets.folder().iterdir() if (found := _PID_FILE.fullmatch(each.name))
    )
    return [files for files in map(JobManagerFiles, ports) if files.running_pid() is not None]


def _try_lock(file: IO[str]) -> bool:
    """True if nobody else holds it; held until the file is closed, or its process ends in whatever way."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


class StopRequest:
    """Asks the process to end, from a thread or from a handler of a signal.

    A handler runs in the main thread, wherever that is: a `threading.Event` that is just being waited for would lock
    the handler out, and the process would never end.
    """

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        self._requests.put(None)

    def wait(self, timeout_s: float) -> bool:
        """True if the process is to end; waits for that, but not longer."""
        try:
            self._requests.get(timeout=timeout_s)
        except queue.Empty:
            return False
        self.set()  # It stays so.
        return True


def run_job_manager(config: Configuration) -> None:
    """Serve until asked to stop: by DELETE /cluster, Ctrl-C or SIGTERM."""
    from penstock.cluster.high_availability.services import HighAvailability

    log = logging.StreamHandler(sys.stdout)
    log.setFormatter(RedactingFormatter("%(asctime)s %(levelname)-5s %(name)s - %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[log])
    log_tail()
    for talkative in ("py4j", "uvicorn"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    listener = _bound(config)
    port = listener.getsockname()[1]
    with JobManagerFiles(port).held(), tempfile.TemporaryDirectory(prefix="penstock-jobmanager-") as folder:
        stop = StopRequest()
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, lambda *_: stop.set())
        high_availability = HighAvailability.of(config)
        if high_availability is None:
            leader = _leader(config, Path(folder), stop)
            _serve(config, leader.app, lambda: leader, listener, stop, leader.close)
        else:
            contender = _contender(config, high_availability, Path(folder), listener, stop)
            _serve(config, contender.app, lambda: contender.leader, listener, stop, contender.close)
            if contender.failure is not None:
                raise contender.failure


def _bound(config: Configuration) -> socket.socket:
    try:
        return bind_tcp(config, chosen_ports(config) or str(keys.REST_PORT.default))
    except OSError as error:
        raise EnvironmentSetupError(
            f"{error}; `penstock jobmanager status` shows whether a job manager has it"
        ) from error


def _leader(config: Configuration, folder: Path, stop: StopRequest) -> Leader:
    from penstock.cluster.leader import Leader

    leader = Leader(config, folder, stop.set)
    for each in (signal.SIGTERM, signal.SIGINT):  # Spark has installed its own handlers.
        signal.signal(each, lambda *_: stop.set())
    return leader


def _contender(
    config: Configuration,
    high_availability: HighAvailability,
    folder: Path,
    listener: socket.socket,
    stop: StopRequest,
) -> Contender:
    from penstock.cluster.contender import Contender

    contender = Contender(config, high_availability, folder, reached_at(listener, config), stop.set)
    contender.contend()
    return contender


def _serve(
    config: Configuration,
    app: Any,
    leader: Callable[[], Leader | None],
    listener: socket.socket,
    stop: StopRequest,
    close: Callable[[], None],
) -> None:
    """Answer until asked to stop. `leader`: what takes jobs here, now."""
    host, port = listener.getsockname()[:2]
    own = sockets.listen(JobManagerFiles(port).socket.name)
    access = ServerAccess.to(listener, config)
    servers = [LazyServer(listener, lambda: app, access).start(), LazyServer(own.listener, lambda: app).start()]
    _log.info("the job manager listens on %s:%d", host, port)
    if config.get(keys.WEB_UI_ENABLED):  # A token has no place in a log.
        _log.info("`penstock jobmanager token --url --port %d` prints the address of the dashboard", port)
    try:
        while not stop.wait(_LOOK_AT_SPARK_S):
            leading = leader()
            if leading is not None:
                _look_after(leading)
        _log.info("the job manager ends")
    finally:
        own.remove()
        close()
        for server in servers:
            server.close(1)


def _look_after(leader: Leader) -> None:
    if not leader.is_alive:
        raise EnvironmentSetupError("Spark has ended, and with it all jobs; start the job manager again")
    try:
        leader.cluster.clean()
        leader.recover()
    except LeadershipLostError as lost:
        _log.warning("jobs are not continued here: %s", lost)
    except OSError as error:  # The jobs that run must not suffer.
        _log.warning("the storage of the job manager cannot be read or written, trying again: %s", error)
