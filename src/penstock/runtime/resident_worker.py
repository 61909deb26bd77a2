"""A worker that lives as long as its connection to the driver.

control thread    receives from the driver: commands go into a queue; a STOP or a lost connection ends the worker
peer threads      one for each other worker: its rows and markers go into the inbox
heartbeat thread  sends a sign of life at intervals, and closes the connection if the driver is silent for too long
main thread       runs the commands in the queue
"""

from __future__ import annotations

import gc
import os
import pickle
import platform
import queue
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from penstock.common import config_keys as keys
from penstock.common.exceptions import EnvironmentSetupError
from penstock.runtime.connection import JOINED_BYTES, Address, Connection, HandshakeError, Kind, Listener, connect
from penstock.runtime.exchange import EpochAbandonedError, Inbox
from penstock.runtime.failure import describe_failure
from penstock.runtime.local_backups import BackupSettings, LocalBackups
from penstock.runtime.protocol import EpochCommand, JobDeployment
from penstock.runtime.rows import FAILURE, Row
from penstock.runtime.saved_state import StateFolder
from penstock.runtime.silence import Silence, Verdict, cpu_seconds_of
from penstock.runtime.task_output import use_levels
from penstock.runtime.thread_dump import threads_here
from penstock.runtime.worker import Worker

GRACE_S = 5.0
"""How long a user function may keep running after its run has ended."""
_CUT_OFF_TIMEOUTS = 3
"""After how many heartbeat timeouts a worker that takes no rows is cut off. Not fewer: one whose function keeps the
interpreter busy does not read, either, and the driver decides how long it may."""
_SWITCH_S = 0.0005
"""How soon receiving threads get their turn while a function runs. Python's default of 5 ms makes senders wait."""

OVER = 1
"""The number of a STOP after which the region does not start again."""


@dataclass(frozen=True)
class WorkerPlace:
    """What a worker must know to find its driver."""

    index: int
    workers: int
    driver: Address
    secret: bytes = field(repr=False)
    folder: str
    """The driver's folder for sockets, which does not exist on other machines."""
    is_one_machine: bool
    heartbeat_interval_s: float
    heartbeat_timeout_s: float
    ports: str = keys.WORKER_PORTS.default


@dataclass(frozen=True)
class WorkerHello:
    """How a worker introduces itself to the driver."""

    index: int
    address: Address
    host: str
    process: int


@dataclass(frozen=True)
class Introduction:
    """What the driver sends to each worker when all workers have connected."""

    index: int
    """The worker's own index. It may differ from the one in its hello: after a restart, indexes return to the hosts
    where they were before, and where copies of their state are."""
    addresses: tuple[Address, ...]
    """The addresses of all workers, by index."""


@dataclass(frozen=True)
class DeployCommand:
    """What a worker needs to build the subtasks of a run."""

    pickled: bytes
    """The pickled JobDeployment, with everything that it needs in order to be loaded."""
    folder: StateFolder
    backups: BackupSettings | None = None


