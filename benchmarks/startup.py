"""How long a small job takes from the command line to its first result, in a new process, and where that time goes.

`python -m benchmarks.startup` runs examples/word_count.py with `penstock run`, the same program with PyFlink's imports
on PyFlink, and a word count on plain PySpark, each some times in turn. Then it shows when each step of the start is
reached. The first runs may find no archive of Java's classes (docs/latency.md): `--without-archive` measures that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.process_tree import cpu_seconds, end_session
from benchmarks.startup_marks import MARKS_FOLDER, STEPS, read_marks
from benchmarks.systems import ROOT, PeerUnavailableError, pyflink_python
from benchmarks.table import RESULTS

PROGRAM = ROOT / "examples" / "word_count.py"
WITHOUT_ARCHIVE = "PENSTOCK_NO_CLASS_ARCHIVE"
# A word and its count as the systems print it: (be,2) or ('be', 2).
_RESULT = re.compile(r"^(\d+> )?\('?\w+'?, ?\d+\)$")


@dataclass(frozen=True)
class Start:
    """One run: seconds from its start to the first result and to its end, and the CPU time of all its processes."""

    first_result_s: float
    end_s: float
    cpu_s: float | None
    """Until the first result."""


@dataclass(frozen=True)
class Row:
    name: str
    command: Callable[[Path], list[str]]
    """From a folder for files that it needs."""


def _penstock(_: Path) -> list[str]:
    return [sys.executable, "-m", "penstock.cli", "run", str(PROGRAM)]


def _penstock_inline(_: Path) -> list[str]:
    return [sys.executable, "-m", "penstock.cli", "run", "-t", "inline", str(PROGRAM)]


def _pyspark(_: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.startup_pyspark"]


def _pyflink(folder: Path) -> list[str]:
    program = folder / "word_count.py"
    program.write_text(PROGRAM.read_text().replace("from penstock", "from pyflink"))
    return [pyflink_python(), str(program)]


ROWS = {
    "penstock": Row("penstock run", _penstock),
    "penstock-inline": Row("penstock run -t inline (no Spark)", _penstock_inline),
    "pyspark": Row("python, plain PySpark", _pyspark),
    "pyflink": Row("python, PyFlink", _pyflink),
}


def run_once(row: Row, timeout: float, environment: dict[str, str]) -> Start:
    """Raises PeerUnavailableError if it ends without a result."""
    with tempfile.TemporaryDirectory(prefix="penstock-startup-") as folder, tempfile.TemporaryFile("w+") as errors:
        command = row.command(Path(folder))
        path = os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", "")])
        started = time.monotonic()
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        killer = _Deadline(child, timeout)
        try:
            return _watched(child, started)
        except ValueError as error:
            errors.seek(0)
            raise PeerUnavailableError(
                f"{error}: {(errors.read().strip().splitlines() or ['no message'])[-1]}"
            ) from error
        finally:
            killer.cancel()
            end_session(child.pid)
            child.wait()


class _Deadline:
    """Ends a child that takes too long, so that the reader of its output can continue."""

    def __init__(self, child: subprocess.Popen[str], seconds: float) -> None:
        self._timer = threading.Timer(seconds, end_session, [child.pid])
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()


def _watched(child: subprocess.Popen[str], started: float) -> Start:
    assert child.stdout is not None
    first: float | None = None
    cpu = None
    for line in child.stdout:
        if first is None and _RESULT.match(line.strip()):
            first, cpu = time.monotonic() - started, cpu_seconds(child.pid)
            break
    if first is None:
        raise ValueError("it ended without a result")
    _drain(child)
    return Start(first, time.monotonic() - started, cpu)


def _drain(child: subprocess.Popen[str]) -> None:
    """Until the program has ended: its Java may keep the output open for longer."""
    assert child.stdout is not None
    threading.Thread(target=child.stdout.read, daemon=True).start()
    child.wait()


def median_of(starts: list[Start]) -> Start:
    cpus = [start.cpu_s for start in starts if start.cpu_s is not None]
    return Start(
        statistics.median(start.first_result_s for start in starts),
        statistics.median(start.end_s for start in starts),
        statistics.median(cpus) if cpus else None,
    )


def render(found: dict[str, list[Start]]) -> str:
    medians = {name: median_of(starts) for name, starts in found.items()}
    base = medians.get("penstock") or next(iter(medians.values()))
    lines = [f"{'from a new process':36}{'first result s':>16}{'ratio':>8}{'CPU s':>8}{'end s':>8}{'runs':>6}"]
    for name, each in medians.items():
        ratio = each.first_result_s / base.first_result_s
        cpu = "?" if each.cpu_s is None else f"{each.cpu_s:.1f}"
        cells = f"{each.first_result_s:16.2f}{ratio:8.2f}{cpu:>8}{each.end_s:8.2f}{len(found[name]):6}"
        lines.append(f"{ROWS[name].name:36}{cells}")
    return "\n".join(lines)


def steps_once(timeout: float, environment: dict[str, str]) -> dict[str, float]:
    """Seconds from the start to each step."""
    with tempfile.TemporaryDirectory(prefix="penstock-marks-") as folder:
        row = Row("", lambda _: [sys.executable, "-m", "benchmarks.startup_marks", str(PROGRAM)])
        started = time.monotonic()
        start = run_once(row, timeout, {**environment, MARKS_FOLDER: folder})
        marks = read_marks(Path(folder))
        steps = {step: marks[step] - started for step in STEPS if step in marks}
        return {**steps, "first result seen": start.first_result_s, "end of the process": start.end_s}


def render_steps(runs: list[dict[str, float]]) -> str:
    lines = ["", f"{'penstock run, step by step (medians)':60}{'s since start':>14}{'s after last':>14}"]
    before = 0.0
    for step, at in median_steps(runs).items():
        lines.append(f"{step:60}{at:14.2f}{at - before:14.2f}")
        before = at
    return "\n".join(lines)


def median_steps(runs: list[dict[str, float]]) -> dict[str, float]:
    """In the order in which they are reached."""
    medians = {step: statistics.median(run[step] for run in runs if step in run) for step in runs[0]}
    return dict(sorted(medians.items(), key=lambda item: item[1]))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help="which ones, comma separated (%(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="of each (%(default)s)")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one run (%(default)s)")
    parser.add_argument("--without-archive", action="store_true", help="start Java without an archive of its classes")
    parser.add_argument("--no-steps", action="store_true", help="do not take the start apart")
    parsed = parser.parse_args(arguments)
    parsed.rows = [name for name in parsed.rows.split(",") if name]
    unknown = [name for name in parsed.rows if name not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    return parsed


def main() -> None:
    parsed = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # As an exception it ends the running child, too.
    environment = {WITHOUT_ARCHIVE: "1"} if parsed.without_archive else {}
    found: dict[str, list[Start]] = {}
    notes: dict[str, str] = {}
    for number in range(parsed.runs):
        for name in parsed.rows:  # In turn: what disturbs the machine for a while disturbs all of them.
            if name in notes:
                continue
            print(f"run {number + 1} of {ROWS[name].name} ...", file=sys.stderr)
            try:
                found.setdefault(name, []).append(run_once(ROWS[name], parsed.timeout, environment))
            except PeerUnavailableError as reason:
                notes[name] = f"{ROWS[name].name} is left out: {reason}"
                found.pop(name, None)
    print(render(found))
    print("\n".join(f"note: {note}" for note in notes.values()))
    steps = [] if parsed.no_steps else [steps_once(parsed.timeout, environment) for _ in range(parsed.runs)]
    if steps:
        print(render_steps(steps), flush=True)
    document = {
        "has_archive": not parsed.without_archive,
        "starts": {name: [asdict(start) for start in starts] for name, starts in found.items()},
        "steps_s": median_steps(steps) if steps else {},
        "notes": list(notes.values()),
    }
    RESULTS.mkdir(exist_ok=True)
    name = "startup-without-archive.json" if parsed.without_archive else "startup.json"
    (RESULTS / name).write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
