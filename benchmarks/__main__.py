"""Throughput of the same programs on Penstock and on its peers, as a table and as JSON."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from dataclasses import replace

from benchmarks.child import Outcome, run_on
from benchmarks.job import Setting, add_arguments, digest_of, setting_of
from benchmarks.systems import PEERS, PENSTOCK, PeerUnavailableError, System
from benchmarks.table import render, write_results

NAMES = ["word_count", "stateless_chain", "session_windows", "keyed_count"]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"which ones: {', '.join(NAMES)} (all)")
    add_arguments(parser)
    parser.add_argument(
        "--peers", default=",".join(PEERS), help="systems to compare with, comma separated; empty: none (%(default)s)"
    )
    parser.add_argument("--peer-words", type=int, default=100_000, help="records for slow peers (%(default)s)")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run (%(default)s)")
    parsed = parser.parse_args(arguments)
    unknown = [name for name in parsed.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    unknown = [name for name in _peer_names(parsed) if name not in PEERS]
    if unknown:
        parser.error(f"there is no peer {unknown[0]!r}; there are {', '.join(PEERS)}")
    return parsed


def busy_note() -> list[str]:
    """A warning, if others use this machine."""
    load = os.getloadavg()[0]
    if load < 0.5 * (os.cpu_count() or 1):
        return []
    return [f"the machine was busy when this began (load {load:.1f}): the figures are too low"]


def _peer_names(parsed: argparse.Namespace) -> list[str]:
    return [name for name in parsed.peers.split(",") if name]


def compare(benchmark: str, parsed: argparse.Namespace) -> tuple[list[Outcome], list[str]]:
    """Penstock first, then each peer; who cannot run is left out with a note."""
    setting = setting_of(parsed)
    outcomes: list[Outcome] = []
    notes: list[str] = []
    for system in [PENSTOCK, *(row for name in _peer_names(parsed) for row in PEERS[name])]:
        own = _setting_for(system, setting, parsed.peer_words)
        print(f"{benchmark} on {system.name}: {own.records:,} records ...", file=sys.stderr)
        try:
            outcome = run_on(system, benchmark, own, parsed.timeout)
        except PeerUnavailableError as reason:
            notes.append(f"{system.name} is left out: {reason}")
            continue
        if outcome is None:
            continue  # It has no version of this benchmark.
        wrong = _check(benchmark, own, outcome)
        notes += [wrong] if wrong else []
        outcomes.append(outcome)
    return outcomes, notes


def _setting_for(system: System, setting: Setting, peer_words: int) -> Setting:
    if system.package != "penstock":
        setting = replace(setting, config={})  # What was given is meant for Penstock.
    return replace(setting, records=min(setting.records, peer_words)) if system.is_slow else setting


def _check(benchmark: str, setting: Setting, outcome: Outcome) -> str | None:
    """What is wrong with the results; None if they are those of plain Python."""
    expected = importlib.import_module(f"benchmarks.{benchmark}").expected(setting)
    if outcome.measurement.digest == digest_of(expected):
        return None
    return (
        f"{outcome.system} gave WRONG results: {outcome.measurement.results} of them with digest "
        f"{outcome.measurement.digest}, where {len(expected)} with {digest_of(expected)} are right"
    )


def main() -> int:
    parsed = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # As an exception it ends the running child, too.
    is_wrong = False
    busy = busy_note()  # Asked once: later it would see our own runs.
    for benchmark in parsed.names or NAMES:
        outcomes, notes = compare(benchmark, parsed)
        notes += busy
        is_wrong = is_wrong or any("WRONG" in note for note in notes)
        if not outcomes:
            print("\n".join(f"note: {note}" for note in notes))
            continue
        print(render(benchmark, setting_of(parsed), outcomes, notes), flush=True)
        print(f"written to {write_results(benchmark, setting_of(parsed), outcomes, notes).name}\n", file=sys.stderr)
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
