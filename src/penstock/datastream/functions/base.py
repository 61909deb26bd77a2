"""What all user functions share: a lifecycle, and for rich ones the runtime context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import StateAccessError

if TYPE_CHECKING:
    from penstock.datastream.functions.runtime_context import RuntimeContext
    from penstock.datastream.output_tag import OutputTag


class Function(ABC):  # noqa: B024 - subclasses have the abstract methods
    """Base of all user functions.

    >>> from penstock.datastream import MapFunction
    >>> class Scaled(MapFunction):
    ...     def open(self, runtime_context):
    ...         self.factor = 10  # or a connection, or a model read from a file
    ...     def map(self, value):
    ...         return value * self.factor
    >>> list(env.from_collection([1, 2]).map(Scaled()).execute_and_collect())
    [10, 20]
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Called once per subtask before the first element: the place to get state and connections."""

    def close(self) -> None:
        """Called once per subtask after the last element, also when the job failed."""


class RichFunction(Function):
    """A function that can ask for its runtime context at any time while it runs.

    >>> from penstock.datastream import RichMapFunction
    >>> class WithSubtask(RichMapFunction):
    ...     def map(self, value):
    ...         return value, self.get_runtime_context().get_index_of_this_subtask()
    >>> list(env.from_collection(["a"]).map(WithSubtask()).execute_and_collect())
    [('a', 0)]
    """

    _runtime_context: RuntimeContext | None = None

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Called by the runtime before `open`."""
        self._runtime_context = runtime_context

    def get_runtime_context(self) -> RuntimeContext:
        """The context of the subtask this function runs in."""
        if self._runtime_context is None:
            raise StateAccessError(
                f"{type(self).__name__}: get_runtime_context() was called before the function was opened; "
                "the context exists from open() on, so move the call from __init__ to open()"
            )
        return self._runtime_context


def open_function(function: Function, runtime_context: RuntimeContext) -> None:
    """Open a user function, rich or not: the only way a runtime does it."""
    if isinstance(function, RichFunction):
        function.set_runtime_context(runtime_context)
    function.open(runtime_context)


class Collector(ABC):
    """Takes a function's output, for functions that call `out.collect(value)` instead of `yield value`.

    `FlatMapFunction` has an example with `yield`.
    """

    @abstractmethod
    def collect(self, record: Any) -> None:
        """Emit `record`."""

    def close(self) -> None:
        """Called after the last record."""


class SideOutputContext(ABC):
    """A context that can emit to side outputs."""

    @abstractmethod
    def output(self, tag: OutputTag, value: Any) -> None:
        """Emit `value` to the side output `tag`; the same as `yield tag, value`."""
