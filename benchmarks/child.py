"""Runs one benchmark on one system in a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.job import RESULT_MARK, Measurement, Setting
from benchmarks.process_tree import PeakMemory, end_session
from benchmarks.systems import ROOT, PeerUnavailableError, System


@dataclass(frozen=True)
class Outcome:
    """What a process has measured, with what only another process can see."""

    system: str
    runs: list[Measurement]
    """One or more, of the same setting."""
    peak_memory_bytes: int | None

    @property
    def measurement(self) -> Measurement:
        """The median of the runs; of two in the middle the slower one."""
        return sorted(self.runs, key=lambda each: each.seconds_beyond_fixed)[len(self.runs) // 2]


def run_on(system: System, benchmark: str, setting: Setting, timeout_seconds: float) -> Outcome | None:
    """None if the system has no version of the benchmark; PeerUnavailableError if it cannot be installed, or fails."""
    command = system.command(benchmark, replace(setting, config={**setting.config, **system.config}))
    if command is None:
        return None
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment_of(system, command[0]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        with PeakMemory(child.pid) as peak:
            output, errors = child.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        raise PeerUnavailableError(f"took longer than {timeout_seconds:.0f} s") from None
    finally:
        end_session(child.pid)
    for line in output.splitlines():
        if line.startswith(RESULT_MARK):
            runs = [Measurement(**each) for each in json.loads(line.removeprefix(RESULT_MARK))]
            return Outcome(system.name, with_common_fixed_cost(runs), peak.bytes)
    raise PeerUnavailableError(f"failed: {_reason(errors)}")


def with_common_fixed_cost(runs: list[Measurement]) -> list[Measurement]:
    """The fixed cost is small and measured as often as the runs: the median of all is better than each one's own."""
    fixed_seconds = statistics.median(run.fixed_seconds for run in runs)
    return [replace(run, fixed_seconds=fixed_seconds) for run in runs]


def environment_of(system: System, program: str) -> dict[str, str]:
    """The interpreter comes first on the path: PyFlink starts its workers with whatever `python` is."""
    is_pyflink = system.package == "pyflink"
    return {
        **os.environ,
        # Peers of another API take their input from the programs, and those need some API to be imported.
        "BENCH_PACKAGE": "pyflink" if is_pyflink else "penstock",
        "PATH": os.pathsep.join([str(Path(program).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *([] if is_pyflink else [str(ROOT / "src")])]),
    }


def _reason(errors: str) -> str:
    """The line of a traceback, Python's or Java's, that says most."""
    lines = [line.strip() for line in errors.strip().splitlines()] or ["no message"]
    causes = [line for line in lines if line.startswith(("Exception in thread", "Caused by:"))]
    python_errors = [line for line in lines if line.partition(":")[0].endswith("Error")]
    return (causes or python_errors or lines)[-1]
