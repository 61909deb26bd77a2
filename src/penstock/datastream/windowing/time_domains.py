"""The two times that windows and triggers can go by: one object for each, so that everything else is written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.exceptions import InvalidProgramError

if TYPE_CHECKING:
    from penstock.datastream.windowing.assigner import WindowAssigner
    from penstock.datastream.windowing.trigger import Trigger


class TimeDomain(ABC):
    """What time it is, and the timers that wait for it."""

    is_event_time: bool

    @abstractmethod
    def time_of(
        self, assigner: object, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> int:
        """The time by which `assigner` puts an element into its windows; raises if the element has none."""

    @abstractmethod
    def now(self, ctx: Trigger.TriggerContext) -> int:
        """The watermark, or the clock."""

    @abstractmethod
    def register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        """Register a timer of this time."""

    @abstractmethod
    def delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        """Remove a timer of this time."""


class _EventTime(TimeDomain):
    is_event_time = True

    def time_of(
        self, assigner: object, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> int:
        if timestamp is None or timestamp <= MIN_LONG_VALUE:  # The smallest long stands for no event time.
            raise InvalidProgramError(
                f"element {element!r} has no event time, but {assigner} needs one; "
                "call assign_timestamps_and_watermarks(...) before key_by(...)"
            )
        return timestamp

    def now(self, ctx: Trigger.TriggerContext) -> int:
        return ctx.get_current_watermark()

    def register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_event_time_timer(time)

    def delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_event_time_timer(time)


class _ProcessingTime(TimeDomain):
    is_event_time = False

    def time_of(
        self, assigner: object, element: object, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> int:
        return context.get_current_processing_time()

    def now(self, ctx: Trigger.TriggerContext) -> int:
        return ctx.get_current_processing_time()

    def register(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.register_processing_time_timer(time)

    def delete(self, ctx: Trigger.TriggerContext, time: int) -> None:
        ctx.delete_processing_time_timer(time)


EVENT_TIME: TimeDomain = _EventTime()
PROCESSING_TIME: TimeDomain = _ProcessingTime()
