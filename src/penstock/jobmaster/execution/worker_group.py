"""The workers of a region as the driver sees them: who has called, who answers, who is lost.

It does not start them. Somebody gives each its `WorkerPlace` and lets it run, in a Spark task or in a thread of a test.
"""

from __future__ import annotations

import logging
import pickle
import secrets
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from penstock.checkpoint.folders import Folder
from penstock.common import config_keys as keys
from penstock.common.local_folders import new_socket_folder
from penstock.jobmaster.execution.stage_executor import TakeOutput
from penstock.runtime.connection import Address, Connection, Kind, Listener
from penstock.runtime.local_backups import BackupSettings
from penstock.runtime.protocol import EpochCommand
from penstock.runtime.resident_worker import (
    GRACE_S,
    OVER,
    DeployCommand,
    Introduction,
    WorkerHello,
    WorkerPlace,
)
from penstock.runtime.rows import FAILURE, Row
from penstock.runtime.silence import Silence, Verdict, cpu_seconds_of
from penstock.runtime.thread_dump import ProcessThreads, ThreadInfo

_LONGEST_FOLDER = 90
"""A Unix socket's address has about 100 bytes."""


_SAYS_MORE_S = 1.0


_log = logging.getLogger(__name__)


class WorkerLostError(Exception):
    """A worker is gone, or has stopped answering."""


@dataclass
class _Member:
    hello: WorkerHello
    connection: Connection
    silence: Silence
    answered: dict[Kind, int] = field(default_factory=dict)
    """How often each answer has come."""
    threads: tuple[int, tuple[ThreadInfo, ...]] = (0, ())
    """What the threads of its process did, with the number of the question that this answers."""


@dataclass(frozen=True)
class GroupSettings:
    heartbeat_interval_ms: int = 10_000
    heartbeat_timeout_ms: int = 50_000
    host: str | None = None
    """The driver's address for workers on other machines; None if all are on this one."""
    bind_host: str | None = None
    driver_ports: str = keys.DRIVER_PORTS.default
    worker_ports: str = keys.WORKER_PORTS.default
    backups: BackupSettings | None = None


def places_near(hosts: Sequence[str], former: Sequence[str]) -> list[int]:
    """Which of the workers on `hosts` takes which place, so that as many places as possible stay on their host.

    >>> places_near(["new", "b", "a"], ["a", "b", "c"])
    [2, 1, 0]
    """
    if len(hosts) != len(former):  # With another number of workers each has other subtasks.
        return list(range(len(hosts)))
    waiting: dict[str, list[int]] = {}
    for at, host in enumerate(hosts):
        if host != former[at]:
            waiting.setdefault(host, []).append(at)
    places: list[int | None] = [at if host == former[at] else None for at, host in enumerate(hosts)]
    for place, host in enumerate(former):
        if places[place] is None and waiting.get(host):
            places[place] = waiting[host].pop(0)
    left = iter(sorted(at for several in waiting.values() for at in several))
    return [next(left) if at is None else at for at in places]


