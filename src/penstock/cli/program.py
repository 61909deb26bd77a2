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
        """Run to the end; `sys.argv`, `sys.path` and PYTHONPATH are put back afterwards."""
        with _as_main_program([self.target, *self.arguments], self._search_path()):
            if self.is_module:
                runpy.run_module(self.target, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(self.target, run_name="__main__")

    def environment(self) -> dict[str, str]:
        """What the program finds in its environment besides what is there now."""
        return {"PYTHONPATH": _python_path(self._search_path(), os.environ.get("PYTHONPATH"))}

    def _search_path(self) -> list[str]:
        folder = Path.cwd() if self.is_module else Path(self.target).resolve().parent
        return [str(folder), *(str(Path(file).resolve()) for file in self.python_files)]


@contextmanager
def _as_main_program(argv: list[str], search_path: list[str]) -> Iterator[None]:
    before = sys.argv, list(sys.path), os.environ.get("PYTHONPATH")
    sys.argv = argv
    sys.path[:0] = search_path
    # Spark's Python workers are other processes: they find the user's modules only through the environment.
    os.environ["PYTHONPATH"] = _python_path(search_path, before[2])
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        if before[2] is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = before[2]


def _python_path(search_path: list[str], before: str | None) -> str:
    return os.pathsep.join([*search_path, *([before] if before else [])])
