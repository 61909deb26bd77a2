"""Triggers by count and by value, those that wrap another trigger, and those of global windows."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import TypeInformation, Types
from penstock.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from penstock.datastream.windowing.spans import Span, check_positive, span_ms
from penstock.datastream.windowing.trigger import Trigger, TriggerResult
from penstock.datastream.windowing.windows import GlobalWindow, Window

_COUNT = ReducingStateDescriptor("count", operator.add, Types.LONG())
_TIMEOUT = ValueStateDescriptor("timeout", Types.LONG())


class _ElementTrigger(Trigger[Any, Window]):
    """A trigger that decides by elements alone."""

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE


@dataclass(frozen=True)
class CountTrigger(_ElementTrigger):
    """Fires each time the pane got `window_size` more elements."""

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
    """Says how far two elements are apart. A plain function of two elements does as well."""

    @abstractmethod
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        """How far two elements are apart."""


def delta_of(function: DeltaFunction | Callable[[Any, Any], float]) -> Callable[[Any, Any], float]:
    """The plain function behind a delta function."""
    return function.get_delta if isinstance(function, DeltaFunction) else function


@dataclass(frozen=True)
class DeltaTrigger(_ElementTrigger):
    """Fires when an element is further than `threshold` from the last one that fired (or the pane's first)."""

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
        return f"DeltaTrigger({_name(self.delta_function)}, {self.threshold})"


@dataclass(frozen=True)
class PurgingTrigger(Trigger[Any, Window]):
    """Fires when `nested_trigger` fires, and drops the pane's elements then."""

    nested_trigger: Trigger[Any, Any]

    @staticmethod
    def of(nested_trigger: Trigger[Any, Any]) -> PurgingTrigger:
        """Clear a pane whenever `nested_trigger` fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)

    def __str__(self) -> str:
        return f"PurgingTrigger({self.nested_trigger})"


@dataclass(frozen=True)
class ProcessingTimeoutTrigger(Trigger[Any, Window]):
    """Fires when `nested_trigger` fires, or `interval` milliseconds of clock time after the pane's first element.

    `reset_timer_on_new_record` counts the timeout from the latest element instead; `should_clear_on_timeout` lets the
    nested trigger start anew after a timeout.
    """

    nested_trigger: Trigger[Any, Any]
    interval: int
    reset_timer_on_new_record: bool = False
    should_clear_on_timeout: bool = True

    def __post_init__(self) -> None:
        check_positive("ProcessingTimeoutTrigger", "timeout", self.interval)

    @staticmethod
    def of(
        nested_trigger: Trigger[Any, Any],
        timeout: Span,
        reset_timer_on_new_record: bool = False,
        should_clear_on_timeout: bool = True,
    ) -> ProcessingTimeoutTrigger:
        """Fire when `nested_trigger` does, or after `timeout` of clock time."""
        timeout_ms = span_ms("ProcessingTimeoutTrigger", "timeout", timeout)
        return ProcessingTimeoutTrigger(nested_trigger, timeout_ms, reset_timer_on_new_record, should_clear_on_timeout)

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        result = self.nested_trigger.on_element(element, timestamp, window, ctx)
        if result.is_fire():
            self.clear(window, ctx)
            return result
        timeout = ctx.get_partitioned_state(_TIMEOUT)
        pending = timeout.value()
        if pending is not None and self.reset_timer_on_new_record:
            ctx.delete_processing_time_timer(pending)
            pending = None
        if pending is None:
            deadline = ctx.get_current_processing_time() + self.interval
            timeout.update(deadline)
            ctx.register_processing_time_timer(deadline)
        return result

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._timed_out(self.nested_trigger.on_event_time(time, window, ctx), window, ctx)

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._timed_out(self.nested_trigger.on_processing_time(time, window, ctx), window, ctx)

    def _timed_out(self, nested: TriggerResult, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        # As in Flink, any timer of the pane counts as a timeout, also one that the nested trigger set.
        if self.should_clear_on_timeout:
            self.clear(window, ctx)
        return TriggerResult.FIRE_AND_PURGE if nested.is_purge() else TriggerResult.FIRE

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        timeout = ctx.get_partitioned_state(_TIMEOUT)
        pending = timeout.value()
        if pending is not None:
            ctx.delete_processing_time_timer(pending)
            timeout.clear()
        self.nested_trigger.clear(window, ctx)

    def __str__(self) -> str:
        return f"TimeoutTrigger({self.nested_trigger})"


@dataclass(frozen=True)
class NeverTrigger(_ElementTrigger):
    """Never fires: the default of `GlobalWindows`."""

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        pass

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        pass

    def __str__(self) -> str:
        return "NeverTrigger()"


@dataclass(frozen=True)
class EndOfStreamTrigger(Trigger[Any, GlobalWindow]):
    """Fires once, when a bounded input has ended."""

    def on_element(
        self, element: Any, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: Trigger.OnMergeContext) -> None:
        pass

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        pass

    def __str__(self) -> str:
        return "EndOfStreamTrigger()"


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


def _name(function: object) -> str:
    return getattr(function, "__name__", None) or str(function)