class WorkerGroup:
    """A fixed number of workers, from their calls to the end of the last connection. A lost one ends the group."""

    def __init__(
        self,
        workers: int,
        settings: GroupSettings,
        on_loss: Callable[[], None],
        take_output: TakeOutput = lambda content, is_wanted: None,
    ) -> None:
        self.workers = workers
        self._take_output = take_output
        self._settings = settings
        self._interval_s, self._timeout_s = settings.heartbeat_interval_ms / 1000, settings.heartbeat_timeout_ms / 1000
        self._on_loss = on_loss
        self._secret = secrets.token_bytes(32)
        self._changed = threading.Condition()
        self._members: dict[int, _Member] = {}
        self._rows: list[Row] = []
        self._epoch = 0
        self._has_failed = False
        self._releases = 0
        self._thread_questions = 0
        self._loss: str | None = None
        self._is_cancelled = False
        self._is_introduced = False
        self._has_ended = threading.Event()
        self._folder = new_socket_folder("w", _LONGEST_FOLDER)
        bind_host = None if settings.host is None else settings.bind_host or settings.host
        try:
            self._listener = Listener(
                self._secret,
                str(self._folder / "driver"),
                bind_host,
                ports=settings.driver_ports,
                key=keys.DRIVER_PORTS.key,
                expected=workers,
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._listener.serve(self._called)
        # From the first call on: a worker may wait for long until executors for the others are there.
        threading.Thread(target=self._watch, daemon=True, name="penstock-heartbeat").start()

    def places(self) -> list[WorkerPlace]:
        """What to send to each worker."""
        settings = self._settings
        return [
            WorkerPlace(
                index,
                self.workers,
                Address(str(self._folder / "driver"), settings.host or "", self._listener.port),
                self._secret,
                str(self._folder),
                settings.host is None,
                settings.heartbeat_interval_ms / 1000,
                settings.heartbeat_timeout_ms / 1000,
                settings.worker_ports,
            )
            for index in range(self.workers)
        ]

    # --- other threads ---------------------------------------------------------------------------------------------

    def _called(self, connection: Connection) -> None:
        try:
            _, row = connection.receive()
            hello: WorkerHello = pickle.loads(row.chunk)
        except (EOFError, OSError):
            return
        with self._changed:
            if hello.index in self._members or self._loss is not None:
                connection.close()  # A task that Spark has started again: its group is over.
                return
            cpu_seconds = cpu_seconds_of(connection.peer_process())
            silence = Silence(self._interval_s, self._timeout_s, cpu_seconds)
            member = self._members[hello.index] = _Member(hello, connection, silence)
            self._changed.notify_all()
        self._hear(member)

    def _hear(self, member: _Member) -> None:
        try:
            while True:
                epoch, row = member.connection.receive()
                member.silence.heard()
                if row.vertex != Kind.HEARTBEAT:
                    self._take(member, epoch, row)
        except (EOFError, OSError):
            self.lose(
                f"worker {member.hello.index} (process {member.hello.process} on {member.hello.host}) is gone: it was "
                f"killed, or user code ended it"
            )
        except Exception as error:  # No room for it in memory, for example. Nobody else listens to this worker.
            name = type(error).__name__
            self.lose(f"what worker {member.hello.index} has sent could not be taken: {name}: {error}")

    def _is_heard(self, member: _Member) -> bool:
        """A thread that waits until there is room for what a worker has written still counts as hearing it."""
        member.silence.heard()
        return not self._is_cancelled and self._loss is None and not self._has_ended.is_set()

    def _take(self, member: _Member, epoch: int, row: Row) -> None:
        if row.vertex == Kind.OUTPUT:
            self._take_output(row.chunk, lambda: self._is_heard(member))
            return
        if row.vertex == Kind.LOST:
            if self._has_ended.is_set():
                return  # They do not all end at the same moment.
            # Most often that one is gone. Then its own connection ends, too, which says more.
            why = row.chunk.decode(errors="replace")
            reason = f"worker {member.hello.index} has no connection to worker {row.seq}: {why}"
            later = threading.Timer(_SAYS_MORE_S, self.lose, [reason])
            later.daemon = True
            later.start()
            return
        with self._changed:
            if row.vertex in (Kind.READY, Kind.DEPLOYED, Kind.DONE):
                kind = Kind(row.vertex)
                if epoch in (0, self._epoch):
                    member.answered[kind] = member.answered.get(kind, 0) + 1
                    if self._have_all(kind, 1):  # Nobody waits for less.
                        self._changed.notify_all()
            elif row.vertex == Kind.RELEASED:
                member.answered[Kind.RELEASED] = row.seq
                self._changed.notify_all()
            elif row.vertex == Kind.THREADS:
                member.threads = row.seq, pickle.loads(row.chunk)
                self._changed.notify_all()
            elif epoch in (0, self._epoch):
                self._rows.append(row)
                if row.vertex == FAILURE:
                    self._has_failed = True
                    self._changed.notify_all()

    def _watch(self) -> None:
        """Signs of life, from here and from there."""
        while not self._has_ended.wait(self._interval_s):
            for member in list(self._members.values()):
                if self._is_silent(member):
                    return
                try:
                    member.connection.send_unless_busy(Kind.HEARTBEAT)
                except OSError:
                    return  # `_hear` reports it.

    def _is_silent(self, member: _Member) -> bool:
        """True if a worker was given up because it does not answer."""
        hello, timeout = member.hello, keys.HEARTBEAT_TIMEOUT.key
        about = (
            f"worker {hello.index} (process {hello.process} on {hello.host}) has not been heard of for "
            f"{member.silence.seconds:.0f} s ({timeout} is {self._timeout_s:g} s)"
        )
        match member.silence.look():
            case Verdict.AT_WORK:
                _log.warning(
                    "%s, but is computing: code that keeps Python's interpreter lock lets it not answer", about
                )
            case Verdict.LOST:
                self.lose(
                    f"{about}; if a function calls code that keeps Python's interpreter lock for so long, set "
                    f"{timeout} to more"
                )
                return True
        return False

    def lose(self, reason: str) -> None:
        """The group is broken: only `close` still works."""
        with self._changed:
            if self._loss is not None or self._has_ended.is_set():
                return
            self._loss = reason
            self._changed.notify_all()
        self._hang_up()  # Wakes up threads that send to a worker that does not read.
        self._on_loss()

    # --- what the executor asks for --------------------------------------------------------------------------------

    @property
    def is_broken(self) -> bool:
        return self._loss is not None

    @property
    def is_ready(self) -> bool:
        """True if all workers are there and none was lost."""
        return self._is_introduced and not self.is_broken and not self._has_ended.is_set()

    def check(self) -> None:
        if self._loss is not None:
            raise WorkerLostError(self._loss)

    def registered(self) -> int:
        """How many workers have called."""
        return len(self._members)

    def wait_until_registered(self, timeout_s: float) -> bool:
        """False if not all have called in time."""
        with self._changed:
            return self._wait(lambda: len(self._members) == self.workers, timeout_s)

    def introduce(self, timeout_s: float, former_hosts: tuple[str, ...] = ()) -> None:
        """Let the workers find each other; after that nobody can join.

        `former_hosts`: where the workers of the attempt before were, by index. As many as possible return there, to
        copies of the state that they need.
        """
        self._listener.close()
        with self._changed:
            called = [self._members[index] for index in range(self.workers)]
            order = places_near([member.hello.host for member in called], former_hosts)
            self._members = {index: called[place] for index, place in enumerate(order)}
            for index, member in self._members.items():
                member.hello = replace(member.hello, index=index)
        addresses = tuple(self._members[index].hello.address for index in range(self.workers))
        for index in range(self.workers):
            introduction = pickle.dumps(Introduction(index, addresses))
            self._send(index, 0, [Row(Kind.PEERS, 0, 0, 0, 0, introduction)])
        with self._changed:
            if not self._wait(lambda: self._have_all(Kind.READY, 1), timeout_s):
                raise WorkerLostError(f"the workers did not find each other within {timeout_s:.0f} s")
        self._is_introduced = True

    def hosts(self) -> tuple[str, ...]:
        """Where the workers are, by index."""
        return tuple(self._members[index].hello.host for index in range(self.workers))

    def host(self, places: list[WorkerPlace]) -> None:
        """Have the processes of these workers host those of another group as well, one each."""
        if not self.is_ready:
            raise WorkerLostError("the processes that were to host it have ended")
        for index, place in enumerate(places):
            self._send(index, 0, [Row(Kind.HOST, 0, 0, 0, 0, pickle.dumps(place))])

    def deploy(self, pickled: bytes, folder: Folder) -> list[Row]:
        """Have all workers build what a run needs; failures if they could not."""
        with self._changed:
            self._rows, self._has_failed, self._epoch = [], False, 0
            for member in self._members.values():
                member.answered.pop(Kind.DEPLOYED, None)
        self._send_to_all(Kind.DEPLOY, pickle.dumps(DeployCommand(pickled, folder, self._settings.backups)))
        with self._changed:
            self._wait(lambda: self._has_failed or self._have_all(Kind.DEPLOYED, 1))
            return self._rows

    def run_epoch(self, command: EpochCommand, source_rows: list[Row]) -> list[Row]:
        """The rows for the driver. After a failure the others may still be working: call `release`."""
        self.check()
        rows_of: list[list[Row]] = [[] for _ in range(self.workers)]
        for row in source_rows:
            rows_of[row.subtask % self.workers].append(row)
        with self._changed:
            self._rows, self._has_failed, self._epoch = [], False, command.epoch
            for member in self._members.values():
                member.answered.pop(Kind.DONE, None)
        parts = command.by_worker(self.workers) if command.orders else []
        contents = [part.encode() for part in parts] or [command.encode()] * self.workers
        for index, content in enumerate(contents):
            self._send(index, command.epoch, [*rows_of[index], Row(Kind.EPOCH, 0, 0, 0, 0, content)])
        with self._changed:
            self._wait(lambda: self._has_failed or self._have_all(Kind.DONE, 1))
            rows, self._rows = self._rows, []
            return rows

    def release(self) -> bool:
        """Have the workers drop their subtasks; False if one does not answer, because a function does not return."""
        if self.is_broken or len(self._members) < self.workers:
            return False
        self._releases += 1
        try:
            self._send_to_all(Kind.RELEASE, number=self._releases)
            with self._changed:  # Cancelled or not, they are to answer.
                return self._wait(lambda: self._have_all(Kind.RELEASED, self._releases), GRACE_S, heeds_cancel=False)
        except WorkerLostError:
            return False

    def threads(self, timeout_s: float) -> list[ProcessThreads]:
        """From another thread: what the threads of the workers' processes are doing, of those that answer in time."""
        with self._changed:
            self._thread_questions += 1
            question, members = self._thread_questions, list(self._members.values())
        for member in members:
            try:
                member.connection.send_message(Kind.THREADS, number=question)
            except OSError:
                continue  # It is gone: `_hear` reports it.
        with self._changed:
            self._changed.wait_for(
                lambda: self._loss is not None or all(member.threads[0] >= question for member in members), timeout_s
            )
            return [
                ProcessThreads(member.hello.host, member.hello.process, member.threads[1])
                for member in members
                if member.threads[0] >= question
            ]

    def cancel(self) -> None:
        """From another thread: stop waiting for answers."""
        with self._changed:
            self._is_cancelled = True
            self._changed.notify_all()

    @property
    def is_cancelled(self) -> bool:
        return self._is_cancelled

    def close(self, is_over: bool = False) -> None:
        """Have the workers stop; they close their functions first. `is_over`: the region does not start again."""
        self._has_ended.set()
        self._listener.close()
        for member in list(self._members.values()):
            try:
                member.connection.send_unless_busy(Kind.STOP, OVER if is_over else 0)
            except OSError:
                continue  # It is gone already.
        shutil.rmtree(self._folder, ignore_errors=True)

    def hang_up(self) -> None:
        """After `close`, when the workers have ended or are not waited for."""
        self._has_ended.set()
        self._hang_up()

    def _hang_up(self) -> None:
        for member in list(self._members.values()):
            member.connection.close()

    # --- within ----------------------------------------------------------------------------------------------------

    def _send_to_all(self, kind: Kind, content: bytes = b"", number: int = 0) -> None:
        for index in range(self.workers):
            self._send(index, 0, [Row(kind, 0, 0, 0, number, content)])

    def _send(self, index: int, epoch: int, rows: list[Row]) -> None:
        try:
            self._members[index].connection.send_all(epoch, rows)
        except OSError as error:
            self.lose(f"worker {index} is gone: {error}")
            self.check()

    def _have_all(self, kind: Kind, number: int) -> bool:
        return sum(member.answered.get(kind, 0) >= number for member in self._members.values()) == self.workers

    def _wait(
        self, condition: Callable[[], bool], timeout_s: float | None = None, *, heeds_cancel: bool = True
    ) -> bool:
        """Within the lock. True if the condition holds; also returns when cancelled, and raises when broken."""
        self._changed.wait_for(
            lambda: condition() or self._loss is not None or (heeds_cancel and self._is_cancelled), timeout_s
        )
        if condition():
            return True
        self.check()
        return False
