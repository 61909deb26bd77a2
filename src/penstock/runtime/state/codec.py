"""State as bytes, which a later version of the program must be able to read.

So a class of the program's own script is written by name, without its code, and the program that reads the state
provides the code. The same holds for classes that the program makes inside functions, and for functions of its script.
Fields may be added to a class between a savepoint and its restore: see `named_fields`.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterable
from contextvars import ContextVar
from operator import attrgetter
from types import FunctionType
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.common.exceptions import CheckpointError, CorruptStateError, StateMismatchError
from penstock.common.imported_class import ImportedClass
from penstock.runtime.state.moved_modules import module_today
from penstock.runtime.state.named_fields import PROTOCOL, FieldReducers

_SCRIPT = "__main__"
_definitions_of_job: ContextVar[dict[tuple[str, str], Any]] = ContextVar("classes and functions of the job's program")


def use_script_classes(definitions: Iterable[Any]) -> None:
    """From now on, this thread uses these classes and functions of the program when it writes or reads state.

    A process may run several jobs.
    """
    _definitions_of_job.set({_place(each): each for each in definitions})


def _place(definition: Any) -> tuple[str, str]:
    if isinstance(definition, ImportedClass):
        return _SCRIPT, definition.name
    return definition.__module__, definition.__qualname__


def is_known_to_job(kind: Any) -> bool | None:
    """True if the job's program brings this class along; None if this thread runs no job."""
    known = _definitions_of_job.get(None)
    return None if known is None else known.get((kind.__module__, kind.__qualname__)) is kind


def encode_state(value: Any) -> bytes:
    if type(value) in _PLAIN:
        return pickle.dumps(value, PROTOCOL)
    try:
        return _encoded(value, _reducers)
    except RecursionError:
        return _encoded(value, _reducers_of_cycles)


def _encoded(value: Any, reducers: FieldReducers) -> bytes:
    buffer = io.BytesIO()
    try:
        pickler = pickle.Pickler(buffer, PROTOCOL)
        pickler.dispatch_table = reducers
        pickler.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        buffer = io.BytesIO()
        try:
            _ByName(buffer, reducers).dump(value)
        except pickle.PicklingError as error:
            raise error.__cause__ if isinstance(error.__cause__, RecursionError) else error from None
    return buffer.getvalue()


_PLAIN = frozenset((int, float, bool, str, bytes, type(None)))
"""Of these, nothing is saved but the value. A pickler of its own takes several times as long as `pickle.dumps`."""


def decode_state(content: bytes | memoryview) -> Any:
    return _Unpickler(io.BytesIO(content)).load()


class _Reference:
    """Stands for a class or function in a pickle: what becomes it again."""

    def __init__(self, found: tuple[Any, ...]) -> None:
        self._found = found

    def __reduce__(self) -> tuple[Any, ...]:
        return self._found


def _named(kind: Any) -> Any:
    found = _reference(kind)
    return kind if found is None else _Reference(found)


def _reference(thing: Any) -> tuple[Any, ...] | None:
    """How a class or function is written by name, if pickle itself may not find it; None for all others."""
    module, name = thing.__module__, thing.__qualname__
    is_local = "<locals>" in name
    if isinstance(thing, type) and module == _SCRIPT and not is_local:
        return class_of_script, (name,)
    definitions = _definitions_of_job.get(None)
    if definitions is None:  # What copies state in a thread without a job must write what it can read.
        known = _sent_class(module, name) if is_local and isinstance(thing, type) else None
    else:
        known = definitions.get((module, name))
    if known is thing or (isinstance(thing, FunctionType) and _is_same_function(known, thing)):
        return definition_of_job, (module, name)
    return None


def _is_same_function(known: Any, thing: FunctionType) -> bool:
    # Operators of a process have copies of their functions.
    return isinstance(known, FunctionType) and known.__code__ == thing.__code__ and not thing.__closure__


_reducers = FieldReducers(_named)
_reducers_of_cycles = FieldReducers(_named, is_cyclic=True)


class _ByName(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Writes classes and functions of the program by name.

    In executors these were unpickled from their code, and plain pickle does not find them in `__main__`.
    """

    def __init__(self, file: io.BytesIO, reducers: FieldReducers) -> None:
        super().__init__(file, protocol=PROTOCOL)
        self._by_field = reducers.by_name

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, FunctionType)):
            found = _reference(obj)
            return super().reducer_override(obj) if found is None else found
        reducer = self._by_field(type(obj))
        return super().reducer_override(obj) if reducer is None else reducer(obj)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == _SCRIPT:
            return class_of_script(name)
        module = module_today(module)
        try:
            return super().find_class(module, name)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"it holds objects of '{name}' of module '{module}', which cannot be imported here ({error}); the "
                f"module must be installed here, or sent along with the job (-pyfs, python.files)"
            ) from error
        except AttributeError as error:
            raise AttributeError(
                f"it holds objects of '{name}' of module '{module}', which has no such name"
            ) from error


# Pickles name the next two functions, so they must stay where they are.


def class_of_script(name: str) -> Any:
    """A class or function of the program's script, in the driver or in an executor that has received the program."""
    outer, _, inner = name.partition(".")
    known = _definitions_of_job.get({}).get((_SCRIPT, outer)) or _in_main(outer)
    if isinstance(known, ImportedClass):
        known = known.find()
    if known is not None:
        return attrgetter(inner)(known) if inner else known
    sent = _sent_class(_SCRIPT, name)
    if sent is None:
        raise AttributeError(
            f"the program's script has no class '{name}', which the script that wrote the state had; define it there "
            f"at the top level, or import it there: from <its module> import {outer}"
        )
    return sent


def definition_of_job(module: str, name: str) -> Any:
    """A class that the program made inside a function, or a function of its script."""
    known = _definitions_of_job.get({}).get((module, name))
    if known is not None:
        return known
    if "<locals>" not in name:
        return class_of_script(name)
    sent = _sent_class(module, name)
    if sent is None:
        raise AttributeError(
            f"no function of the job uses class '{name}' of module '{module}', which was made inside a function, or "
            f"there are several of that name; define it at the top level of its module"
        )
    return sent


def _in_main(name: str) -> Any:
    # In an executor `__main__` is another module, which may have imported something of the same name.
    found = getattr(sys.modules.get(_SCRIPT), name, None)
    return found if getattr(found, "__module__", None) == _SCRIPT else None


def _sent_class(module: str, name: str) -> Any:
    # Cloudpickle tracks all classes that it has built in this process; the newest one belongs to the current job.
    built = list(cloudpickle.cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.values())
    named = [each for each in built if each.__module__ == module and each.__qualname__ == name]
    return named[-1] if named else None


def unreadable(what: str, error: Exception) -> CheckpointError:
    """The error for `what` of a checkpoint that cannot be decoded, although its bytes are those that were written."""
    if isinstance(error, StateMismatchError):
        return StateMismatchError(f"{what} does not fit the program: {error}")
    if isinstance(error, (AttributeError, ImportError)):
        return StateMismatchError(
            f"{what} cannot be read back: {error}. Nothing is damaged: a class that is part of state must exist under "
            f"its old name, in its old module, when the state is read"
        )
    return CorruptStateError(f"{what} cannot be read back ({type(error).__name__}: {error})")
