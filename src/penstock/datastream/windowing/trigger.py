"""What a trigger is: `Trigger` with its contexts, and the `TriggerResult` it answers with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream.windowing.windows import Window

if TYPE_CHECKING:
    from penstock.datastream.state import StateDescriptor
    from penstock.metrics import MetricGroup

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class TriggerResult(Enum):
    """What happens to a pane: fire runs the window function, purge drops the elements. Empty panes never fire.

    >>> TriggerResult.FIRE.is_fire(), TriggerResult.FIRE.is_purge()
    (True, False)
    """

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """True if the window function is called now."""
        return self.value[0]

    def is_purge(self) -> bool:
        """True if the pane's elements are dropped (after firing)."""
        return self.value[1]


class DecisionContext(ABC):
    """Time and metrics for what decides about a pane: triggers and evictors."""

    @abstractmethod
    def get_current_processing_time(self) -> int:
        """The current processing time in milliseconds."""

    @abstractmethod
    def get_metric_group(self) -> MetricGroup:
        """Where metrics are registered."""

    @abstractmethod
    def get_current_watermark(self) -> int:
        """The current watermark."""


class Trigger(ABC, Generic[T, W]):
    """Decides when a pane (the elements of one key in one window) is handed to the window function.

    One trigger object serves all panes, so what it remembers goes into `ctx.get_partitioned_state(...)`, which is kept
    per key and window. For merging windows `can_merge` must return True, and `on_merge` must merge state and timers.

    >>> from penstock.datastream.window import GlobalWindows
    >>> class AtStop(Trigger):
    ...     def on_element(self, element, timestamp, window, ctx):
    ...         return TriggerResult.FIRE_AND_PURGE if element == "stop" else TriggerResult.CONTINUE
    ...     def on_event_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def on_processing_time(self, time, window, ctx):
    ...         return TriggerResult.CONTINUE
    ...     def clear(self, window, ctx):
    ...         pass
    >>> words = env.from_collection(["a", "stop", "b", "c", "stop", "d"]).window_all(GlobalWindows.create())
    >>> list(words.trigger(AtStop()).reduce(lambda one, other: f"{one} {other}").execute_and_collect())
    ['a stop', 'b c stop']
    """

    class TriggerContext(DecisionContext):
        """Time, timers and state of the pane that a trigger is called for."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call `on_processing_time` once the clock reaches `time`."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call `on_event_time` once the watermark reaches `time`."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Remove the processing-time timer at `time`; no effect if there is none."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Remove the event-time timer at `time`; no effect if there is none."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """The state of that name for the pane's key and window."""

    class OnMergeContext(TriggerContext):
        """The context of `on_merge`: it can merge the state of the windows that became one."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Merge the states of that name of the windows that became one."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called after `element` was added to the pane."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called when a processing-time timer of the pane fires."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """Called when an event-time timer of the pane fires."""

    def can_merge(self) -> bool:
        """True if `on_merge` is implemented, so that the trigger can be used with merging windows."""
        return False

    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Called when several windows became `window`; their own state and timers are cleared right afterwards."""
        raise UnsupportedFeatureError(
            f"{type(self).__name__} cannot merge windows; implement can_merge() and on_merge(), or use another trigger"
        )

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """Drop the pane's trigger state and timers: the window is gone."""
