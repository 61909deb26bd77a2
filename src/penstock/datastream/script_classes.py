"""The classes and functions of the program that other processes cannot import, so that they travel with the job."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from types import FunctionType
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from penstock.common.imported_class import ImportedClass
from penstock.common.types import Row
from penstock.graph.descriptions import CollectionSourceDescription
from penstock.graph.job_graph import JobGraph

_SCRIPT = "__main__"


def classes_of_script() -> tuple[type, ...]:
    """All classes at the top level of the script, without those that cannot be sent to another process."""
    classes = [each for each in vars(sys.modules[_SCRIPT]).values() if isinstance(each, type)]
    found = tuple(dict.fromkeys(each for each in classes if each.__module__ == _SCRIPT))
    return _travellers(found)


def imports_of_script() -> tuple[ImportedClass, ...]:
    """The classes that the script imports, besides those of Python, Spark and Penstock.

    One of them may have been a class of the script when state was saved. Only names travel: another process imports the
    module if it meets such state.
    """
    named = [(name, each) for name, each in vars(sys.modules[_SCRIPT]).items() if isinstance(each, type)]
    return tuple(
        ImportedClass(name, each.__module__)
        for name, each in named
        if each.__module__ != _SCRIPT
        and each.__qualname__ == name
        and each.__module__.partition(".")[0] not in _NEVER_OF_SCRIPT
    )


_NEVER_OF_SCRIPT = {*sys.stdlib_module_names, "builtins", "penstock", "pyflink", "pyspark", "numpy", "pandas"}


def definitions_of(job_graph: JobGraph) -> tuple[Any, ...]:
    """What `definitions_in` finds in all parts of a job that refer to code of the program."""
    return definitions_in(_parts_of(job_graph))


def _parts_of(job_graph: JobGraph) -> Iterator[Any]:
    yield from (edge.partitioner for edge in job_graph.edges)
    for node in (node for vertex in job_graph.vertices for node in vertex.nodes):
        if isinstance(node.operator, CollectionSourceDescription):
            yield list(_kinds_in(node.operator.values))  # Not the elements, which may be many.
        else:
            yield node.operator


def _kinds_in(elements: Sequence[Any]) -> set[type]:
    parts = chain.from_iterable(each for each in elements if isinstance(each, (tuple, list, Row)))
    return {*map(type, elements), *map(type, parts)}


def definitions_in(parts: Iterable[Any]) -> tuple[Any, ...]:
    """The classes made inside functions, and the functions of the script, that parts of a job refer to.

    Without those that share their name with another one: in state, the name could mean either.
    """
    found: dict[int, Any] = {}
    for part in parts:
        finder = _Finder(io.BytesIO())
        with contextlib.suppress(Exception):  # What cannot be pickled is reported where it must be.
            finder.dump(part)
        found.update(finder.found)
    by_name: dict[tuple[str, str], list[Any]] = {}
    for each in found.values():
        by_name.setdefault((each.__module__, each.__qualname__), []).append(each)
    return _travellers(tuple(each for each, *others in by_name.values() if not others))


class _Finder(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Notices what is pickled by its code, because it cannot be imported."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.found: dict[int, Any] = {}

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type):
            is_wanted = "<locals>" in obj.__qualname__
        else:
            is_wanted = isinstance(obj, FunctionType) and obj.__module__ == _SCRIPT and "<" not in obj.__qualname__
        if is_wanted:
            self.found[id(obj)] = obj
        return super().reducer_override(obj)


def _travellers(found: tuple[Any, ...]) -> tuple[Any, ...]:
    # What cannot travel is unlikely to be part of state; if it is, the error will name it.
    return found if _can_travel(found) else tuple(each for each in found if _can_travel([each]))


def _can_travel(found: Sequence[Any]) -> bool:
    with contextlib.suppress(Exception):
        cloudpickle.dumps(found)
        return True
    return False
