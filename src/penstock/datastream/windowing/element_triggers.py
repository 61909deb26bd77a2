"""Triggers that decide by elements alone: how many there are, or how far they are apart."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from penstock.datastream.windowing.spans import check_positive
from penstock.datastream.windowing.trigger import Trigger, TriggerResult
from penstock.datastream.windowing.windows import Window

_COUNT = ReducingStateDescriptor("count", operator.add, Types.LONG())


class ElementTrigger(Trigger[Any, Window]):
    """A trigger that decides by elements alone."""

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE


@dataclass(frozen=True)
class CountTrigger(ElementTrigger):
    """Fires each time the pane has received `window_size` more elements.

    >>> from penstock.datastream.window import GlobalWindows
    >>> numbers = env.from_collection([1, 2, 3, 4, 5]).window_all(GlobalWindows.create())
    >>> list(numbers.trigger(CountTrigger.of(2)).sum().execute_and_collect())
    [3, 10]
    """

    window_size: int

    def __post_init__(self) -> None:
        check_positive("CountTrigger", "window_size", self.window_size)

    @staticmethod
    def of(window_size: int) -> CountTrigger:
        """Fire at every `window_size` elements of a pane."""
        return CountTrigger(window_size)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        count = ctx.get_partitioned_state(_COUNT)
        count.add(1)
        if count.get() < self.window_size:
            return TriggerResult.CONTINUE
        count.clear()
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_COUNT)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(_COUNT).clear()

    def __str__(self) -> str:
        return f"CountTrigger({self.window_size})"


class DeltaFunction(ABC):
    """Says how far two elements are apart. A plain function of two elements works, too.

    >>> class Distance(DeltaFunction):
    ...     def get_delta(self, old_data_point, new_data_point):
    ...         return abs(new_data_point - old_data_point)
    >>> DeltaTrigger.of(10, Distance()).threshold
    10
    """

    @abstractmethod
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        """How far two elements are apart."""


def delta_of(function: DeltaFunction | Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    """The plain function behind a delta function."""
    return function.get_delta if isinstance(function, DeltaFunction) else function


@dataclass(frozen=True)
class DeltaTrigger(ElementTrigger):
    """Fires when an element is further than `threshold` from the last one that fired (or the pane's first).

    >>> from penstock.datastream.window import GlobalWindows
    >>> temperatures = env.from_collection([20, 21, 25, 26, 31]).window_all(GlobalWindows.create())
    >>> jumps = temperatures.trigger(DeltaTrigger.of(4, lambda old, new: new - old)).reduce(lambda one, other: other)
    >>> list(jumps.execute_and_collect())
    [25, 31]
    """

    threshold: float
    delta_function: DeltaFunction | Callable[[Any, Any], float]
    state_type: TypeInformation | None = None

    @staticmethod
    def of(
        threshold: float,
        delta_function: DeltaFunction | Callable[[Any, Any], float],
        state_type: TypeInformation | None = None,
    ) -> DeltaTrigger:
        """Fire when an element is further than `threshold` from the one at the last firing."""
        return DeltaTrigger(threshold, delta_function, state_type)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        last = ctx.get_partitioned_state(self._last_element())
        if last.value() is None:
            last.update(element)
            return TriggerResult.CONTINUE
        if delta_of(self.delta_function)(last.value(), element) <= self.threshold:
            return TriggerResult.CONTINUE
        last.update(element)
        return TriggerResult.FIRE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._last_element()).clear()

    def _last_element(self) -> ValueStateDescriptor:
        return ValueStateDescriptor("last-element", self.state_type or Types.PICKLED_BYTE_ARRAY())

    def __str__(self) -> str:
        return f"DeltaTrigger({function_name(self.delta_function)}, {self.threshold})"


def function_name(function: object) -> str:
    """How a function is shown in the text of a trigger or evictor."""
    return getattr(function, "__name__", None) or str(function)
