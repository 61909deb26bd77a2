"""State as bytes, which a later version of the program must be able to read.

So a class of the program's own script is written by name, without its code, and the program that reads the state
provides the code. Fields may be added to a class between a savepoint and its restore.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from operator import attrgetter
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.runtime.state.moved_modules import module_today

_classes_of_job: ContextVar[dict[str, type]] = ContextVar("classes of the job's script")


def use_script_classes(classes: Iterable[type]) -> None:
    """From now on, this thread uses these classes of the script when it reads state. A process may run several jobs."""
    _classes_of_job.set({each.__qualname__: each for each in classes})


def encode_state(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        buffer = io.BytesIO()
        _ByName(buffer, protocol=5).dump(value)
        return buffer.getvalue()


def decode_state(content: bytes | memoryview) -> Any:
    return _Unpickler(io.BytesIO(content)).load()


class _ByName(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Writes classes of the script by name.

    In executors these classes were unpickled from their code, and plain pickle does not find them in `__main__`.
    """

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type) and obj.__module__ == "__main__" and "<locals>" not in obj.__qualname__:
            return class_of_script, (obj.__qualname__,)
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return class_of_script(name) if module == "__main__" else super().find_class(module_today(module), name)


def class_of_script(name: str) -> Any:
    """A class or function of the program's script, in the driver or in an executor that has received the program."""
    outer, _, inner = name.partition(".")
    known = _classes_of_job.get({}).get(outer) or _in_main(outer)
    if known is not None:
        return attrgetter(inner)(known) if inner else known
    sent = _sent_class(name)
    if sent is None:
        raise AttributeError(f"the program's script has no class '{name}'")
    return sent


def _in_main(name: str) -> Any:
    # In an executor `__main__` is another module, which may have imported something of the same name.
    found = getattr(sys.modules.get("__main__"), name, None)
    return found if getattr(found, "__module__", None) == "__main__" else None


def _sent_class(name: str) -> Any:
    # Cloudpickle tracks all classes that it has built in this process; the newest one belongs to the current job.
    built = list(cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.values())
    named = [each for each in built if each.__module__ == "__main__" and each.__qualname__ == name]
    return named[-1] if named else None
