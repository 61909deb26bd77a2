"""Evictors: they take elements out of a pane just before or just after the window function sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.datastream.windowing.element_triggers import DeltaFunction, delta_of, function_name
from penstock.datastream.windowing.spans import Span, check_positive, span_ms
from penstock.datastream.windowing.trigger import DecisionContext
from penstock.datastream.windowing.windows import Window

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class TimestampedValue(NamedTuple):
    """An element of a pane with its event time, `None` if it has none.

    >>> TimestampedValue("a", 1000).has_timestamp()
    True
    """

    value: Any
    timestamp: int | None = None

    def get_value(self) -> Any:
        """The element."""
        return self.value

    def get_timestamp(self) -> int | None:
        """Its event time; None if it has none."""
        return self.timestamp

    def has_timestamp(self) -> bool:
        """True if it has an event time."""
        return self.timestamp is not None


class Evictor(ABC, Generic[T, W]):
    """Removes elements from a pane when its trigger has fired.

    Both methods get the pane's elements, in order of arrival, as a list and remove from it in place
    (`del elements[:n]`). What is removed is gone from the window for good. Windows with an evictor keep all their
    elements, even if they are only reduced or aggregated.

    >>> from penstock.datastream.window import CountTrigger, GlobalWindows
    >>> class WithoutZeros(Evictor):
    ...     def evict_before(self, elements, size, window, evictor_context):
    ...         elements[:] = [each for each in elements if each.value != 0]
    ...     def evict_after(self, elements, size, window, evictor_context):
    ...         pass
    >>> numbers = env.from_collection([4, 0, 2]).window_all(GlobalWindows.create()).trigger(CountTrigger.of(3))
    >>> list(numbers.evictor(WithoutZeros()).reduce(min).execute_and_collect())
    [2]
    """

    class EvictorContext(DecisionContext):
        """Time and metrics for an evictor."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Called before the window function."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Called after the window function."""


class _OneSidedEvictor(Evictor[Any, Window]):
    """An evictor that works before the window function, or, with `do_evict_after`, after it."""

    do_evict_after: bool

    def evict_before(
        self, elements: list[TimestampedValue], size: int, window: Window, evictor_context: Evictor.EvictorContext
    ) -> None:
        if not self.do_evict_after:
            self.evict(elements)

    def evict_after(
        self, elements: list[TimestampedValue], size: int, window: Window, evictor_context: Evictor.EvictorContext
    ) -> None:
        if self.do_evict_after:
            self.evict(elements)

    @abstractmethod
    def evict(self, elements: list[TimestampedValue]) -> None:
        """Remove elements from the list in place."""


@dataclass(frozen=True)
class CountEvictor(_OneSidedEvictor):
    """Keeps the last `max_count` elements.

    >>> from penstock.datastream.window import CountTrigger, GlobalWindows
    >>> numbers = env.from_collection([1, 2, 3, 4]).window_all(GlobalWindows.create()).trigger(CountTrigger.of(2))
    >>> list(numbers.evictor(CountEvictor.of(3)).sum().execute_and_collect())
    [3, 9]
    """

    max_count: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        check_positive("CountEvictor", "max_count", self.max_count)

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Keep the last `max_count` elements."""
        return CountEvictor(max_count, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        del elements[: max(0, len(elements) - self.max_count)]

    def __str__(self) -> str:
        return f"CountEvictor({self.max_count})"


@dataclass(frozen=True)
class TimeEvictor(_OneSidedEvictor):
    """Keeps elements less than `window_size` milliseconds older than the newest; all, if they carry no event time.

    >>> from penstock.common import Time
    >>> str(TimeEvictor.of(Time.minutes(5)))
    'TimeEvictor(300000)'
    """

    window_size: int
    do_evict_after: bool = False

    def __post_init__(self) -> None:
        check_positive("TimeEvictor", "window_size", self.window_size)

    @staticmethod
    def of(window_size: Span, do_evict_after: bool = False) -> TimeEvictor:
        """Keep elements that are less than `window_size` older than the newest."""
        return TimeEvictor(span_ms("TimeEvictor", "window_size", window_size), do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        if not elements or not elements[0].has_timestamp():
            return
        cutoff = max(e.timestamp for e in elements if e.timestamp is not None) - self.window_size
        elements[:] = [e for e in elements if e.timestamp is None or e.timestamp > cutoff]

    def __str__(self) -> str:
        return f"TimeEvictor({self.window_size})"


@dataclass(frozen=True)
class DeltaEvictor(_OneSidedEvictor):
    """Keeps elements whose delta to the last one is below `threshold`.

    >>> from penstock.datastream.window import CountTrigger, GlobalWindows
    >>> numbers = env.from_collection([1, 7, 9]).window_all(GlobalWindows.create()).trigger(CountTrigger.of(3))
    >>> list(numbers.evictor(DeltaEvictor.of(5, lambda one, last: last - one)).sum().execute_and_collect())
    [16]
    """

    threshold: float
    delta_function: DeltaFunction | Callable[[Any, Any], float]
    do_evict_after: bool = False

    @staticmethod
    def of(
        threshold: float, delta_function: DeltaFunction | Callable[[Any, Any], float], do_evict_after: bool = False
    ) -> DeltaEvictor:
        """Keep elements whose delta to the last one is below `threshold`."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def evict(self, elements: list[TimestampedValue]) -> None:
        if not elements:
            return
        delta, last = delta_of(self.delta_function), elements[-1].value
        elements[:] = [e for e in elements if delta(e.value, last) < self.threshold]

    def __str__(self) -> str:
        return f"DeltaEvictor({function_name(self.delta_function)}, {self.threshold})"
