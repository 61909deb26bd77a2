"""`penstock run` with a mark at each step of its start; see benchmarks/startup.py.

Steps are marked from outside of Penstock: in this process by wrapping functions when their module is there, in workers
by a Python daemon of its own (benchmarks/startup_marks_daemon.py).
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

MARKS_FOLDER = "BENCH_MARKS"
STEPS = [
    PYTHON := "Python has started",
    CLI := "the command line is loaded",
    JAVA_STARTED := "Java is started",
    LOADED := "the API is loaded, the program begins",
    SUBMITTED := "the program has built its job",
    JAVA_READY := "Java answers",
    CONTEXT := "SparkContext is there",
    EPOCH := "the first epoch begins",
    DAEMON := "Spark's Python daemon begins to load",
    DAEMON_READY := "and is ready to fork workers",
    TASK := "the first task reaches a Python worker",
    OPERATORS := "operators run, in a worker",
    EPOCH_DONE := "the first epoch has ended",
]


def mark(step: str) -> None:
    """Write down that a step is reached; the first time counts."""
    folder = Path(os.environ[MARKS_FOLDER])
    with open(folder / f"{os.getpid()}.jsonl", "a") as file:
        file.write(json.dumps([step, time.monotonic()]) + "\n")


def read_marks(folder: Path) -> dict[str, float]:
    """When each step was reached first."""
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return {step: at for step, at in sorted(lines, key=lambda line: -line[1])}


def marked(owner: Any, name: str, before: str | None = None, after: str | None = None) -> None:
    function = vars(owner)[name]

    @functools.wraps(function)
    def wrapper(*given: Any, **named: Any) -> Any:
        if before is not None:
            mark(before)
        result = function(*given, **named)
        if after is not None:
            mark(after)
        return result

    setattr(owner, name, wrapper)


class _Watcher(MetaPathFinder):
    """Wraps functions of modules right after these are loaded: loading them ahead would change what is measured."""

    def __init__(self, wraps: dict[str, Callable[[Any], object]]) -> None:
        self._wraps = wraps

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname not in self._wraps:
            return None
        wrap = self._wraps.pop(fullname)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None and spec.loader is not None
        loader: Any = spec.loader
        execute = loader.exec_module

        def execute_and_wrap(module: Any) -> None:
            execute(module)
            wrap(module)

        loader.exec_module = execute_and_wrap
        return spec


def watch_driver() -> None:
    wraps: dict[str, Callable[[Any], object]] = {
        "penstock.spark.java_process": lambda it: (
            marked(it.JavaProcess, "__init__", after=JAVA_STARTED),
            marked(it.JavaProcess, "address", after=JAVA_READY),
        ),
        "penstock.cli.launching": lambda it: marked(it, "run_program", before=LOADED),
        "penstock.cluster.start": lambda it: marked(it, "start_job", before=SUBMITTED),
        "penstock.spark.session": lambda it: marked(it, "get_context", after=CONTEXT),
        "penstock.jobmaster.region.runner": lambda it: (
            marked(it.RegionRunner, "_prepare_epoch", before=EPOCH),
            marked(it.RegionRunner, "_complete_epoch", after=EPOCH_DONE),
        ),
    }
    sys.meta_path.insert(0, _Watcher(wraps))


def main() -> None:
    mark(PYTHON)
    watch_driver()
    from penstock.cli.commands import main as penstock

    mark(CLI)
    daemon = "spark.python.daemon.module=benchmarks.startup_marks_daemon"
    penstock(["run", "-D", daemon, *sys.argv[1:]], prog_name="penstock")


if __name__ == "__main__":
    main()
