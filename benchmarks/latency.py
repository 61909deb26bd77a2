"""How long a record takes from being due to its result being seen, at steady rates, and what else a quiet job costs.

`python -m benchmarks.latency` sends words through a socket to a count per word: on Penstock, on Flink's Java API as it
is shipped (a buffer waits for 100 ms) and without waiting, and on PyFlink with bundles of 10 ms. Then, for Penstock:
what an epoch takes at several parallelisms, and how long a job takes from a function's exception until it counts again.
Then an epoch is taken apart by phase.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.__main__ import busy_note
from benchmarks.epoch_spans import PLAIN, WITH_CHECKPOINT, breakdown, epoch_times_ms, read_spans, render_breakdown
from benchmarks.latency_run import KEYS, Latency, Restarts, Row, SteadyRun
from benchmarks.peers.installation import PeerUnavailableError, installed_pyflink
from benchmarks.systems import flink_jvm
from benchmarks.table import RESULTS

RESULT_FILE = RESULTS / "latency.json"


def _program(find_python: Callable[[], str], module: str, *arguments: str) -> Callable[[int], list[str]]:
    return lambda port: [find_python(), "-m", f"benchmarks.{module}", f"--port={port}", *arguments]


def _own_python() -> str:
    return sys.executable


def _configured(settings: dict[str, str]) -> list[str]:
    return [f"--config={key}={value}" for key, value in settings.items()]


def penstock_row(parallelism: int, *arguments: str) -> Row:
    given = [f"--parallelism={parallelism}", "--config=spark.master=local[2]", *arguments]
    return Row(f"penstock, parallelism {parallelism}", _program(_own_python, "latency_job", *given))


def _flink_java(name: str, settings: dict[str, str]) -> Row:
    given = ["--parallelism=2", *_configured(settings)]
    return Row(name, lambda port: flink_jvm("Latency", f"--port={port}", *given))


def _pyflink(mode: str, about: str, settings: dict[str, str]) -> Row:
    given = ["--parallelism=2", *_configured({"python.execution-mode": mode, **settings})]
    return Row(f"pyflink {mode}, {about}", _program(installed_pyflink, "latency_job", *given), "pyflink")


def _pyspark(name: str, settings: dict[str, str]) -> Row:
    return Row(name, _program(_own_python, "latency_pyspark", *_configured(settings)), "pyspark")


BUNDLES_OF_10_MS = {"python.fn-execution.bundle.time": "10"}
ROWS = {
    "penstock-2": penstock_row(2),
    "penstock-1": penstock_row(1),
    "flink-java": _flink_java("flink java as shipped (buffer timeout 100 ms)", {}),
    "flink-java-0": _flink_java("flink java, buffer timeout 0", {"execution.buffer-timeout.interval": "0 ms"}),
    "pyflink-10ms": _pyflink("process", "bundles of 10 ms", BUNDLES_OF_10_MS),
    "pyflink-thread-10ms": _pyflink("thread", "bundles of 10 ms", BUNDLES_OF_10_MS),
    "pyflink-process": _pyflink("process", "as shipped", {}),
    "pyflink-thread": _pyflink("thread", "as shipped", {}),
    "pyspark": _pyspark("pyspark as shipped (200 partitions)", {}),
    "pyspark-tuned": _pyspark("pyspark, 2 shuffle partitions", {"spark.sql.shuffle.partitions": "2"}),
}
USUAL = ["penstock-2", "penstock-1", "flink-java", "flink-java-0", "pyflink-10ms"]

RESTARTING = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000000",
    "restart-strategy.fixed-delay.delay": "0 s",
    "execution.checkpointing.interval": "1 s",
}
RESTART_ROWS = [penstock_row(2, *_configured(RESTARTING)), _flink_java("flink java, parallelism 2", RESTARTING)]


def render(found: list[Latency]) -> str:
    """A line for each system and rate; ratios are to the first system at that rate."""
    rows = [["system", "records/s", "median ms", "ratio", "95 % ms", "99 % ms", "most ms", "CPU ms/s", "records"]]
    for each in found:
        base = next(other for other in found if other.rate == each.rate)
        rows.append(
            [
                each.system,
                f"{each.rate:,}",
                f"{each.median_ms:,.1f}",
                f"{each.median_ms / base.median_ms:.2f}",
                f"{each.p95_ms:,.1f}",
                f"{each.p99_ms:,.1f}",
                f"{each.most_ms:,.0f}",
                "?" if each.cpu_ms_per_second is None else f"{each.cpu_ms_per_second:,.0f}",
                f"{each.records:,}",
            ]
        )
    return f"latency of a count per key, {KEYS} keys\n\n{aligned(rows)}"


def aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)


@dataclass(frozen=True)
class EpochFloor:
    """What an epoch takes that has almost nothing to do."""

    parallelism: int
    epochs: int
    median_ms: float
    p95_ms: float
    cpu_ms: float | None
    """CPU time of all processes for an epoch."""


def epoch_floor(parallelism: int, parsed: argparse.Namespace) -> EpochFloor:
    with tempfile.TemporaryDirectory(prefix="penstock-epochs-") as folder:
        row = penstock_row(parallelism, f"--epochs={folder}")
        found = SteadyRun(row, 100, parsed.timeout).measure(parsed.warm_up, parsed.seconds)
        times = epoch_times_ms(read_spans(Path(folder)), parsed.seconds)
    cpu = found.cpu_ms_per_second
    per_epoch = None if cpu is None else cpu * parsed.seconds / len(times)
    p95 = sorted(times)[int(len(times) * 0.95)]
    return EpochFloor(parallelism, len(times), statistics.median(times), p95, per_epoch)


def render_floors(floors: list[EpochFloor]) -> str:
    rows = [["an epoch at parallelism", "median ms", "95 % ms", "CPU ms", "epochs"]]
    for each in floors:
        cpu = "?" if each.cpu_ms is None else f"{each.cpu_ms:.1f}"
        rows.append([str(each.parallelism), f"{each.median_ms:.2f}", f"{each.p95_ms:.2f}", cpu, f"{each.epochs:,}"])
    return aligned(rows)


@dataclass(frozen=True)
class RestartTime:
    """From a function's exception until the job counts again, without the restart strategy's delay."""

    system: str
    failures: int
    median_ms: float
    most_ms: float


def restart_time(row: Row, parsed: argparse.Namespace) -> RestartTime:
    times = Restarts(row, parsed.timeout).measure(parsed.restarts)
    return RestartTime(row.name, len(times), statistics.median(times) * 1000, max(times) * 1000)


def render_restarts(found: list[RestartTime]) -> str:
    rows = [["from an exception to the next result", "median ms", "most ms", "failures"]]
    rows += [[each.system, f"{each.median_ms:,.0f}", f"{each.most_ms:,.0f}", str(each.failures)] for each in found]
    return aligned(rows)


def phases(parsed: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Median milliseconds by phase, of epochs without and with a checkpoint."""
    with tempfile.TemporaryDirectory(prefix="penstock-spans-") as folder:
        settings = [f"--spans={folder}", "--config=execution.checkpointing.interval=1 s"]
        row = penstock_row(parsed.phase_parallelism, *settings)
        row = replace(row, name=f"{row.name}, by phase")
        SteadyRun(row, 100, parsed.timeout).measure(parsed.warm_up, parsed.seconds)
        return breakdown(read_spans(Path(folder)), skip_seconds=parsed.warm_up)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument(
        "--rows", default=",".join(USUAL), help=f"which ones, comma separated (%(default)s); all: {', '.join(ROWS)}"
    )
    parser.add_argument("--rates", default="100,10000", help="records a second, comma separated (%(default)s)")
    parser.add_argument("--warm-up", type=float, default=10, help="seconds after the first result (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="how long to measure (%(default)s)")
    parser.add_argument("--timeout", type=float, default=60, help="seconds to wait for results (%(default)s)")
    parser.add_argument(
        "--floors", default="1,2,8,32", help="parallelisms of which to measure an epoch; empty: none (%(default)s)"
    )
    parser.add_argument("--restarts", type=int, default=10, help="failures of a job; 0: none (%(default)s)")
    parser.add_argument(
        "--phase-parallelism", type=int, default=2, help="of the job taken apart; 0: none (%(default)s)"
    )
    parsed = parser.parse_args(arguments)
    parsed.rows = [name for name in parsed.rows.split(",") if name]
    parsed.rates = [int(rate) for rate in parsed.rates.split(",") if rate]
    parsed.floors = [int(parallelism) for parallelism in parsed.floors.split(",") if parallelism]
    unknown = [name for name in parsed.rows if name not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    return parsed


def tried(what: str, measure: Callable[[], Any], notes: list[str]) -> list[Any]:
    """What was measured; nothing and a note if it cannot run here."""
    print(f"{what} ...", file=sys.stderr)
    try:
        return [measure()]
    except PeerUnavailableError as reason:
        notes.append(f"{what} is left out: {reason}")
        return []


def main() -> None:
    parsed = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # As an exception it ends the running child, too.
    sys.setswitchinterval(0.0005)  # Who sends must not wait for who reads.
    notes = busy_note()
    found: list[Latency] = []
    for rate in parsed.rates:
        for name in parsed.rows:
            run = SteadyRun(ROWS[name], rate, parsed.timeout)
            about = f"{ROWS[name].name}, {rate:,} records/s"
            found += tried(about, partial(run.measure, parsed.warm_up, parsed.seconds), notes)
    if found:
        print(render(found), flush=True)
    floors: list[EpochFloor] = []
    for parallelism in parsed.floors:
        floors += tried(f"epochs at parallelism {parallelism}", partial(epoch_floor, parallelism, parsed), notes)
    if floors:
        print("\n" + render_floors(floors), flush=True)
    restarts: list[RestartTime] = []
    for row in RESTART_ROWS if parsed.restarts else []:
        restarts += tried(f"restarts of {row.name}", partial(restart_time, row, parsed), notes)
    if restarts:
        print("\n" + render_restarts(restarts), flush=True)
    taken_apart: dict[str, dict[str, float]] = {}
    if parsed.phase_parallelism:
        for each in tried("an epoch by phase", partial(phases, parsed), notes):
            taken_apart = each
            print(render_breakdown(taken_apart), flush=True)
    print("\n".join(f"note: {note}" for note in notes))
    RESULTS.mkdir(exist_ok=True)
    document = {
        "seconds": parsed.seconds,
        "latencies": [asdict(each) for each in found],
        "epoch_floors": [asdict(each) for each in floors],
        "restarts": [asdict(each) for each in restarts],
        "phases_ms": {kind: taken_apart.get(kind, {}) for kind in (PLAIN, WITH_CHECKPOINT)},
        "notes": notes,
    }
    RESULT_FILE.write_text(json.dumps(document, indent=2) + "\n")
    print(f"written to {RESULT_FILE.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
