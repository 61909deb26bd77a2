"""Triggers around another trigger: they drop what has fired, or do not wait for it longer than some time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.typeinfo import Types
from penstock.datastream.state import ValueStateDescriptor
from penstock.datastream.windowing.spans import Span, check_positive, span_ms
from penstock.datastream.windowing.trigger import Trigger, TriggerResult
from penstock.datastream.windowing.windows import Window

_TIMEOUT = ValueStateDescriptor("timeout", Types.LONG())


@dataclass(frozen=True)
class PurgingTrigger(Trigger[Any, Window]):
    """Fires when `nested_trigger` fires, and drops the pane's elements then.

    >>> from penstock.datastream.window import CountTrigger, GlobalWindows
    >>> numbers = env.from_collection([1, 2, 3, 4, 5]).window_all(GlobalWindows.create())
    >>> list(numbers.trigger(PurgingTrigger.of(CountTrigger.of(2))).sum().execute_and_collect())
    [3, 7]
    """

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
    nested trigger start over after a timeout.

    >>> from penstock.common import Time
    >>> from penstock.datastream.window import CountTrigger
    >>> str(ProcessingTimeoutTrigger.of(CountTrigger.of(100), Time.seconds(5)))
    'TimeoutTrigger(CountTrigger(100))'
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


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result
