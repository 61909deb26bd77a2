"""Runs one benchmark on one system in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.job import RESULT_MARK, Measurement, Setting, arguments_of
from benchmarks.process_tree import PeakMemory, end_session
from benchmarks.systems import ROOT, PeerUnavailableError, System


@dataclass(frozen=True)
class Outcome:
    """A measurement with what only another process can see."""

    system: str
    measurement: Measurement
    peak_memory_bytes: int | None

    @property
    def records_per_second(self) -> float:
        return self.measurement.records / self.measurement.seconds

    @property
    def cpu_seconds_per_million(self) -> float | None:
        cpu = self.measurement.cpu_seconds
        return None if cpu is None else cpu / self.measurement.records * 1_000_000


def run_on(system: System, benchmark: str, setting: Setting, timeout_seconds: float) -> Outcome:
    """Raises PeerUnavailableError if the system cannot be installed or cannot run the benchmark."""
    python = system.find_python()
    setting = replace(setting, config={**setting.config, **system.config})
    child = subprocess.Popen(
        [python, "-m", f"benchmarks.{benchmark}", *arguments_of(setting)],
        cwd=ROOT,
        env=_environment(system, python),
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
            return Outcome(system.name, Measurement(**json.loads(line.removeprefix(RESULT_MARK))), peak.bytes)
    raise PeerUnavailableError(f"failed: {_reason(errors)}")


def _environment(system: System, python: str) -> dict[str, str]:
    """The interpreter comes first on the path: PyFlink starts its workers with whatever `python` is."""
    return {
        **os.environ,
        "BENCH_PACKAGE": system.package,
        "PATH": os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *([str(ROOT / "src")] if system.package == "penstock" else [])]),
    }


def _reason(errors: str) -> str:
    """The line of a traceback, Python's or Java's, that says most."""
    lines = [line.strip() for line in errors.strip().splitlines()] or ["no message"]
    causes = [line for line in lines if line.startswith("Caused by:")]
    python_errors = [line for line in lines if line.partition(":")[0].endswith("Error")]
    return (causes or python_errors or lines)[-1]
