"""Window joins and co-groups of two streams, as programs write them.

Both are built from other operators: the elements of both streams are tagged with their side, united, keyed and
windowed; the window's function separates the two sides again. So triggers and evictors see `TaggedElement`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from penstock.common.exceptions import InvalidProgramError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.fields import as_key_selector
from penstock.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
    RuntimeContext,
    WindowFunction,
    open_function,
)
from penstock.datastream.streams.data_stream import DataStream
from penstock.datastream.streams.function_checks import check_function
from penstock.datastream.window import Evictor, Trigger, WindowAssigner

__all__ = ["CoGroupedStreams", "JoinedStreams", "TaggedElement"]


class TaggedElement(NamedTuple):
    """An element and the side it came from."""

    is_second: bool
    value: Any

    def is_one(self) -> bool:
        """True if the element is of the first stream."""
        return not self.is_second

    def is_two(self) -> bool:
        """True if the element is of the second stream."""
        return self.is_second


def _tag_first(element: Any) -> TaggedElement:
    return TaggedElement(False, element)


def _tag_second(element: Any) -> TaggedElement:
    return TaggedElement(True, element)


class _KeyOfTagged:
    """The key of an element by the selector of its side."""

    def __init__(self, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
        self._selectors = (first, second)

    def __call__(self, element: TaggedElement) -> Any:
        return self._selectors[element.is_second](element.value)


# --- the window's function -------------------------------------------------------------------------------------------


class _TwoSided(WindowFunction[TaggedElement, Any, Any, Any]):
    """Separates a window's elements by side and passes both sides to the user's function."""

    def __init__(self, function: Any) -> None:
        self.function: Any = function

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.function, Function):
            open_function(self.function, runtime_context)

    def close(self) -> None:
        if isinstance(self.function, Function):
            self.function.close()

    def apply(self, key: Any, window: Any, inputs: Iterable[TaggedElement]) -> Iterable[Any] | None:
        sides: tuple[list[Any], list[Any]] = ([], [])
        for element in inputs:
            sides[element.is_second].append(element.value)
        return self.evaluate(*sides)

    def evaluate(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        raise NotImplementedError


class CoGroupWindow(_TwoSided):
    def evaluate(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        function = self.function
        results: Iterable[Any] | None = (
            function.co_group(first, second) if isinstance(function, CoGroupFunction) else function(first, second)
        )
        return results


class JoinWindow(_TwoSided):
    """One result for every pair; from a FlatJoinFunction any number."""

    def evaluate(self, first: list[Any], second: list[Any]) -> Iterator[Any]:
        is_flat = isinstance(self.function, FlatJoinFunction)
        is_object = isinstance(self.function, (JoinFunction, FlatJoinFunction))
        join = self.function.join if is_object else self.function
        for left in first:
            for right in second:
                if is_flat:
                    yield from join(left, right) or ()
                else:
                    yield join(left, right)


# --- the steps -------------------------------------------------------------------------------------------------------


class _TwoStreams:
    """Two streams, waiting for their keys: `.where(...).equal_to(...).window(...).apply(...)`."""

    _window_function: type[_TwoSided]
    _function_kinds: tuple[type[Function], ...]

    def __init__(self, stream1: DataStream, stream2: DataStream) -> None:
        self._streams = (stream1, stream2)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._streams[0]!r} and {self._streams[1]!r}>"

    def where(self, key_selector: Any, key_type: TypeInformation | None = None) -> Where:
        """The key of the first stream's elements: a function, a KeySelector, or a field."""
        return Where(self, key_selector, key_type)


class JoinedStreams(_TwoStreams):
    """Pairs of elements with the same key in the same window. An element without a partner is dropped.

    >>> from penstock.datastream.window import CountTumblingWindowAssigner
    >>> orders, payments = env.from_collection([("o1", 20)]), env.from_collection([("o1", "card")])
    >>> joined = orders.join(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> paid = joined.window(CountTumblingWindowAssigner.of(2)).apply(lambda order, payment: order + payment[1:])
    >>> list(paid.execute_and_collect())
    [('o1', 20, 'card')]
    """

    _window_function = JoinWindow
    _function_kinds = (JoinFunction, FlatJoinFunction)


