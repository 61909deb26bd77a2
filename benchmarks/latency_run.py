"""One program that counts what it gets from a socket: started, fed by a schedule, and watched from one process.

So there is one clock for all systems, and each gets the same records at the same moments.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.process_tree import cpu_seconds, end_session
from benchmarks.systems import ROOT, PeerUnavailableError

KEYS = 10
SLOW_RATE = 100
# What the jobs print, and a row of Spark's console.
_RESULT = re.compile(r"RESULT (\S+) (\d+)|^\|\s*(\S+)\s*\|\s*(\d+)\s*\|$")


@dataclass(frozen=True)
class Row:
    """One system with its settings."""

    name: str
    command: Callable[[int], list[str]]
    """What runs the program with the port of its input; PeerUnavailableError if it cannot run here."""
    package: str = "penstock"


class Ledger:
    """Which records were due when, and since when a result that counts them can be seen."""

    def __init__(self) -> None:
        self._sent: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, deque[tuple[int, float]]] = defaultdict(deque)
        self._lock = threading.Lock()
        self.latencies: list[tuple[float, float]] = []
        """When it was due and seconds until the result, of every record that was seen."""

    def sent(self, key: str, due: float) -> None:
        with self._lock:
            self._sent[key] += 1
            self._waiting[key].append((self._sent[key], due))

    def seen(self, key: str, count: int, now: float) -> None:
        """A count of n is the result of the key's first n records: a micro-batch shows only the last of its counts."""
        with self._lock:
            waiting = self._waiting[key]
            while waiting and waiting[0][0] <= count:
                _, sent = waiting.popleft()
                self.latencies.append((sent, now - sent))

    def oldest(self) -> float | None:
        """When the oldest record was due that is still waiting for its result."""
        with self._lock:
            return min((waiting[0][1] for waiting in self._waiting.values() if waiting), default=None)

    def between(self, start: float, end: float) -> list[float]:
        with self._lock:
            return [latency for sent, latency in self.latencies if start <= sent < end]


def result_in(line: str) -> tuple[str, int] | None:
    """Key and count of a line that a job has printed; None if it is another line."""
    found = _RESULT.search(line)
    if found is None:
        return None
    key, count = (each for each in found.groups() if each is not None)
    return key, int(count)


class Program:
    """A program that runs and asks for its input: `with Program(row, timeout) as program: ...`."""

    def __init__(self, row: Row, timeout: float, seen: Callable[[str, int, float], None]) -> None:
        self._row = row
        self._timeout = timeout
        self._seen = seen
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> Program:
        with self._closing as closing:
            self._server = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
            self._errors = closing.enter_context(tempfile.TemporaryFile("w+"))
            self.started = time.monotonic()
            self._child = self._start(self._server.getsockname()[1])
            closing.callback(self._child.wait)
            closing.callback(end_session, self._child.pid)
            threading.Thread(target=self._watch, args=(self._child.stdout,), daemon=True).start()
            self._closing = closing.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def _start(self, port: int) -> subprocess.Popen[str]:
        command = self._row.command(port)
        is_pyflink = self._row.package == "pyflink"
        environment = {
            **os.environ,
            "BENCH_PACKAGE": "pyflink" if is_pyflink else "penstock",
            # PyFlink starts its workers with whatever `python` is.
            "PATH": os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join([str(ROOT), *([] if is_pyflink else [str(ROOT / "src")])]),
        }
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )

    def _watch(self, output: IO[str]) -> None:
        for line in output:
            found = result_in(line.strip())
            if found is not None:
                self._seen(*found, time.monotonic())

    @property
    def is_running(self) -> bool:
        return self._child.poll() is None

    def connection(self) -> socket.socket:
        """Where its records go, when it asks for them."""
        self._server.settimeout(1)
        deadline = time.monotonic() + self._timeout
        while self.is_running and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                return self._ready(self._server.accept()[0])
        raise self.failure("it did not ask for its input")

    def waiting_connection(self) -> socket.socket | None:
        """Another one that it asks for by now."""
        self._server.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            return self._ready(self._server.accept()[0])
        return None

    def _ready(self, connection: socket.socket) -> socket.socket:
        connection.settimeout(self._timeout)  # A job that does not keep up stops reading.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def cpu_seconds(self) -> float | None:
        """What all its processes have used so far."""
        return cpu_seconds(self._child.pid)

    def failure(self, what: str) -> PeerUnavailableError:
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines() or ["no message"]
        return PeerUnavailableError(f"failed ({what}): {lines[-1]}")


@dataclass(frozen=True)
class Latency:
    system: str
    rate: int
    records: int
    median_ms: float
    p95_ms: float
    p99_ms: float
    most_ms: float
    first_result_s: float
    """From starting the program to its first result."""
    cpu_ms_per_second: float | None
    """CPU time of all its processes while it was measured."""


