"""Throughput of the same programs on Penstock and on its peers, as a table, as JSON and as a chart."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from dataclasses import replace

from benchmarks.chart import CHART, draw
from benchmarks.child import Outcome, run_on
from benchmarks.docs_section import write_docs
from benchmarks.job import Setting, add_arguments, setting_of, sizes_of
from benchmarks.programs import NAMES, PROGRAMS, chosen, prepare, right_answer
from benchmarks.systems import PEERS, PENSTOCK, USUAL_PEERS, PeerUnavailableError, System, rows_of
from benchmarks.table import RESULTS, read_results, render, write_results


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"which ones: {', '.join(NAMES)} (all)")
    add_arguments(
        parser,
        keys=None,
        records_help="records to run through; fast programs get several times as many, slow ones fewer",
    )
    parser.set_defaults(words=500_000)
    parser.add_argument(
        "--peers",
        default=",".join(USUAL_PEERS),
        help=f"systems to compare with, comma separated (%(default)s); empty: none; all: {', '.join(PEERS)}",
    )
    parser.add_argument("--peer-words", type=int, default=100_000, help="records for slow peers (%(default)s)")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one run (%(default)s)")
    parser.add_argument(
        "--write-docs", action="store_true", help="run nothing; put the results so far into docs/benchmarks.md"
    )
    parsed = parser.parse_args(arguments)
    unknown = [name for name in parsed.names if not chosen([name])]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    unknown = [name for name in _peer_names(parsed) if not rows_of(name)]
    if unknown:
        parser.error(f"there is no peer {unknown[0]!r}; there are {', '.join(PEERS)}")
    return parsed


def busy_note() -> list[str]:
    """A warning, if others use this machine."""
    load = os.getloadavg()[0]
    if load < 0.5 * (os.cpu_count() or 1):
        return []
    return [f"the machine was busy when this began (load {load:.1f}): the figures are worse than on an idle one"]


def _peer_names(parsed: argparse.Namespace) -> list[str]:
    return [name for name in parsed.peers.split(",") if name]


def setting_for(benchmark: str, parsed: argparse.Namespace) -> Setting:
    """Programs have their own number of keys, unless the command line gives one, and their own share of records."""
    program = PROGRAMS[benchmark]
    keys = program.keys if parsed.keys is None else parsed.keys
    setting = setting_of(argparse.Namespace(**{**vars(parsed), "keys": Setting().keys if keys is None else keys}))
    return replace(setting, records=int(setting.records * program.times_records))


def runs_of(parsed: argparse.Namespace) -> list[tuple[str, Setting]]:
    """What is asked for, in order."""
    runs = []
    for benchmark in chosen(parsed.names):
        setting = setting_for(benchmark, parsed)
        runs.append((benchmark, setting))
        if PROGRAMS[benchmark].has_even_run and setting.has_skew and not parsed.names:
            runs.append((benchmark, replace(setting, has_skew=False)))
    return runs


def compare(benchmark: str, setting: Setting, parsed: argparse.Namespace) -> tuple[list[Outcome], list[str]]:
    """Penstock first, then each peer; who cannot run is left out with a note."""
    outcomes: list[Outcome] = []
    notes: list[str] = []
    try:
        for records in sizes_of(setting):
            prepare(benchmark, replace(setting, records=records))
    except PeerUnavailableError as reason:
        return outcomes, [f"{benchmark} is left out: {reason}"]
    for system in [PENSTOCK, *(row for name in _peer_names(parsed) for row in rows_of(name))]:
        if system.package == "pyflink" and not PROGRAMS[benchmark].is_pyflink:
            continue
        own = _setting_on(system, benchmark, setting, parsed.peer_words)
        print(f"{benchmark} on {system.name}: {own.records:,} records ...", file=sys.stderr)
        try:
            outcome = run_on(system, benchmark, own, parsed.timeout)
        except PeerUnavailableError as reason:
            notes.append(f"{system.name} is left out: {reason}")
            continue
        if outcome is None:
            continue
        wrong = _check(benchmark, own, outcome)
        notes += [wrong] if wrong else []
        outcomes.append(outcome)
    return outcomes, notes


def _setting_on(system: System, benchmark: str, setting: Setting, peer_words: int) -> Setting:
    given = setting.config if system.package == "penstock" else {}  # What was given is meant for Penstock.
    setting = replace(setting, config={**PROGRAMS[benchmark].config, **given})
    return replace(setting, records=min(setting.records, peer_words)) if system.is_slow else setting


def _check(benchmark: str, setting: Setting, outcome: Outcome) -> str | None:
    """What is wrong with the results; None if they are those of plain Python."""
    right = right_answer(benchmark, setting)
    for found in outcome.runs:
        if found.digest != right.digest:
            return (
                f"{outcome.system} gave WRONG results: {found.results} of them with digest {found.digest}, "
                f"where {right.results} with {right.digest} are right"
            )
    return None


def main() -> int:
    parsed = parse()
    if parsed.write_docs:
        write_docs()
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # As an exception it ends the running child, too.
    is_wrong = False
    busy = busy_note()  # Asked once: later it would see our own runs.
    for benchmark, setting in runs_of(parsed):
        outcomes, notes = compare(benchmark, setting, parsed)
        notes += busy
        is_wrong = is_wrong or any("WRONG" in note for note in notes)
        if not outcomes:
            print("\n".join(f"note: {note}" for note in notes))
            continue
        print(render(benchmark, setting, outcomes, notes), flush=True)
        print(f"written to {write_results(benchmark, setting, outcomes, notes).name}\n", file=sys.stderr)
    (RESULTS / CHART.name).write_text(draw(read_results()))
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