class CoGroupedStreams(_TwoStreams):
    """All elements of both streams with the same key in the same window; one side may be empty.

    >>> from penstock.datastream.window import CountTumblingWindowAssigner
    >>> orders, payments = env.from_collection([("o1", 20)]), env.from_collection([("o1", "card")])
    >>> grouped = orders.co_group(payments).where(lambda order: order[0]).equal_to(lambda payment: payment[0])
    >>> both = grouped.window(CountTumblingWindowAssigner.of(2)).apply(lambda first, second: [(first, second)])
    >>> list(both.execute_and_collect())
    [([('o1', 20)], [('o1', 'card')])]
    """

    _window_function = CoGroupWindow
    _function_kinds = (CoGroupFunction,)


class Where:
    """Waits for the key of the second stream."""

    def __init__(self, streams: _TwoStreams, key_selector: Any, key_type: TypeInformation | None) -> None:
        self._streams = streams
        self._key_selector = as_key_selector(key_selector)
        self._key_type = key_type

    def equal_to(self, key_selector: Any, key_type: TypeInformation | None = None) -> EqualTo:
        """The key of the second stream's elements."""
        if key_type is not None and self._key_type is not None and key_type != self._key_type:
            raise InvalidProgramError(
                f"equal_to: both streams need keys of the same type, but where(...) has {self._key_type} and "
                f"equal_to(...) has {key_type}"
            )
        selector = _KeyOfTagged(self._key_selector, as_key_selector(key_selector))
        return EqualTo(self._streams, selector, key_type or self._key_type)

    def window(self, *_: Any) -> Any:
        """Refused with InvalidProgramError: `equal_to` comes first."""
        raise InvalidProgramError("window: call equal_to(...) after where(...), to give the second stream's key")


class EqualTo:
    """Waits for the windows."""

    def __init__(self, streams: _TwoStreams, key_selector: _KeyOfTagged, key_type: TypeInformation | None) -> None:
        self._streams = streams
        self._key_selector = key_selector
        self._key_type = key_type

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WithWindow:
        """The windows in which elements meet."""
        return WithWindow(self._streams, self._key_selector, self._key_type, window_assigner)


class WithWindow:
    """Waits for the function. Each setting changes this object and returns it.

    `JoinedStreams` and `CoGroupedStreams` have examples.
    """

    def __init__(
        self,
        streams: _TwoStreams,
        key_selector: _KeyOfTagged,
        key_type: TypeInformation | None,
        window_assigner: WindowAssigner[Any, Any],
    ) -> None:
        self._kind = streams
        first, second = (
            stream._values().map(tag).set_parallelism(stream.transformation.parallelism)
            for stream, tag in zip(streams._streams, (_tag_first, _tag_second), strict=True)
        )
        self._windows = first.union(second).key_by(key_selector, key_type).window(window_assigner)

    def __repr__(self) -> str:
        return f"<WithWindow {self._windows._assigner} of {self._kind!r}>"

    def trigger(self, trigger: Trigger[Any, Any]) -> WithWindow:
        """Choose when a window fires, instead of the assigner's default; the trigger sees `TaggedElement`s."""
        self._windows.trigger(trigger)
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> WithWindow:
        """Remove elements from a window before or after its function is called; the evictor sees `TaggedElement`s."""
        self._windows.evictor(evictor)
        return self

    def allowed_lateness(self, time_ms: Any) -> WithWindow:
        """How long after its end a window still accepts late elements."""
        self._windows.allowed_lateness(time_ms)
        return self

    def apply(self, function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Call the function when a window fires.

        A join calls it for each pair: a JoinFunction or a plain function returns one result, a FlatJoinFunction yields
        any number. A co-group calls it once, with the two lists of elements, and it yields any number of results.
        """
        checked = check_function(function, self._kind._function_kinds, "apply")
        return self._windows.apply(self._kind._window_function(checked), output_type)
