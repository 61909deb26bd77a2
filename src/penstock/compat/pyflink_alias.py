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
from typing import Any

from penstock.common import config_keys as keys
from penstock.compat.absent import AbsentModule, kind_of
from penstock.compat.pyflink_names import lookup_in

_ALIAS, _REAL = "pyflink", "penstock"

AS_ON_PYFLINK = {keys.PRINT_LOOK.key: "pyflink", keys.TIMESTAMP_ASSIGNERS.key: "pyflink"}
"""Settings with which a program prints what it prints on PyFlink."""
_WORKER_PATH = str(Path(__file__).parent / "on_path")


@contextmanager
def pyflink_as_penstock() -> Iterator[None]:
    """Inside, `import pyflink.X` gives the module `penstock.X` itself; a `pyflink` imported before is put back after.

    Processes started inside, Spark's Python workers among them, see it through PYTHONPATH. Names that PyFlink's
    modules have from other modules are found as well. What has no counterpart, such as Java, can be imported and
    fails when it is used, even when PyFlink itself is installed: half a program on each would fail later and less
    clearly.
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
        for module in _take_alias_modules().values():
            _forget_lookup(module)
        sys.modules.update(before)
        if python_path is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = python_path


def install() -> None:
    """Do the same for the rest of this process, as workers need it."""
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
    sys.modules[_ALIAS] = importlib.import_module(_REAL)
    _add_lookup(sys.modules[_ALIAS], _ALIAS)


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
        own_name = fullname[len(_ALIAS) + 1 :]
        real = f"{_REAL}.{own_name}" if own_name else _REAL
        if real in sys.modules or _exists(real):
            return ModuleSpec(fullname, _AliasLoader(real))
        if kind_of(own_name) is not None:
            return ModuleSpec(fullname, _AbsentLoader(), is_package=True)
        raise ImportError(
            f"{fullname} has no counterpart in Penstock, which covers PyFlink's DataStream API", name=fullname
        )


def _exists(real: str) -> bool:
    try:
        return importlib.util.find_spec(real) is not None
    except ModuleNotFoundError:
        # The package above it is not there either.
        return False


class _AliasLoader(Loader):
    """Puts the real module in the place of the one the import system made, which leaves the real one's spec alone."""

    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        real = importlib.import_module(self._real)
        _add_lookup(real, module.__name__)
        sys.modules[module.__name__] = real


class _AbsentLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: names are made when they are asked for."""


class _Lookup:
    """Looks up a name that a module does not have: with its own `__getattr__` first, then in other modules."""

    def __init__(self, before: Any, alias: str) -> None:
        self.before = before
        self._find = lookup_in(alias)

    def __call__(self, name: str) -> Any:
        if self.before is not None:
            try:
                return self.before(name)
            except AttributeError:
                pass
        return self._find(name)


def _add_lookup(module: ModuleType, alias: str) -> None:
    before = vars(module).get("__getattr__")
    if not isinstance(before, _Lookup):
        vars(module)["__getattr__"] = _Lookup(before, alias)


def _forget_lookup(module: ModuleType) -> None:
    lookup = vars(module).get("__getattr__")
    if isinstance(lookup, _Lookup):
        del vars(module)["__getattr__"]
        if lookup.before is not None:
            vars(module)["__getattr__"] = lookup.before
