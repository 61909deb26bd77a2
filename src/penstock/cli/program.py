"""Run a user's script or module in this process as if Python had been started with it."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """What to run: a script (`is_module` false) or a module by its dotted name, with its arguments."""

    target: str
    is_module: bool = False
    arguments: tuple[str, ...] = ()
    python_files: tuple[str, ...] = ()

    def run(self) -> None:
        """Run to the end; `sys.argv`, `sys.path` and the environment are put back afterwards."""
        with _as_main_program([self.target, *self.arguments], self._search_path()):
            if self.is_module:
                runpy.run_module(self.target, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(self.target, run_name="__main__")

    def environment(self) -> dict[str, str]:
        """The variables that the program's environment has in addition to those of this process."""
        return _environment(self._search_path())

    def _search_path(self) -> list[str]:
        folder = Path.cwd() if self.is_module else Path(self.target).resolve().parent
        return [str(folder), *(str(Path(file).resolve()) for file in self.python_files)]


@contextmanager
def _as_main_program(argv: list[str], search_path: list[str]) -> Iterator[None]:
    arguments, path, environment = sys.argv, list(sys.path), _environment(search_path)
    before = {name: os.environ.get(name) for name in environment}
    sys.argv = argv
    sys.path[:0] = search_path
    os.environ.update(environment)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = arguments, path
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _environment(search_path: list[str]) -> dict[str, str]:
    """Variables for Spark's Python workers: other processes, which find Python and the user's modules only by them."""
    given = os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": os.pathsep.join([*search_path, *([given] if given else [])]),
        # A session that the program makes itself would run the first python3 on the PATH.
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
