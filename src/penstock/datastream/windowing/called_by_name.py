"""Functions given to `process` that have its method, but not its base class: PyFlink only looks at the method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.datastream.functions import ProcessAllWindowFunction, ProcessWindowFunction, RuntimeContext


class _CalledByName:
    """Passes everything on to the user's function. A function without `clear` has nothing to clear."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.open(runtime_context)

    def close(self) -> None:
        self._function.close()

    def clear(self, context: Any) -> None:
        clear = getattr(self._function, "clear", None)
        if clear is not None:
            clear(context)


class OwnProcessWindow(_CalledByName, ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        results: Iterable[Any] = self._function.process(key, context, elements)
        return results


class OwnProcessAllWindow(_CalledByName, ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        results: Iterable[Any] = self._function.process(context, elements)
        return results
