"""Functions over the contents of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.datastream.functions.base import Function, RichFunction, SideOutputContext

if TYPE_CHECKING:
    from penstock.datastream.functions.runtime_context import KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluated over each window of a key when it fires.

    >>> from penstock.datastream.window import CountTumblingWindowAssigner
    >>> class Largest(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         yield key, max(inputs)
    >>> numbers = env.from_collection([1, 4, 2, 3]).key_by(lambda number: number % 2)
    >>> list(numbers.window(CountTumblingWindowAssigner.of(2)).apply(Largest()).execute_and_collect())
    [(0, 4), (1, 3)]
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield the results of a window; with an incremental aggregation `inputs` holds its one result."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluated over each window of a non-keyed stream when it fires.

    >>> class Largest(AllWindowFunction):
    ...     def apply(self, window, inputs):
    ...         yield max(inputs)
    >>> list(env.from_collection([1, 4, 2, 3]).count_window_all(2).apply(Largest()).execute_and_collect())
    [4, 3]
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield the results of a window; with an incremental aggregation `inputs` holds its one result."""


class WindowContext(SideOutputContext, Generic[W2]):
    """What a window function can ask about the window being evaluated; not to be kept beyond the call."""

    @abstractmethod
    def window(self) -> W2:
        """The window being evaluated."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """The current processing time in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The current watermark."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and this window. Remove it in `clear`: nothing else does."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, shared by all its windows."""


class ProcessWindowFunction(RichFunction, Generic[IN, OUT, KEY, W]):
    """Evaluated over each window of a key, with access to time, state and side outputs.

    >>> from penstock.datastream.window import CountTumblingWindowAssigner
    >>> class Largest(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         yield key, max(elements)
    >>> numbers = env.from_collection([1, 4, 2, 3]).key_by(lambda number: number % 2)
    >>> list(numbers.window(CountTumblingWindowAssigner.of(2)).process(Largest()).execute_and_collect())
    [(0, 4), (1, 3)]
    """

    class Context(WindowContext[W2], ABC):
        """What `process` and `clear` can ask."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT] | None:
        """Yield the results of a window; with an incremental aggregation `elements` holds its one result."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Called when the window is dropped for good: clear its `window_state` here."""


class ProcessAllWindowFunction(RichFunction, Generic[IN, OUT, W]):
    """Evaluated over each window of a non-keyed stream, with access to time, state and side outputs.

    >>> class Numbered(ProcessAllWindowFunction):
    ...     def process(self, context, elements):
    ...         yield context.window().id, sorted(elements)
    >>> list(env.from_collection([1, 4, 3, 2]).count_window_all(2).process(Numbered()).execute_and_collect())
    [(0, [1, 4]), (1, [2, 3])]
    """

    class Context(WindowContext[W2], ABC):
        """What `process` and `clear` can ask."""

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT] | None:
        """Yield the results of a window; with an incremental aggregation `elements` holds its one result."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Called when the window is dropped for good: clear its `window_state` here."""


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """Emits a window's contents as they are.

    >>> list(PassThroughWindowFunction().apply("key", None, [1, 2]))
    [1, 2]
    """

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """Emits a window's contents as they are.

    >>> list(PassThroughAllWindowFunction().apply(None, [1, 2]))
    [1, 2]
    """

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        return inputs
