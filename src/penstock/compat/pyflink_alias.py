"""Let a program that imports `pyflink` get Penstock's modules, for the length of one run."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_ALIAS, _REAL = "pyflink", "penstock"
_WORKER_PATH = str(Path(__file__).parent / "on_path")


@contextmanager
def pyflink_as_penstock() -> Iterator[None]:
    """Inside, `import pyflink.X` gives the very module `penstock.X`; a `pyflink` imported before comes back after.

    Processes started inside, Spark's Python workers among them, see it through PYTHONPATH. A module that Penstock
    lacks raises `ImportError`, even when PyFlink itself is installed: half a program on each would fail later and
    less clearly.
    """
    finder = _AliasFinder()
    before, python_path = _take_alias_modules(), os.environ.get("PYTHONPATH")
    # First, because the path finder would load penstock's files a second time under the other name.
    sys.meta_path.insert(0, finder)
    os.environ["PYTHONPATH"] = _WORKER_PATH + (os.pathsep + python_path if python_path else "")
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _take_alias_modules()
        sys.modules.update(before)
        if python_path is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = python_path


def install() -> None:
    """The same for the rest of this process, which is how a worker wants it."""
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
    sys.modules[_ALIAS] = importlib.import_module(_REAL)


def _take_alias_modules() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if _is_alias(name)]
    return {name: sys.modules.pop(name) for name in names}


def _is_alias(name: str) -> bool:
    return name == _ALIAS or name.startswith(_ALIAS + ".")


class _AliasFinder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_alias(fullname):
            return None
        real = _REAL + fullname[len(_ALIAS) :]
        if real not in sys.modules and importlib.util.find_spec(real) is None:
            raise ImportError(_missing(fullname), name=fullname)
        return ModuleSpec(fullname, _AliasLoader(real))


class _AliasLoader(Loader):
    """Puts the real module in the place of the one the import system made, which leaves the real one's spec alone."""

    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self._real)


def _missing(fullname: str) -> str:
    hint = "; for tables use Spark's own SQL and DataFrames" if fullname.startswith("pyflink.table") else ""
    return f"{fullname} has no counterpart in Penstock, which covers PyFlink's DataStream API{hint}"
