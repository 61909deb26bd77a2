"""What a record costs when there is ten times as much: records, keys, open windows, parallelism, state.

`python -m benchmarks.growth` runs each pair on Penstock and prints wall and CPU time per record, and the memory of a
job with a million keys beside PyFlink's. A cost that grows to more than 1.3 times is marked, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from benchmarks.__main__ import busy_note
from benchmarks.child import run_on
from benchmarks.job import Setting
from benchmarks.systems import PENSTOCK, ROOT, PeerUnavailableError, rows_of
from benchmarks.table import RESULTS

FLAT = 1.3
TOUCHED_KEYS, STATE_EPOCHS = 10_000, 7


@dataclass(frozen=True)
class Cost:
    """Microseconds per record."""

    wall_us: float
    cpu_us: float | None


@dataclass(frozen=True)
class Growth:
    """What ten times as much of something does to a record's cost."""

    what: str
    base_size: int
    grown_size: int
    base: Cost
    grown: Cost
    reason: str
    """Why the cost grows, where it does."""

    @property
    def wall_ratio(self) -> float:
        return self.grown.wall_us / self.base.wall_us

    @property
    def cpu_ratio(self) -> float | None:
        if self.base.cpu_us is None or self.grown.cpu_us is None:
            return None
        return self.grown.cpu_us / self.base.cpu_us

    @property
    def is_flat(self) -> bool:
        """True if neither wall nor CPU time of a record grows by more than the limit."""
        return self.wall_ratio <= FLAT and (self.cpu_ratio or 0) <= FLAT


@dataclass(frozen=True)
class Dimension:
    what: str
    base_size: int
    cost: Callable[[int, argparse.Namespace], Cost]
    reason: str = ""


def job_cost(benchmark: str, setting: Callable[[int, int], Setting], size: int, parsed: argparse.Namespace) -> Cost:
    """Of a whole job, without what a job of no records costs; CPU time cannot be split and has it all."""
    outcome = run_on(PENSTOCK, benchmark, setting(size, parsed.records), parsed.timeout)
    assert outcome is not None
    found = outcome.measurement
    seconds = found.seconds - found.fixed_seconds
    cpu = None if found.cpu_seconds is None else found.cpu_seconds / found.records * 1e6
    return Cost(seconds / found.records * 1e6, cpu)


def state_cost(size: int, parsed: argparse.Namespace) -> Cost:
    """Of a key that is read and written, with its part of the epoch's snapshot, while `size` keys have state."""
    command = [sys.executable, "benchmarks/state_size.py", "--child", "heap", str(size), str(TOUCHED_KEYS)]
    command += [str(STATE_EPOCHS), "1"]
    answer = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=parsed.timeout
    ).stdout
    found: dict[str, Any] = json.loads(answer.strip().splitlines()[-1])
    return Cost(1e6 / found["updates_per_second"] + found["delta_milliseconds"] * 1000 / TOUCHED_KEYS, None)


def _more_records(size: int, _: int) -> Setting:
    return Setting(size, 2)


def _more_keys(size: int, records: int) -> Setting:
    return Setting(records, 2, size, has_skew=False)


def _more_subtasks(size: int, records: int) -> Setting:
    return Setting(records, size)


def dimensions(records: int) -> dict[str, Dimension]:
    return {
        "records": Dimension("records", records, partial(job_cost, "word_count", _more_records)),
        "keys": Dimension(
            "keys",
            100_000,
            partial(job_cost, "keyed_count", _more_keys),
            "each key's first record makes an entry, and entries no longer fit the processor's caches",
        ),
        "windows": Dimension(
            "open windows of a key",
            100,
            partial(job_cost, "open_windows", _more_keys),
            "fewer records of a chunk fall into the same window, so fewer are reduced before the exchange",
        ),
        "parallelism": Dimension(
            "parallelism",
            1,
            partial(job_cost, "word_count", _more_subtasks),
            "more subtasks than cores take turns and send more, smaller chunks; one subtask sends none at all",
        ),
        "state": Dimension(
            "keys with state, of which 10,000 are touched",
            100_000,
            state_cost,
            "random keys of a larger table are further apart in memory; those of a plain dictionary cost more too",
        ),
    }