class ResidentWorker:
    """One worker, from when it connects to the driver to the end of the connection."""

    def __init__(self, place: WorkerPlace, end_process: Callable[[int], None] = os._exit) -> None:
        self._place = place
        self._end_process = end_process
        self._inbox = Inbox()
        self._orders: queue.SimpleQueue[tuple[Kind, Row, list[Row]]] = queue.SimpleQueue()
        self._peers: dict[int, Connection] = {}
        self._has_peer = threading.Condition()
        self._is_over = False
        self._has_ended = threading.Event()
        self._worker: Worker | None = None
        self._backups: LocalBackups | None = None
        self._region: frozenset[int] = frozenset()
        self._guests: list[threading.Thread] = []
        self._guest_workers: list[ResidentWorker] = []
        self._control = connect(place.driver, place.secret)
        cpu_seconds = cpu_seconds_of(self._control.peer_process())
        self._silence = Silence(place.heartbeat_interval_s, place.heartbeat_timeout_s, cpu_seconds)
        """Of the driver."""
        self.flush_output: Callable[[], None] = lambda: None
        """Sends what functions have printed and logged so far; set by the code that captures this output."""

    def send_output(self, content: bytes) -> None:
        """Send what functions in this process have printed and logged, including those of guests.

        Guests may outlive this worker, so their connections are tried as well.
        """
        for worker in [self, *self._guest_workers]:
            try:
                worker._control.send_message(Kind.OUTPUT, content)
                return
            except OSError:
                continue  # If no connection is left, the driver is gone, and nothing can show the output.

    def run(self) -> None:
        """Run the driver's commands until it sends STOP or is gone."""
        place = self._place
        sys.setswitchinterval(_SWITCH_S)
        bind_host = None if place.is_one_machine else self._control.local_host() or place.driver.host
        path = os.path.join(place.folder, f"w{place.index}") if os.path.isdir(place.folder) else None
        expects_others = True
        listener = Listener(
            place.secret, path, bind_host, ports=place.ports, key=keys.WORKER_PORTS.key, expected=place.workers
        )
        try:
            listener.serve(self._accept_peer)
            address = Address(path, bind_host or "", listener.port)
            hello = WorkerHello(place.index, address, platform.node(), os.getpid())
            self._control.send_message(Kind.HELLO, pickle.dumps(hello))
            threading.Thread(target=self._hear_driver, daemon=True, name="penstock-control").start()
            threading.Thread(target=self._send_heartbeats, daemon=True, name="penstock-heartbeat").start()
            while self._carry_out(*self._orders.get()):
                if expects_others and len(self._peers) == place.workers - 1:
                    listener.close()  # All workers have connected.
                    expects_others = False
        finally:
            self._has_ended.set()
            listener.close()
            for peer in [*self._peers.values(), self._control]:
                peer.close()

    # --- other threads ---------------------------------------------------------------------------------------------

    def _hear_driver(self) -> None:
        source_rows: list[Row] = []
        try:
            while True:
                _, row = self._control.receive()
                self._silence.heard()
                if row.vertex >= 0:
                    source_rows.append(row)
                elif row.vertex == Kind.HOST:
                    self._host(pickle.loads(row.chunk))
                elif row.vertex == Kind.THREADS:  # Answered here, because the main thread may be in a function.
                    self._control.send_message(Kind.THREADS, pickle.dumps(threads_here()), number=row.seq)
                elif row.vertex != Kind.HEARTBEAT:
                    kind = Kind(row.vertex)
                    if kind in (Kind.RELEASE, Kind.STOP):
                        self._inbox.abandon()
                    self._orders.put((kind, row, source_rows))
                    source_rows = []
                if row.vertex == Kind.STOP:
                    break
        except Exception as error:  # The driver is gone, or its message cannot be read, for example for lack of memory.
            if not isinstance(error, EOFError | OSError):
                traceback.print_exc()
            self._control.close()
            self._inbox.abandon()
            self._orders.put((Kind.STOP, _message(Kind.STOP), []))
        with self._has_peer:  # The main thread stops waiting for other workers.
            self._is_over = True
            self._has_peer.notify_all()
        # If a function does not return in time, end the process.
        if not self._has_ended.wait(GRACE_S):
            self._end_process(1)

    def _host(self, place: WorkerPlace) -> None:
        """Run a worker of another region in a thread of this process. It ends with its own group."""

        def run() -> None:
            try:
                worker = ResidentWorker(place, self._end_process)
                worker.flush_output = self.flush_output
                self._guest_workers.append(worker)
                worker.run()
            except (OSError, HandshakeError) as error:  # The driver has ended the guest's group in the meantime.
                print(f"penstock worker {place.index}: {error}", file=sys.stderr, flush=True)

        guest = threading.Thread(target=run, daemon=True, name=f"penstock-guest-{place.index}")
        self._guests.append(guest)
        guest.start()

    def wait_for_guests(self) -> None:
        """Called after `run`: the process must live until its guests have ended."""
        for guest in self._guests:
            guest.join()

    def _send_heartbeats(self) -> None:
        place = self._place
        while not self._has_ended.wait(place.heartbeat_interval_s):
            if self._silence.look() is Verdict.LOST:
                self._control.close()  # The driver cannot be reached or stands still: it has given up this worker, too.
                return
            try:
                self._control.send_unless_busy(Kind.HEARTBEAT)
            except OSError:
                return

    def _accept_peer(self, caller: Connection) -> None:
        """Another worker has connected."""
        try:
            _, row = caller.receive()
        except (EOFError, OSError):  # It has ended, which the driver notices itself.
            return
        self._add_peer(row.seq, caller)

    def _add_peer(self, index: int, peer: Connection) -> None:
        # The driver may reach both while they are cut off from each other.
        peer.expect_answers(_CUT_OFF_TIMEOUTS * self._place.heartbeat_timeout_s)
        with self._has_peer:
            self._peers[index] = peer
            self._has_peer.notify_all()
        threading.Thread(target=self._hear_peer, args=(index, peer), daemon=True, name=f"penstock-peer-{index}").start()

    def _hear_peer(self, index: int, peer: Connection) -> None:
        try:
            while True:
                epoch, row = peer.receive()
                if row.vertex == Kind.MARK:
                    self._inbox.mark(epoch, (index, row.seq))
                else:
                    self._inbox.put(epoch, row)
        except Exception as error:  # It is gone, or its rows do not fit on the disk: its marker would never come.
            self._report_lost(index, error)

    def _report_lost(self, index: int, error: Exception) -> None:
        if not self._has_ended.is_set():
            try:
                self._control.send_message(Kind.LOST, (str(error) or type(error).__name__).encode(), number=index)
            except OSError:
                return  # The driver is gone as well.

    # --- the main thread -------------------------------------------------------------------------------------------

    def _carry_out(self, kind: Kind, row: Row, source_rows: list[Row]) -> bool:
        """Carry out a command; False if it was the last one."""
        match kind:
            case Kind.PEERS:
                self._meet(pickle.loads(row.chunk))
            case Kind.DEPLOY:
                self._deploy(row.chunk)
            case Kind.EPOCH:
                self._run_epoch(EpochCommand.decode(row.chunk), source_rows)
            case Kind.RELEASE:
                self._release()
                self.flush_output()
                self._answer(0, [_message(Kind.RELEASED, row.seq)])
            case Kind.STOP:
                self._release()
                self._close_backups(is_over=row.seq == OVER)
                self.flush_output()
                return False
        return True

    def _meet(self, introduction: Introduction) -> None:
        """Connect to the workers before this one in the list; those after it connect to this one."""
        self._place = replace(self._place, index=introduction.index)
        for index in range(self._place.index):
            try:
                peer = connect(introduction.addresses[index], self._place.secret)
                peer.send_message(Kind.HELLO, number=self._place.index)
            except (OSError, HandshakeError) as error:
                self._report_lost(index, error)
                return
            self._add_peer(index, peer)
        with self._has_peer:
            self._has_peer.wait_for(
                lambda: self._is_over or len(self._peers) == self._place.workers - 1, self._place.heartbeat_timeout_s
            )
        if not self._is_over and len(self._peers) == self._place.workers - 1:
            self._answer(0, [_message(Kind.READY)])

    def _deploy(self, pickled: bytes) -> None:
        self._inbox.begin()
        try:
            command: DeployCommand = pickle.loads(pickled)
            deployment: JobDeployment = pickle.loads(command.pickled)
            self._open_backups(command.backups, deployment)
            use_levels(deployment.log_levels)
            place, exchange = self._place, _PeerExchange(self._peers)
            self._worker = Worker(
                deployment, command.folder, place.index, place.workers, self._inbox, exchange, self._backups
            )
        except Exception as error:  # For example, a module is missing here: the driver must know.
            self._answer(0, [self._failure(error, f"the job could not be loaded in worker {self._place.index}")])
            return
        self._answer(0, [_message(Kind.DEPLOYED)])

    def _open_backups(self, wanted: BackupSettings | None, deployment: JobDeployment) -> None:
        self._close_backups()
        self._region = frozenset(vertex.id for vertex in deployment.vertices())
        if wanted is not None:
            try:
                self._backups = LocalBackups(wanted)
            except (OSError, EnvironmentSetupError) as error:  # Continue without copies: the storage has everything.
                print(f"penstock worker {self._place.index}: no local copies of state: {error}", file=sys.stderr)

    def _close_backups(self, is_over: bool = False) -> None:
        """`is_over`: the region has ended, and nothing will be restored from the copies."""
        backups, self._backups = self._backups, None
        if backups is not None:
            if is_over:
                backups.remove(self._region)
            backups.close()

    def _run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> None:
        assert self._worker is not None, "the driver deploys first"
        waiting: list[Row] = []
        try:
            for row in self._worker.run_epoch(command, source_rows):
                waiting.append(row)
                if len(row.chunk) > JOINED_BYTES:  # Smaller rows wait, and are sent together.
                    self._answer(command.epoch, waiting)
                    waiting = []
        except EpochAbandonedError:
            return
        except PeerLostError as lost:
            self._report_lost(lost.worker, lost)
            return
        except Exception as error:  # Not from a function: for example, the disk is full, and rows cannot be spilled.
            waiting.append(self._failure(error, f"the exchange of worker {self._place.index}"))
        self.flush_output()
        self._answer(command.epoch, [*waiting, _message(Kind.DONE)])

    def _answer(self, epoch: int, rows: list[Row]) -> None:
        """Send rows to the driver. If it is gone, `_hear_driver` notices that, too, and has the worker end."""
        try:
            self._control.send_all(epoch, rows)
        except OSError:
            self._control.close()

    def _failure(self, error: Exception, where: str) -> Row:
        index, workers = self._place.index, self._place.workers
        return Row(FAILURE, index, 0, 0, 0, pickle.dumps(describe_failure(error, -1, where, index, workers)))

    def _release(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
            gc.collect()  # Tasks and operators refer to each other: without this, their state would stay for long.


def _message(kind: Kind, number: int = 0) -> Row:
    return Row(kind, 0, 0, 0, number, b"")


class PeerLostError(Exception):
    """Rows could not be sent to a worker."""

    def __init__(self, worker: int, reason: str) -> None:
        super().__init__(reason)
        self.worker = worker


class _PeerExchange:
    """Sends rows to other workers. Few and small rows wait for the end of their stage: they are not read before."""

    def __init__(self, peers: dict[int, Connection]) -> None:
        self._peers = peers
        self._waiting: defaultdict[int, list[Row]] = defaultdict(list)
        """By worker."""
        self._waiting_bytes: defaultdict[int, int] = defaultdict(int)

    def send(self, epoch: int, worker: int, row: Row) -> None:
        self._waiting[worker].append(row)
        self._waiting_bytes[worker] += len(row.chunk)
        if self._waiting_bytes[worker] > JOINED_BYTES:
            self._send_waiting(epoch, worker)

    def end_stage(self, epoch: int, stage: int, workers: Iterable[int]) -> None:
        for worker in workers:
            self._waiting[worker].append(_message(Kind.MARK, stage))
            self._send_waiting(epoch, worker)

    def _send_waiting(self, epoch: int, worker: int) -> None:
        rows, self._waiting[worker], self._waiting_bytes[worker] = self._waiting[worker], [], 0
        try:
            self._peers[worker].send_all(epoch, rows)
        except OSError as error:
            raise PeerLostError(worker, str(error)) from error
