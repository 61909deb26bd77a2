"""The one window that holds all elements of a key, and the triggers that are made for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.common.serializer import TypeSerializer
from penstock.datastream.windowing.assigner import WindowAssigner
from penstock.datastream.windowing.element_triggers import ElementTrigger
from penstock.datastream.windowing.trigger import Trigger, TriggerResult
from penstock.datastream.windowing.windows import GlobalWindow, GlobalWindowSerializer, Window


@dataclass(frozen=True)
class NeverTrigger(ElementTrigger):
    """Never fires: the default of `GlobalWindows`.

    `GlobalWindows` has an example with another trigger.
    """

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
    """Fires once, when a bounded input has ended.

    >>> numbers = env.from_collection([1, 2, 3]).window_all(GlobalWindows.create_with_end_of_stream_trigger())
    >>> list(numbers.sum().execute_and_collect())
    [6]
    """

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


@dataclass(frozen=True)
class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """All elements of a key in one window that never ends; give it a trigger, the default one never fires.

    >>> from penstock.datastream.window import CountTrigger
    >>> numbers = env.from_collection([1, 2, 3, 4]).window_all(GlobalWindows.create()).trigger(CountTrigger.of(2))
    >>> list(numbers.sum().execute_and_collect())
    [3, 10]
    """

    default_trigger: Trigger[Any, Any] = field(default_factory=NeverTrigger)

    @staticmethod
    def create() -> GlobalWindows:
        """Global windows; give them a trigger, or they never fire."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """Global windows that fire once, when a bounded input has ended."""
        return GlobalWindows(EndOfStreamTrigger())

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[GlobalWindow]:
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any = None) -> Trigger[Any, Any]:
        return self.default_trigger

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        return False

    def __str__(self) -> str:
        return "GlobalWindows()"
