"""Triggers that fire by time: at the end of the window, or repeatedly within it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.common.constants import MAX_LONG_VALUE
from penstock.common.typeinfo import Types
from penstock.datastream.state import ReducingState, ReducingStateDescriptor
from penstock.datastream.windowing.spans import Span, check_positive, span_ms
from penstock.datastream.windowing.time_domains import EVENT_TIME, PROCESSING_TIME, TimeDomain
from penstock.datastream.windowing.trigger import Trigger, TriggerResult
from penstock.datastream.windowing.windows import Window

# Merged panes fire at the earliest of their times.
_FIRE_TIME = ReducingStateDescriptor("fire-time", min, Types.LONG())


class _TimeTrigger(Trigger[Any, Window]):
    """A trigger that goes by one of the two times, and ignores timers of the other one."""

    time: ClassVar[TimeDomain]

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._on_time(time, window, ctx) if self.time.is_event_time else TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.CONTINUE if self.time.is_event_time else self._on_time(time, window, ctx)

    @abstractmethod
    def _on_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A timer of the trigger's own time has fired."""

    def can_merge(self) -> bool:
        return True


class _EndTrigger(_TimeTrigger):
    """Fires at the end of the window."""

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        # If the time is past the end already, on_element fires right after the merge; a timer would fire twice.
        if window.max_timestamp() > self.time.now(ctx):
            self.time.register(ctx, window.max_timestamp())

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        self.time.delete(ctx, window.max_timestamp())

    def __str__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True)
class EventTimeTrigger(_EndTrigger):
    """Fires once the watermark reaches the end of the window, and again for each late element that is still allowed.

    >>> from penstock.datastream.window import TumblingEventTimeWindows
    >>> from penstock.common import Time
    >>> str(TumblingEventTimeWindows.of(Time.minutes(1)).get_default_trigger())
    'EventTimeTrigger()'
    """

    time = EVENT_TIME

    @staticmethod
    def create() -> EventTimeTrigger:
        """The trigger; it has no settings."""
        return EventTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def _on_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE


@dataclass(frozen=True)
class ProcessingTimeTrigger(_EndTrigger):
    """Fires once the clock reaches the end of the window.

    >>> from penstock.common import Time
    >>> from penstock.datastream.window import TumblingProcessingTimeWindows
    >>> str(TumblingProcessingTimeWindows.of(Time.minutes(1)).get_default_trigger())
    'ProcessingTimeTrigger()'
    """

    time = PROCESSING_TIME

    @staticmethod
    def create() -> ProcessingTimeTrigger:
        """The trigger; it has no settings."""
        return ProcessingTimeTrigger()

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def _on_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE


def trigger_at_end(time: TimeDomain) -> EventTimeTrigger | ProcessingTimeTrigger:
    """The trigger that windows by this time have unless they are given another one."""
    return EventTimeTrigger() if time.is_event_time else ProcessingTimeTrigger()


@dataclass(frozen=True)
class _ContinuousTrigger(_TimeTrigger):
    """Fires at every multiple of `interval` milliseconds, and at the end of the window."""

    interval: int

    def __post_init__(self) -> None:
        check_positive(type(self).__name__, "interval", self.interval)

    def _on_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return TriggerResult.FIRE
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() != time:
            return TriggerResult.CONTINUE
        fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, fire_time)
        return TriggerResult.FIRE

    def _begin(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> None:
        """Let a pane fire at the next multiple after `time`, unless it waits for one already."""
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        if fire_time.get() is None:
            self.register_next_fire_timestamp(_last_multiple(time, self.interval), window, ctx, fire_time)

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(_FIRE_TIME)
        next_fire = ctx.get_partitioned_state(_FIRE_TIME).get()
        if next_fire is not None:
            self.time.register(ctx, next_fire)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        fire_time = ctx.get_partitioned_state(_FIRE_TIME)
        next_fire = fire_time.get()
        if next_fire is not None:
            self.time.delete(ctx, next_fire)
            fire_time.clear()

    def register_next_fire_timestamp(
        self, time: int, window: Window, ctx: Trigger.TriggerContext, fire_timestamp_state: ReducingState[int]
    ) -> None:
        """Register the timer of the next multiple after `time`, and remember it."""
        next_fire = min(time + self.interval, window.max_timestamp())
        if self.time.is_event_time and window.max_timestamp() == ctx.get_current_watermark() == MAX_LONG_VALUE:
            # The input has ended, but a global window has not: the multiples of the interval would never end.
            next_fire = MAX_LONG_VALUE
        fire_timestamp_state.add(next_fire)
        self.time.register(ctx, next_fire)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.interval})"


@dataclass(frozen=True)
class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires each time the watermark passes a multiple of `interval` milliseconds, and at the end of the window.

    >>> from penstock.common import Time
    >>> from penstock.datastream.window import TumblingEventTimeWindows
    >>> from penstock.testing import OperatorHarness
    >>> def hourly(stream):
    ...     windows = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.hours(1)))
    ...     return windows.trigger(ContinuousEventTimeTrigger.of(Time.minutes(1))).sum(1)
    >>> harness = OperatorHarness.of(hourly)
    >>> harness.element(("a", 1), at=10_000).watermark(60_000).element(("a", 2), at=70_000).watermark(120_000).output
    [('a', 1), ('a', 3)]
    """

    time = EVENT_TIME

    @staticmethod
    def of(interval: Span) -> ContinuousEventTimeTrigger:
        """Fire at every multiple of `interval`."""
        return ContinuousEventTimeTrigger(span_ms("ContinuousEventTimeTrigger", "interval", interval))

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return TriggerResult.FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        self._begin(timestamp, window, ctx)
        return TriggerResult.CONTINUE


@dataclass(frozen=True)
class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires each time the clock passes a multiple of `interval` milliseconds, and at the end of the window.

    >>> from penstock.common import Time
    >>> str(ContinuousProcessingTimeTrigger.of(Time.seconds(10)))
    'ContinuousProcessingTimeTrigger(10000)'
    """

    time = PROCESSING_TIME

    @staticmethod
    def of(interval: Span) -> ContinuousProcessingTimeTrigger:
        """Fire at every multiple of `interval`."""
        return ContinuousProcessingTimeTrigger(span_ms("ContinuousProcessingTimeTrigger", "interval", interval))

    def on_element(self, element: Any, timestamp: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        self._begin(ctx.get_current_processing_time(), window, ctx)
        return TriggerResult.CONTINUE


def _last_multiple(time: int, interval: int) -> int:
    """`time` cut to a multiple of `interval`, towards zero as Flink's (Java's) remainder does."""
    return time - time % interval if time >= 0 else time + -time % interval
