"""How long a record takes from being sent to its result being seen, at a small steady rate, and where that time goes.

`python -m benchmarks.latency` sends words through a socket to a count per word: on Penstock, on PyFlink as it is
shipped (Python functions get their records in bundles of up to a second) and on plain PySpark's micro-batches. One
process sends and sees what the job prints, so there is one clock. Then a Penstock epoch is taken apart by phase.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from benchmarks.epoch_spans import PLAIN, WITH_CHECKPOINT, breakdown, read_spans, render_breakdown
from benchmarks.process_tree import end_session
from benchmarks.systems import ROOT, PeerUnavailableError, pyflink_python
from benchmarks.table import RESULTS

KEYS = 10
# What the jobs print, and a row of Spark's console.
_RESULT = re.compile(r"RESULT (\S+) (\d+)|^\|\s*(\S+)\s*\|\s*(\d+)\s*\|$")


@dataclass(frozen=True)
class Row:
    """One system with its settings."""

    name: str
    module: str
    package: str
    find_python: Callable[[], str]
    arguments: list[str] = field(default_factory=list)


def _own_python() -> str:
    return sys.executable


def _penstock(parallelism: int) -> Row:
    arguments = [f"--parallelism={parallelism}", "--config=spark.master=local[2]"]
    return Row(f"penstock, parallelism {parallelism}", "latency_job", "penstock", _own_python, arguments)


def _pyflink(mode: str) -> Row:
    arguments = ["--parallelism=2", f"--config=python.execution-mode={mode}"]
    return Row(f"pyflink {mode}, parallelism 2", "latency_job", "pyflink", pyflink_python, arguments)


def _pyspark(name: str, *settings: str) -> Row:
    return Row(name, "latency_pyspark", "pyspark", _own_python, [f"--config={each}" for each in settings])


ROWS = {
    "penstock-1": _penstock(1),
    "penstock-2": _penstock(2),
    "pyflink-process": _pyflink("process"),
    "pyflink-thread": _pyflink("thread"),
    "pyspark": _pyspark("pyspark as shipped (200 partitions)"),
    "pyspark-tuned": _pyspark("pyspark, 2 shuffle partitions", "spark.sql.shuffle.partitions=2"),
}
BASE = "penstock-2"


class Ledger:
    """Which records were sent when, and since when a result that counts them can be seen."""

    def __init__(self) -> None:
        self._sent: defaultdict[str, int] = defaultdict(int)
        self._waiting: defaultdict[str, deque[tuple[int, float]]] = defaultdict(deque)
        self._lock = threading.Lock()
        self.latencies: list[tuple[float, float]] = []
        """Time of sending and seconds until the result, of every record that was seen."""

    def sent(self, key: str, now: float) -> None:
        with self._lock:
            self._sent[key] += 1
            self._waiting[key].append((self._sent[key], now))

    def seen(self, key: str, count: int, now: float) -> None:
        """A count of n is the result of the key's first n records: a micro-batch shows only the last of its counts."""
        with self._lock:
            waiting = self._waiting[key]
            while waiting and waiting[0][0] <= count:
                _, sent = waiting.popleft()
                self.latencies.append((sent, now - sent))

    def oldest(self) -> float | None:
        """When the oldest record was sent that is still waiting for its result."""
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


@dataclass(frozen=True)
class Latency:
    system: str
    records: int
    median_ms: float
    p95_ms: float
    most_ms: float
    first_result_s: float
    """From starting the program to its first result."""


def latency_of(system: str, seconds: list[float], first_result_s: float) -> Latency:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return Latency(
        system, len(ordered), statistics.median(ordered) * 1000, p95 * 1000, ordered[-1] * 1000, first_result_s
    )