def grow(dimension: Dimension, parsed: argparse.Namespace) -> Growth:
    sizes = dimension.base_size, 10 * dimension.base_size
    base, grown = (dimension.cost(size, parsed) for size in sizes)
    return Growth(dimension.what, *sizes, base, grown, dimension.reason)


def memory_of_a_million_keys(parsed: argparse.Namespace) -> tuple[dict[str, int], list[str]]:
    """Most bytes in use by all processes of a job, by system."""
    found: dict[str, int] = {}
    notes: list[str] = []
    setting = Setting(parsed.memory_keys, 2, parsed.memory_keys, has_skew=False)
    # PyFlink's process mode, which has Python processes besides, would take half an hour for these records.
    for system in [PENSTOCK, *rows_of("pyflink-thread")]:
        print(f"memory of {parsed.memory_keys:,} keys on {system.name} ...", file=sys.stderr)
        try:
            outcome = run_on(system, "keyed_count", setting, parsed.timeout)
        except PeerUnavailableError as reason:
            notes.append(f"{system.name} is left out: {reason}")
            continue
        if outcome is not None and outcome.peak_memory_bytes is not None:
            found[system.name] = outcome.peak_memory_bytes
    return found, notes


def render(found: list[Growth]) -> str:
    rows = [["ten times as many", "from", "to", "us/record", "ratio", "CPU us/record", "ratio", ""]]
    for each in found:
        rows.append(
            [
                each.what,
                f"{each.base_size:,}",
                f"{each.grown_size:,}",
                f"{each.base.wall_us:.3f} -> {each.grown.wall_us:.3f}",
                f"{each.wall_ratio:.2f}",
                "?" if each.cpu_ratio is None else f"{each.base.cpu_us:.3f} -> {each.grown.cpu_us:.3f}",
                "?" if each.cpu_ratio is None else f"{each.cpu_ratio:.2f}",
                "" if each.is_flat else "GROWS",
            ]
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    reasons = [f"{each.what} grows: {each.reason or 'not known why'}" for each in found if not each.is_flat]
    return "\n".join([*lines, *reasons])


def render_memory(memory: dict[str, int], keys: int) -> str:
    base = memory.get(PENSTOCK.name)
    lines = ["", f"peak memory of a count of {keys:,} keys, MiB"]
    for name, size in memory.items():
        ratio = "" if base is None or name == PENSTOCK.name else f"   penstock has {base / size:.2f} times as much"
        lines.append(f"{name:20}{size / 2**20:10,.0f}{ratio}")
    return "\n".join(lines)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    names = list(dimensions(0))
    parser.add_argument("--only", default=",".join(names), help="which ones, comma separated (%(default)s)")
    parser.add_argument("--records", type=int, default=4_000_000, help="of a run, before they grow (%(default)s)")
    parser.add_argument("--memory-keys", type=int, default=1_000_000, help="0: no memory (%(default)s)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run (%(default)s)")
    parsed = parser.parse_args(arguments)
    parsed.only = [name for name in parsed.only.split(",") if name]
    unknown = [name for name in parsed.only if name not in names]
    if unknown:
        parser.error(f"there is no dimension {unknown[0]!r}; there are {', '.join(names)}")
    return parsed


def _as_document(growth: Growth) -> dict[str, Any]:
    ratios = {"wall_ratio": growth.wall_ratio, "cpu_ratio": growth.cpu_ratio, "is_flat": growth.is_flat}
    return {**asdict(growth), **ratios}


def main() -> None:
    parsed = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # As an exception it ends the running child, too.
    notes = busy_note()
    found: dict[str, Growth] = {}
    for name in parsed.only:
        print(f"growth of {name} ...", file=sys.stderr)
        found[name] = grow(dimensions(parsed.records)[name], parsed)
    if found:
        print(render(list(found.values())))
    memory: dict[str, int] = {}
    if parsed.memory_keys:
        memory, more_notes = memory_of_a_million_keys(parsed)
        notes += more_notes
        print(render_memory(memory, parsed.memory_keys))
    print("\n".join(f"note: {note}" for note in notes), flush=True)
    document = {
        "records": parsed.records,
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version()},
        "growth": {name: _as_document(each) for name, each in found.items()},
        "memory_bytes": memory,
        "memory_keys": parsed.memory_keys,
        "notes": notes,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "growth.json").write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
