"""The systems that are compared: which interpreter runs a benchmark on each, and with which settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENVS = ROOT / ".bench"
PYFLINK_PYTHON = "PENSTOCK_PYFLINK_PYTHON"


class PeerUnavailableError(Exception):
    """A peer cannot be run here; says why."""


@dataclass(frozen=True)
class System:
    """One row of the table."""

    name: str
    package: str
    find_python: Callable[[], str]
    config: dict[str, str] = field(default_factory=dict)
    is_slow: bool = False
    """True if it gets fewer records, so that one run does not take minutes."""


def pyflink_python() -> str:
    """The interpreter that PENSTOCK_PYFLINK_PYTHON names, else one with PyFlink in .bench, made when first needed."""
    chosen = os.environ.get(PYFLINK_PYTHON)
    if chosen:
        return chosen
    venv = VENVS / "pyflink"
    python = venv / "bin" / "python"
    if not (venv / ".installed").exists():
        print("Installing PyFlink into .bench/pyflink (once; some minutes)", file=sys.stderr)
        VENVS.mkdir(exist_ok=True)
        (VENVS / ".gitignore").write_text("*\n")
        _install(["python3", "-m", "venv", "--clear", str(venv)])
        _install([str(python), "-m", "pip", "install", "--quiet", "apache-flink"])
        (venv / ".installed").touch()
    return str(python)


def _install(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise PeerUnavailableError(f"cannot be installed: {error}") from error
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PeerUnavailableError(f"cannot be installed: {reason}; set {PYFLINK_PYTHON} to a Python that has it")


PENSTOCK = System("penstock", "penstock", lambda: sys.executable)

PEERS = {
    "pyflink": [
        System("pyflink process", "pyflink", pyflink_python, {"python.execution-mode": "process"}, is_slow=True),
        System("pyflink thread", "pyflink", pyflink_python, {"python.execution-mode": "thread"}, is_slow=True),
    ],
}
"""Rows by the name that --peers takes."""