def latency_of(
    system: str, rate: int, seconds: list[float], first_result_s: float, cpu_ms_per_second: float | None = None
) -> Latency:
    ordered = sorted(seconds)

    def below(part: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000

    median = statistics.median(ordered) * 1000
    most = ordered[-1] * 1000
    return Latency(
        system, rate, len(ordered), median, below(0.95), below(0.99), most, first_result_s, cpu_ms_per_second
    )


class SteadyRun:
    """Sends at a steady rate. A record's latency counts from when it was due, even if it was sent later."""

    def __init__(self, row: Row, rate: int, timeout: float) -> None:
        self._row = row
        self._rate = rate
        self._timeout = timeout
        self._ledger = Ledger()
        self._first_result: float | None = None
        self._sent = 0
        self._due = 0.0
        """When the next record is due."""
        self._pause = 1 / rate

    def measure(self, warm_up: float, seconds: float) -> Latency:
        """Raises PeerUnavailableError if the program fails, or does not come to its results in time."""
        with Program(self._row, self._timeout, self._saw) as program, program.connection() as connection:
            try:
                return self._steady(program, connection, warm_up, seconds)
            except OSError as error:
                raise program.failure(str(error)) from error

    def _saw(self, key: str, count: int, now: float) -> None:
        self._first_result = self._first_result or now
        self._ledger.seen(key, count, now)

    def _steady(self, program: Program, connection: socket.socket, warm_up: float, seconds: float) -> Latency:
        self._due = time.monotonic()
        deadline = self._due + self._timeout
        # Slowly, so that no queue builds up while the job still loads what it needs.
        self._pause = 1 / min(self._rate, SLOW_RATE)
        self._send_while(program, connection, lambda now: self._first_result is None and now < deadline)
        self._pause = 1 / self._rate
        if self._first_result is None:
            raise TimeoutError(f"no result within {self._timeout:.0f} s")
        warm_at = time.monotonic() + warm_up
        self._send_while(program, connection, lambda now: now < warm_at)
        cpu_before, begun = program.cpu_seconds(), time.monotonic()
        end = begun + seconds
        self._send_while(program, connection, lambda now: now < end)
        cpu_after, ended = program.cpu_seconds(), time.monotonic()
        # What follows the measured records keeps the job as busy as before, until all of these have been seen.
        deadline = end + self._timeout
        self._send_while(program, connection, lambda now: now < deadline and (self._due < end or self._waits_for(end)))
        latencies = self._ledger.between(begun, end)
        if not latencies or self._waits_for(end):
            raise TimeoutError(f"results were missing after {self._timeout:.0f} s")
        cpu_ms = None
        if cpu_before is not None and cpu_after is not None:
            cpu_ms = (cpu_after - cpu_before) * 1000 / (ended - begun)
        return latency_of(self._row.name, self._rate, latencies, self._first_result - program.started, cpu_ms)

    def _waits_for(self, end: float) -> bool:
        oldest = self._ledger.oldest()
        return oldest is not None and oldest < end

    def _send_while(self, program: Program, connection: socket.socket, goes_on: Callable[[float], bool]) -> None:
        """Records are due at even distances; those that are due when this process wakes up are sent together."""
        while goes_on(now := time.monotonic()) and program.is_running:
            lines = []
            while self._due <= now:
                key = f"key-{self._sent % KEYS}"
                self._sent += 1
                self._ledger.sent(key, self._due)
                lines.append(f"{key}\n")
                self._due += self._pause
            connection.sendall("".join(lines).encode())
            time.sleep(max(0.0, self._due - time.monotonic()))


POISON = "poison:"
"""Begins a word at which the job fails, once: the rest of it is a file that the job removes before it fails."""


class Restarts:
    """Makes a program fail by a record, again and again, and sees how long it takes to its next result.

    A source that can read that record again makes a result of it. Another one asks for new input, and gets a record.
    """

    def __init__(self, row: Row, timeout: float) -> None:
        self._row = row
        self._timeout = timeout
        self._arrived = threading.Condition()
        self._seen_at: dict[str, float] = {}

    def measure(self, failures: int) -> list[float]:
        """Seconds from sending the record that fails to seeing a result of it, or of one that was sent afterwards."""
        with Program(self._row, self._timeout, self._saw) as program, tempfile.TemporaryDirectory() as folder:
            try:
                # The first failure loads what failing takes.
                return self._failing(program, Path(folder), failures + 1)[1:]
            except OSError as error:
                raise program.failure(str(error)) from error

    def _failing(self, program: Program, folder: Path, failures: int) -> list[float]:
        connection = program.connection()
        self._send(connection, "warm-up")
        self._await_any(["warm-up"], self._timeout)
        times = []
        for failure in range(failures):
            dose = folder / str(failure)
            dose.touch()
            poisoned = time.monotonic()
            self._send(connection, f"{POISON}{dose}")
            connection, recovered = self._recovery(program, connection, failure, f"{POISON}{dose}")
            times.append(recovered - poisoned)
        connection.close()
        return times

    def _recovery(
        self, program: Program, connection: socket.socket, failure: int, poison: str
    ) -> tuple[socket.socket, float]:
        """Where records go now, and when the next result was seen."""
        wanted = [poison, f"again-{failure}"]
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline and program.is_running:
            again = program.waiting_connection()
            if again is not None:
                # Not closed before: the job would see the end of its input.
                connection.close()
                connection = again
                self._send(connection, wanted[1])
            seen = self._await_any(wanted, 0.001)
            if seen is not None:
                return connection, seen
        raise program.failure(f"no result within {self._timeout:.0f} s of an exception")

    def _send(self, connection: socket.socket, word: str) -> None:
        connection.sendall(f"{word}\n".encode())

    def _saw(self, key: str, count: int, now: float) -> None:
        with self._arrived:
            self._seen_at.setdefault(key, now)
            self._arrived.notify_all()

    def _await_any(self, keys: list[str], timeout: float) -> float | None:
        """When the first result of one of the keys was seen; None if there is none in time."""

        def seen() -> list[float]:
            return [self._seen_at[key] for key in keys if key in self._seen_at]

        with self._arrived:
            return min(seen()) if self._arrived.wait_for(seen, timeout) else None
