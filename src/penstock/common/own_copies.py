"""Copies of users' functions and other objects, so that every subtask has its own."""

from __future__ import annotations

import io
import pickle
from types import ModuleType
from typing import Any, TypeVar

import cloudpickle  # type: ignore[import-untyped]

from penstock.common.exceptions import InvalidProgramError

T = TypeVar("T")


def own_copy(given: T) -> T:
    """A copy for one subtask, as if it had come from another machine; a restart begins with another one.

    As in PyFlink, functions are copied like objects, with the variables that they refer to; what can be imported by its
    name is not copied. Classes and modules stay the same within a process.
    """
    try:
        return _copy(given)
    except Exception as exc:
        raise InvalidProgramError(
            f"{_culprit(given)} cannot be copied for each subtask ({type(exc).__name__}: {exc}); make "
            f"connections, locks and files in open(), not in __init__()"
        ) from exc


def _copy(given: T) -> T:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    pickler.dump(given)
    buffer.seek(0)
    copied: T = _Unpickler(buffer, pickler.shared).load()
    return copied


def _culprit(given: Any) -> str:
    """The type of what cannot be copied: of the user's own object, if a description holds it."""
    if type(given).__module__.partition(".")[0] == "penstock":
        for part in vars(given).values() if hasattr(given, "__dict__") else ():
            try:
                _copy(part)
            except Exception:  # Whatever such an object raises.
                return _culprit(part)
    return type(given).__name__


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Leaves classes and modules out. Unpickling a class of a script would replace the methods that others use."""

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, protocol=5)
        self.shared: list[Any] = []

    def persistent_id(self, thing: Any) -> int | None:
        if not isinstance(thing, (type, ModuleType)):
            return None
        self.shared.append(thing)
        return len(self.shared) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(buffer)
        self._shared = shared

    def persistent_load(self, number: int) -> Any:
        return self._shared[number]
