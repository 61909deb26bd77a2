"""The systems that are compared: the command line that runs a benchmark on each, and with which settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.job import Setting, arguments_of
from benchmarks.peers import installation
from benchmarks.peers.installation import ROOT, PeerUnavailableError, java, maven_classes, pyflink_python, venv_python
from benchmarks.programs import NAMES, code_of

__all__ = ["PEERS", "PENSTOCK", "ROOT", "USUAL_PEERS", "PeerUnavailableError", "System", "rows_of"]

Command = Callable[[str, Setting], "list[str] | None"]


@dataclass(frozen=True)
class System:
    """One row of the table."""

    name: str
    package: str
    command: Command
    """What runs a benchmark with a setting; None if the system has no version of it."""
    config: dict[str, str] = field(default_factory=dict)
    is_slow: bool = False
    """True if it gets fewer records, so that one run does not take minutes."""


def program(find_python: Callable[[], str]) -> Command:
    """The benchmark's own program, run by an interpreter."""
    return lambda benchmark, setting: [find_python(), "-m", f"benchmarks.{code_of(benchmark)}", *arguments_of(setting)]


def peer_program(find_python: Callable[[], str], module: str, names: Iterable[str], prefix: str = "") -> Command:
    """A module in peers that has its own versions of some benchmarks, maybe under names with a prefix."""

    def command(benchmark: str, setting: Setting) -> list[str] | None:
        if benchmark not in names:
            return None
        return [find_python(), "-m", f"benchmarks.peers.{module}", prefix + benchmark, *arguments_of(setting)]

    return command


def own_python() -> str:
    return sys.executable


BYTEWAX_BENCHMARKS = ("word_count", "keyed_count", "session_windows", "stateless_chain")
PYSPARK_BENCHMARKS = ("word_count", "session_windows", "stateless_chain")
PYTHON_LOOP_BENCHMARKS = tuple(name for name in NAMES if code_of(name) == name)
FORKED_LOOP_BENCHMARKS = ("word_count", "stateless_chain", "nexmark.q0", "nexmark.q1", "nexmark.q2")
FLINK_JAVA = ROOT / "benchmarks" / "peers" / "flink_java"
# The collector of Flink's own scripts; a heap on which no benchmark has to wait for it.
_JVM = [
    "-XX:+UseG1GC",
    "-Xms1g",
    "-Xmx4g",
    *(f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in ("lang", "util")),
]


def flink_java(benchmark: str, setting: Setting) -> list[str]:
    """The Maven project in peers/flink_java, in one JVM."""
    return flink_jvm("Main", code_of(benchmark), *arguments_of(setting))


def flink_jvm(main: str, *arguments: str) -> list[str]:
    """What runs a class of the Maven project."""
    classes = maven_classes(FLINK_JAVA)
    inputs = f"-Dbenchmarks.inputs={installation.bench_folder() / 'inputs'}"
    return [java(), *_JVM, inputs, "-cp", classes, f"penstock.benchmarks.{main}", *arguments]


def bytewax_python() -> str:
    # The programs' own modules, from which the input comes, need cloudpickle.
    return venv_python("bytewax", "bytewax==0.21.1", "cloudpickle")


PENSTOCK = System("penstock", "penstock", program(own_python))

PEERS = {
    "pyflink": [
        System(
            "pyflink process", "pyflink", program(pyflink_python), {"python.execution-mode": "process"}, is_slow=True
        ),
        System("pyflink thread", "pyflink", program(pyflink_python), {"python.execution-mode": "thread"}, is_slow=True),
    ],
    "bytewax": [System("bytewax", "bytewax", peer_program(bytewax_python, "bytewax_flows", BYTEWAX_BENCHMARKS))],
    "pyspark": [System("pyspark", "pyspark", peer_program(own_python, "pyspark_queries", PYSPARK_BENCHMARKS))],
    "flink-java": [System("flink java", "flink-java", flink_java)],
    "python-loop": [
        System("python loop", "python-loop", peer_program(own_python, "python_loops", PYTHON_LOOP_BENCHMARKS)),
        System(
            "python loops forked",
            "python-loop",
            peer_program(own_python, "python_loops", FORKED_LOOP_BENCHMARKS, prefix="forked."),
        ),
        System(
            "python loop with calls",
            "python-loop",
            peer_program(own_python, "python_loops", ("stateless_chain",), prefix="calling."),
        ),
    ],
}
"""Rows by the name that --peers takes."""
USUAL_PEERS = ("flink-java", "python-loop")


def rows_of(name: str) -> list[System]:
    """The rows that a name of --peers stands for: a group, or one row of a group (`pyflink-thread`); none: unknown."""
    return PEERS.get(name) or [row for rows in PEERS.values() for row in rows if row.name.replace(" ", "-") == name]
