"""The window operator: Flink's algorithm for every assigner, trigger and window function.

An element is assigned to windows. Each (key, window) is a pane with contents, trigger state and timers. The trigger
decides when a pane fires. A pane is dropped at its cleanup time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, cast

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.window import MergingWindowAssigner, Trigger, TriggerResult, Window
from penstock.datastream.windowing.windows import has_passed
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.keyed import KeyedOperator
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.timers import InternalTimerService
from penstock.runtime.user_function import UserFunction
from penstock.runtime.windowing.accumulation import Accumulation, accumulation_of
from penstock.runtime.windowing.contexts import AssignerContext, PaneContext, ProcessContext
from penstock.runtime.windowing.evaluation import WindowEvaluation
from penstock.runtime.windowing.panes import MergingPanes, Panes, PlainPanes

TIMER_SERVICE = "window-timers"
LATE_RECORDS_DROPPED = "numLateRecordsDropped"

AskTrigger = Callable[[int, Window, Trigger.TriggerContext], TriggerResult]
"""A trigger's `on_event_time` or `on_processing_time`."""


class WindowOperator(KeyedOperator):
    """Runs a `WindowDescription` without evictor."""

    def __init__(self, description: WindowDescription) -> None:
        super().__init__(description)
        self._functions = _functions_of(description)
        self.description = replace(description, **{name: each.function for name, each in self._functions.items()})
        self.assigner = description.assigner
        self.trigger = description.trigger
        self.is_event_time: bool = description.assigner.is_event_time()
        self.lateness_ms = description.allowed_lateness_ms
        self.evaluation = WindowEvaluation(self.description)
        self._stagger_ms: int | None = None

    def build_accumulation(self) -> Accumulation:
        return accumulation_of(self.description, self.context.copied, self.context.inlines_functions)

    # --- life ------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.backend = self.context.keyed_state
        self.accumulation = self.build_accumulation()
        self.timers = self.open_timers()
        self.timers.current_watermark = self.current_watermark
        self.panes = self.open_panes()

        runtime_context = StreamingRuntimeContext(self.context, has_keyed_state=True)
        self.pane_context = PaneContext(self.timers, self.backend, runtime_context.get_metrics_group())
        self.assigner_context = AssignerContext(self.context.clock, runtime_context)
        is_merging = isinstance(self.panes, MergingPanes)
        self.evaluation.open(
            ProcessContext(self.timers, self.backend, runtime_context, is_merging, self.output.collect_side)
        )
        for function in self._functions.values():
            function.open(runtime_context)
        if self._stagger_ms is not None:
            self.assigner = self.assigner.shifted(self._stagger_ms)

    def open_timers(self) -> InternalTimerService:
        return self.context.timer_service(TIMER_SERVICE, self.on_event_time, self.on_processing_time)

    def open_panes(self) -> Panes:
        if isinstance(self.assigner, MergingWindowAssigner):
            return MergingPanes(self.backend, self.assigner, self.accumulation, self.on_merge)
        return PlainPanes(self.backend)

    def close(self) -> None:
        for function in self._functions.values():
            function.close()

    def task_memory(self) -> Any:
        """The watermark, so that late elements stay late, and the offset by which this subtask shifts its windows."""
        return self.current_watermark, self._stagger_ms

    def restore_task_memory(self, memory: Any) -> None:
        self.current_watermark, self._stagger_ms = memory

    # --- elements --------------------------------------------------------------------------------------------------

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if not batch.values:
            return
        if self._stagger_ms is None:
            self._stagger_ms = self.assigner.stagger_offset_ms(self.context.clock())
            self.assigner = self.assigner.shifted(self._stagger_ms)
        self.process_elements(batch)

    def process_elements(self, batch: Batch) -> None:
        timestamps = batch.timestamps or [None] * len(batch.values)
        for key, value, timestamp in zip(self.keys_of(batch), batch.values, timestamps, strict=True):
            self.backend.current_key = key
            self.process_element(value, timestamp)

    def process_element(self, value: Any, timestamp: int | None) -> None:
        """Add an element of the current key to its windows, and ask the trigger about each of them."""
        event_time = MIN_LONG_VALUE if timestamp is None else timestamp
        windows = self.assigner.assign_windows(value, event_time, self.assigner_context)
        self.add_to_windows(windows, value, timestamp, event_time)

    def add_to_windows(self, windows: Iterable[Window], value: Any, timestamp: int | None, event_time: int) -> None:
        is_skipped = True
        is_shared = False
        for assigned in windows:
            if is_shared:
                value = self.context.copied(value)  # Each window gets its own copy.
            is_shared = True
            window = self.panes.add_window(assigned)
            if self.is_window_late(window):
                self.panes.retire(window)
            else:
                is_skipped = False
                self.add_to_pane(window, value, timestamp, event_time)
        if is_skipped and self.is_element_late(event_time):
            self.skip_late(value, timestamp)

    def add_to_pane(self, window: Window, value: Any, timestamp: int | None, event_time: int) -> None:
        self.panes.put(window, self.accumulation.added(self.panes.get(window), value, timestamp))
        self.settle(window, self.trigger.on_element(value, event_time, window, self.pane_context.at(window)))
        self.register_cleanup_timer(window)

    def skip_late(self, value: Any, timestamp: int | None) -> None:
        """Send a late element to the side output, or count it as dropped if there is none."""
        if self.description.late_tag is not None:
            self.output.collect_side(self.description.late_tag.tag_id, value, timestamp)
        else:
            self.context.increment(LATE_RECORDS_DROPPED)

    def on_merge(self, window: Window, replaced: list[Window]) -> None:
        """Merge the trigger state and timers of windows of the current key that have become `window`."""
        self.trigger.on_merge(window, self.pane_context.at(window, replaced))
        for old in replaced:
            self.trigger.clear(old, self.pane_context.at(old))
            self.delete_cleanup_timer(old)

    # --- time ------------------------------------------------------------------------------------------------------

    def on_event_time(self, time: int, key: Any, window: Hashable) -> None:
        self.on_timer(time, cast(Window, window), self.trigger.on_event_time, self.is_event_time)

    def on_processing_time(self, time: int, key: Any, window: Hashable) -> None:
        self.on_timer(time, cast(Window, window), self.trigger.on_processing_time, not self.is_event_time)

    def on_timer(self, time: int, window: Window, ask: AskTrigger, can_clean_up: bool) -> None:
        if not self.panes.is_open(window):
            return  # A trigger left this timer behind when its window was merged into another one.
        self.settle(window, ask(time, window, self.pane_context.at(window)))
        if can_clean_up and time == self.cleanup_time(window):
            self.drop(window)

    # --- panes -----------------------------------------------------------------------------------------------------

    def settle(self, window: Window, result: TriggerResult) -> None:
        """Fire or purge a pane, as the trigger answered. No other method acts on a trigger's answer."""
        if result.is_fire():
            self.fire(window)
        if result.is_purge():
            self.panes.clear(window)

    def fire(self, window: Window) -> None:
        held = self.panes.get(window)
        elements = None if held is None else self.accumulation.elements(held)
        if elements is not None:
            self.emit(window, elements)

    def emit(self, window: Window, elements: Iterable[Any]) -> None:
        """Call the window function and emit its results with the window's last timestamp."""
        results = self.evaluation.evaluate(self.backend.current_key, window, elements)
        if results is None:
            return
        timestamp = window.max_timestamp()
        for result in results:
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                self.output.collect_side(result[0].tag_id, result[1], timestamp)
            else:
                self.output.collect(result, timestamp)

    def drop(self, window: Window) -> None:
        """Drop the current key's pane of the window, with its trigger state."""
        self.panes.retire(window)
        self.trigger.clear(window, self.pane_context.at(window))
        self.evaluation.clear(window)

    # --- lateness --------------------------------------------------------------------------------------------------

    def cleanup_time(self, window: Window) -> int:
        if not self.is_event_time:
            return window.max_timestamp()
        return min(window.max_timestamp() + self.lateness_ms, MAX_LONG_VALUE)

    def is_window_late(self, window: Window) -> bool:
        """True if the cleanup time of the window has passed."""
        return self.is_event_time and has_passed(self.cleanup_time(window), self.timers.current_watermark)

    def is_element_late(self, event_time: int) -> bool:
        return self.is_event_time and has_passed(event_time + self.lateness_ms, self.timers.current_watermark)

    def register_cleanup_timer(self, window: Window) -> None:
        time = self.cleanup_time(window)
        if time == MAX_LONG_VALUE:
            return  # The pane is never dropped.
        if self.is_event_time:
            self.timers.register_event_time_timer(window, time)
        else:
            self.timers.register_processing_time_timer(window, time)

    def delete_cleanup_timer(self, window: Window) -> None:
        time = self.cleanup_time(window)
        if self.is_event_time:
            self.timers.delete_event_time_timer(window, time)
        else:
            self.timers.delete_processing_time_timer(window, time)


def _functions_of(description: WindowDescription) -> dict[str, UserFunction]:
    """The user's functions, as this subtask's own objects, by their fields of the description."""
    window_method = "process" if hasattr(description.window_function, "process") else "apply"
    methods = {"reduce_function": "reduce", "aggregate_function": "add", "window_function": window_method}
    return {
        field: UserFunction(getattr(description, field), method)
        for field, method in methods.items()
        if getattr(description, field) is not None
    }
