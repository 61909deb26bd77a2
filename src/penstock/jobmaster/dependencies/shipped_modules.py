"""Python modules of jobs, in the process of a job manager that runs many jobs.

Modules are looked up by name in one table for the whole process. So two jobs that run at the same time cannot have
different modules of the same name, which is refused; and when a job has ended, its modules are forgotten, so that the
next one may bring another version of them.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.dependencies import place_of_modules


class ShippedModules:
    """The folders and archives with modules of all running jobs."""

    def __init__(self) -> None:
        self._users: Counter[str] = Counter()
        self._lock = threading.RLock()

    def add(self, paths: Iterable[str]) -> None:
        """Make the modules of a job importable; refused if one of them would be another job's."""
        paths = [place_of_modules(path) for path in paths]
        with self._lock:
            for path in paths:
                self._check(path)
            for path in paths:
                self._users[path] += 1
                if path not in sys.path:
                    sys.path.insert(0, path)
            importlib.invalidate_caches()

    def remove(self, paths: Iterable[str]) -> None:
        """A job has ended: forget the modules that no other job uses."""
        with self._lock:
            for path in map(place_of_modules, paths):
                self._users[path] -= 1
                if self._users[path] == 0:
                    del self._users[path]
                    self._forget(path)

    def _check(self, path: str) -> None:
        for name in _module_names(path):
            owner = next((each for each in self._users if name in _module_names(each)), path)
            if owner != path:
                raise InvalidProgramError(
                    f"the job brings a module '{name}', and a job that runs here has another one of that name; wait "
                    f"for its end, rename the module, or run the job in a process of its own (without -m)"
                )

    def _forget(self, path: str) -> None:
        if path in sys.path:
            sys.path.remove(path)
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(path + os.sep):
                del sys.modules[name]
        importlib.invalidate_caches()


def _module_names(path: str) -> set[str]:
    """The top-level modules and packages in a folder; those of an archive are not looked for."""
    if not os.path.isdir(path):
        return set()
    return {
        entry.stem
        for entry in Path(path).iterdir()
        if entry.suffix == ".py" or (entry.is_dir() and entry.name.isidentifier())
    }
