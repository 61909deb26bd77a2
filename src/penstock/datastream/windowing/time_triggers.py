"""Triggers that fire by time: at the end of the window, or again and again within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.typeinfo import Types
from penstock.datastream.state import ReducingState, ReducingStateDescriptor
from penstock.datastream.windowing.spans import Span, check_positive, span_ms
from penstock.datastream.windowing.trigger import Trigger, TriggerResult
from penstock.datastream.windowing.windows import Window

# Merged panes fire at the earliest of their times.
_FIRE_TIME = ReducingStateDescriptor("fire-time", min, Types.LONG())


@dataclass(frozen=True)
class EventTimeTrigger(Trigger[Any, Window]):
    """Fires once the watermark reaches the end of the window, and again for each late element that is still allowed."""

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger; it has no settings."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        # If the watermark is already past the end, on_element fires right after the merge; a timer would fire twice.
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())

    def __str__(self) -> str:
        return "EventTimeTrigger()"


@dataclass(frozen=True)
class ProcessingTimeTrigger(Trigger[Any, Window]):
    """Fires once the clock reaches the end of the window."""

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger; it has no settings."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())

    def __str__(self) -> str:
        return "ProcessingTimeTrigger()"


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(Trigger[Any, Window]):
    """Fires each time the watermark passes a multiple of `interval` milliseconds, and at the end of the window."""

    interval: int

    def __post_init__(self) -> None:
        check_positive("ContinuousEventTimeTrigger", "interval", self.interval)

    @staticmethod
    def of(interval: Span) -> ContinuousEventTimeTrigger:
        """Fire at every multiple of `interval`."""
        return ContinuousEventTimeTrigger(span_ms("ContinuousEventTimeTrigger", "interval", interval))

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() is None:
            self.register_next_fire_timestamp(_last_multiple(timestamp, self.interval), window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        next_fire = ctx.get_partitioned_state(_FIRE_TIME).get()
        if next_fire is not None:
            ctx.register_event_time_timer(next_fire)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        next_fire = fire_time.get()
        if next_fire is not None:
            ctx.delete_event_time_timer(next_fire)
            fire_time.clear()

    def register_next_fire_timestamp(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Register the timer of the next multiple after `time`, and remember it."""
        next_fire = min(time + self.interval, window.max_timestamp())
        if window.max_timestamp() == ctx.get_current_watermark() == MAX_LONG_VALUE:
            # The input has ended, but a global window has not: there would be no end of multiples of the interval.
            next_fire = MAX_LONG_VALUE
        fire_timestamp_state.add(next_fire)
        ctx.register_event_time_timer(next_fire)

    def __str__(self) -> str:
        return f"ContinuousEventTimeTrigger({self.interval})"


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(Trigger[Any, Window]):
    """Fires each time the clock passes a multiple of `interval` milliseconds, and at the end of the window."""

    interval: int

    def __post_init__(self) -> None:
        check_positive("ContinuousProcessingTimeTrigger", "interval", self.interval)

    @staticmethod
    def of(interval: Span) -> ContinuousProcessingTimeTrigger:
        """Fire at every multiple of `interval`."""
        return ContinuousProcessingTimeTrigger(span_ms("ContinuousProcessingTimeTrigger", "interval", interval))

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() is None:
            now = ctx.get_current_processing_time()
            self.register_next_fire_timestamp(_last_multiple(now, self.interval), window, ctx, fire_time)
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        next_fire = ctx.get_partitioned_state(_FIRE_TIME).get()
        if next_fire is not None:
            ctx.register_processing_time_timer(next_fire)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        next_fire = fire_time.get()
        if next_fire is not None:
            ctx.delete_processing_time_timer(next_fire)
            fire_time.clear()

    def register_next_fire_timestamp(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Register the timer of the next multiple after `time`, and remember it."""
        next_fire = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_fire)
        ctx.register_processing_time_timer(next_fire)

    def __str__(self) -> str:
        return f"ContinuousProcessingTimeTrigger({self.interval})"


def _last_multiple(time: int, interval: int) -> int:
    """`time` cut to a multiple of `interval`, towards zero as Flink's (Java's) remainder does."""
    return time - time % interval if time >= 0 else time + -time % interval
