"""The Nexmark queries in SQL on Penstock and on PyFlink, over the same file of events: events per second, and ratios.

The rate is that of the events beyond the few that a small job has, in the time beyond what that job takes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import busy_note
from benchmarks.child import environment_of
from benchmarks.job import RESULT_MARK
from benchmarks.nexmark_sql.events import write_events
from benchmarks.nexmark_sql.queries import DEPENDS_ON_THE_CLOCK, QUERIES
from benchmarks.peers.installation import PeerUnavailableError, bench_folder, pyflink_python
from benchmarks.process_tree import end_session
from benchmarks.systems import PENSTOCK, ROOT, System

SMALL = 1_000
NAMES = [name for name in QUERIES if name not in DEPENDS_ON_THE_CLOCK]
PYFLINK = System("PyFlink", "pyflink", lambda benchmark, setting: None)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nexmark_sql", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="name", help=f"which ones: {', '.join(NAMES)} (all)")
    parser.add_argument("--events", type=int, default=500_000, help="(%(default)s)")
    parser.add_argument("--parallelism", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting for Penstock")
    parser.add_argument("--timeout", type=float, default=1_800, help="seconds for a system (%(default)s)")
    parsed = parser.parse_args(arguments)
    unknown = [name for name in parsed.names if name not in QUERIES]
    if unknown:
        parser.error(f"there is no query {unknown[0]!r}; there are {', '.join(QUERIES)}")
    return parsed


def folder_of(count: int) -> Path:
    """A folder with so many events, one each millisecond, made when first needed."""
    folder = bench_folder() / "inputs" / f"nexmark-sql-{count}"
    if not (folder / "events.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_events(folder, count, step_ms=1)
    return folder


def rates_on(system: System, python: str, parsed: argparse.Namespace) -> dict[str, float]:
    """Events per second, by query."""
    own = [f"--config={each}" for each in parsed.config] if system is PENSTOCK else []
    folders = [str(folder_of(SMALL)), str(folder_of(parsed.events))]
    command = [python, "-m", "benchmarks.nexmark_sql.child", *folders, "--parallelism", str(parsed.parallelism)]
    child = subprocess.Popen(
        [*command, *own, *parsed.names],
        cwd=ROOT,
        env=environment_of(system, python),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=parsed.timeout)
    except subprocess.TimeoutExpired:
        raise PeerUnavailableError(f"took longer than {parsed.timeout:.0f} s") from None
    finally:
        end_session(child.pid)
    lines = [line for line in output.splitlines() if line.startswith(RESULT_MARK)]
    if child.returncode != 0:
        print(errors[-4_000:], file=sys.stderr)
    found = [json.loads(line.removeprefix(RESULT_MARK)) for line in lines]
    return {name: (parsed.events - SMALL) / max(large - small, 1e-3) for name, small, large in found}


def table_of(names: list[str], own: dict[str, float], others: dict[str, float]) -> str:
    """A line for each query, and the median of the ratios."""
    lines = [f"{'query':6}{'Penstock':>12}{'PyFlink':>12}{'ratio':>8}"]
    ratios = []
    for name in names:
        rates = [each.get(name) for each in (own, others)]
        texts = ["failed" if rate is None else f"{rate:,.0f}" for rate in rates]
        ratio = "" if rates[0] is None or rates[1] is None else f"{rates[0] / rates[1]:.2f}"
        ratios += [float(ratio)] if ratio else []
        lines.append(f"{name:6}{texts[0]:>12}{texts[1]:>12}{ratio:>8}")
    if ratios:
        lines.append(f"{'median':30}{statistics.median(ratios):>8.2f}")
    return "\n".join(lines)


def main() -> int:
    parsed = parse()
    notes = busy_note()
    print(f"{parsed.events:,} events, parallelism {parsed.parallelism}, {os.cpu_count()} cores", file=sys.stderr)
    own = rates_on(PENSTOCK, sys.executable, parsed)
    try:
        others = rates_on(PYFLINK, pyflink_python(), parsed)
    except PeerUnavailableError as reason:
        others, notes = {}, [*notes, f"PyFlink is left out: {reason}"]
    print(table_of(parsed.names, own, others))
    print("\n".join(f"note: {note}" for note in notes))
    return 0 if len(own) == len(parsed.names) else 1


if __name__ == "__main__":
    sys.exit(main())