class Run:
    """One program that counts what it gets from a socket: sends at a steady rate and watches what it prints."""

    def __init__(self, row: Row, rate: int, timeout: float) -> None:
        self._row = row
        self._pause = 1 / rate
        self._timeout = timeout
        self._ledger = Ledger()
        self._first_result: float | None = None
        self._sent = 0

    def measure(self, warm_up: float, seconds: float) -> Latency:
        """Raises PeerUnavailableError if the program does not come to its first result in time."""
        with socket.create_server(("127.0.0.1", 0)) as server, tempfile.TemporaryFile("w+") as errors:
            started = time.monotonic()
            child = self._start(server.getsockname()[1], errors)
            try:
                threading.Thread(target=self._watch, args=(child.stdout,), daemon=True).start()
                connection = self._accepted(server, child)
                with connection:
                    return self._steady(connection, child, started, warm_up, seconds)
            except OSError as error:
                errors.seek(0)
                lines = errors.read().strip().splitlines() or ["no message"]
                raise PeerUnavailableError(f"failed ({error}): {lines[-1]}") from error
            finally:
                end_session(child.pid)
                child.wait()

    def _start(self, port: int, errors: IO[str]) -> subprocess.Popen[str]:
        python = self._row.find_python()
        environment = {
            **os.environ,
            "BENCH_PACKAGE": self._row.package if self._row.package == "pyflink" else "penstock",
            # PyFlink starts its workers with whatever `python` is.
            "PATH": os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), *([str(ROOT / "src")] if self._row.package == "penstock" else [])]
            ),
        }
        command = [python, "-m", f"benchmarks.{self._row.module}", f"--port={port}", *self._row.arguments]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )

    def _accepted(self, server: socket.socket, child: subprocess.Popen[str]) -> socket.socket:
        server.settimeout(1)
        deadline = time.monotonic() + self._timeout
        while child.poll() is None and time.monotonic() < deadline:
            try:
                return server.accept()[0]
            except TimeoutError:
                continue
        raise ConnectionError("it did not ask for its input")

    def _watch(self, output: IO[str]) -> None:
        for line in output:
            now = time.monotonic()
            found = result_in(line.strip())
            if found is not None:
                self._first_result = self._first_result or now
                self._ledger.seen(*found, now)

    def _steady(
        self, connection: socket.socket, child: subprocess.Popen[str], started: float, warm_up: float, seconds: float
    ) -> Latency:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        deadline = time.monotonic() + self._timeout
        self._send_while(connection, child, lambda now: self._first_result is None and now < deadline)
        if self._first_result is None:
            raise TimeoutError(f"no result within {self._timeout:.0f} s")
        warm_at = time.monotonic() + warm_up
        self._send_while(connection, child, lambda now: now < warm_at)
        end = warm_at + seconds
        # What follows the measured records keeps the job as busy as before, until all of these have been seen.
        deadline = end + self._timeout
        self._send_while(connection, child, lambda now: now < deadline and (now < end or self._waits_for(end)))
        latencies = self._ledger.between(warm_at, end)
        if not latencies or self._waits_for(end):
            raise TimeoutError(f"results were missing after {self._timeout:.0f} s")
        return latency_of(self._row.name, latencies, self._first_result - started)

    def _waits_for(self, end: float) -> bool:
        oldest = self._ledger.oldest()
        return oldest is not None and oldest < end

    def _send_while(
        self, connection: socket.socket, child: subprocess.Popen[str], goes_on: Callable[[float], bool]
    ) -> None:
        """Records at even distances; one that is late because this process was, is sent at once."""
        due = time.monotonic()
        while goes_on(time.monotonic()) and child.poll() is None:
            key = f"key-{self._sent % KEYS}"
            self._sent += 1
            self._ledger.sent(key, time.monotonic())
            connection.sendall(f"{key}\n".encode())
            due += self._pause
            time.sleep(max(0.0, due - time.monotonic()))


def render(found: dict[str, Latency], rate: int) -> str:
    """Median and 95th percentile, and how many times those of Penstock each is."""
    base = found.get(BASE) or next(iter(found.values()))
    rows = [["system", "median ms", "ratio", "p95 ms", "ratio", "most ms", "first result s", "records"]]
    for each in found.values():
        rows.append(
            [
                each.system,
                f"{each.median_ms:,.1f}",
                f"{each.median_ms / base.median_ms:.2f}",
                f"{each.p95_ms:,.1f}",
                f"{each.p95_ms / base.p95_ms:.2f}",
                f"{each.most_ms:,.0f}",
                f"{each.first_result_s:.1f}",
                f"{each.records:,}",
            ]
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [f"latency of a count per key, {rate} records/s, {KEYS} keys; ratios to {base.system}", ""]
    for row in rows:
        lines.append("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]))
    return "\n".join(lines)


def phases(parsed: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Median milliseconds by phase, of epochs without and with a checkpoint."""
    with tempfile.TemporaryDirectory(prefix="penstock-spans-") as folder:
        row = _penstock(parsed.phase_parallelism)
        settings = [f"--spans={folder}", "--config=execution.checkpointing.interval=1 s"]
        row = Row(f"{row.name}, by phase", row.module, row.package, row.find_python, [*row.arguments, *settings])
        Run(row, parsed.rate, parsed.timeout).measure(parsed.warm_up, parsed.seconds)
        return breakdown(read_spans(Path(folder)), skip_seconds=parsed.warm_up)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help="which ones, comma separated (%(default)s)")
    parser.add_argument("--rate", type=int, default=100, help="records a second (%(default)s)")
    parser.add_argument("--warm-up", type=float, default=20, help="seconds after the first result (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="how long to measure (%(default)s)")
    parser.add_argument("--timeout", type=float, default=180, help="seconds to the first result (%(default)s)")
    parser.add_argument(
        "--phase-parallelism", type=int, default=2, help="of the job taken apart; 0: none (%(default)s)"
    )
    parsed = parser.parse_args(arguments)
    parsed.rows = [name for name in parsed.rows.split(",") if name]
    unknown = [name for name in parsed.rows if name not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    return parsed


def write_results(document: dict[str, Any]) -> Path:
    path = RESULTS / "latency.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def main() -> None:
    parsed = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # As an exception it ends the running child, too.
    found: dict[str, Latency] = {}
    notes: list[str] = []
    for name in parsed.rows:
        print(f"latency of {ROWS[name].name} ...", file=sys.stderr)
        try:
            found[name] = Run(ROWS[name], parsed.rate, parsed.timeout).measure(parsed.warm_up, parsed.seconds)
            print(f"  median {found[name].median_ms:,.1f} ms", file=sys.stderr)
        except PeerUnavailableError as reason:
            notes.append(f"{ROWS[name].name} is left out: {reason}")
    if found:
        print(render(found, parsed.rate))
    print("\n".join(f"note: {note}" for note in notes))
    taken_apart: dict[str, dict[str, float]] = {}
    if parsed.phase_parallelism:
        print("an epoch by phase ...", file=sys.stderr)
        taken_apart = phases(parsed)
        print(render_breakdown(taken_apart), flush=True)
    document = {
        "rate": parsed.rate,
        "seconds": parsed.seconds,
        "systems": {name: asdict(latency) for name, latency in found.items()},
        "phases_ms": {kind: taken_apart.get(kind, {}) for kind in (PLAIN, WITH_CHECKPOINT)},
        "notes": notes,
    }
    print(f"written to {write_results(document).name}", file=sys.stderr)


if __name__ == "__main__":
    main()
