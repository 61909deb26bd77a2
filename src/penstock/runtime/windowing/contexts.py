"""The contexts that the window operator passes to triggers, assigners, evictors and window functions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.datastream.functions import (
    KeyedStateStore,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    RuntimeContext,
)
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import StateDescriptor
from penstock.datastream.window import Evictor, Trigger, Window, WindowAssigner
from penstock.metrics import MetricGroup
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.timers import InternalTimerService

_NOWHERE: Any = None
"""The window of a context before the first call of `at`."""


class PaneContext(Trigger.OnMergeContext, Evictor.EvictorContext):
    """The context of a trigger or evictor for the current key's pane of `window`."""

    def __init__(self, timers: InternalTimerService, backend: KeyedStateBackend, metric_group: MetricGroup) -> None:
        self._timers = timers
        self._backend = backend
        self._metric_group = metric_group
        self._descriptors: dict[str, StateDescriptor] = {}
        self.window: Window = _NOWHERE
        self.merged_windows: list[Window] = []

    def at(self, window: Window, merged_windows: list[Window] | None = None) -> PaneContext:
        """This context, now for `window`."""
        self.window = window
        self.merged_windows = merged_windows or []
        return self

    def get_current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def get_current_watermark(self) -> int:
        return self._timers.current_watermark

    def get_metric_group(self) -> MetricGroup:
        return self._metric_group

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.processing_time.add(time, self._backend.current_key, self.window)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.event_time.add(time, self._backend.current_key, self.window)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time_timer(self.window, time)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time_timer(self.window, time)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        return self._backend.state(self._own(state_descriptor), self.window)

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        if self.merged_windows:
            self._backend.merge_namespaces(self._own(state_descriptor), self.window, self.merged_windows)

    def _own(self, descriptor: StateDescriptor) -> StateDescriptor:
        """The descriptor under a name that only triggers use: the user may have a state called `count`, too."""
        own = self._descriptors.get(descriptor.name)
        if own is None:
            own = copy.copy(descriptor)
            own.name = f"_trigger/{descriptor.name}"
            self._descriptors[descriptor.name] = own
        return own


class AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, clock: Callable[[], int], runtime_context: RuntimeContext) -> None:
        self._clock = clock
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        return self._clock()

    def get_runtime_context(self) -> RuntimeContext:
        return self._runtime_context


class WindowStateStore(KeyedStateStore):
    """The state of the current key in one window."""

    def __init__(self, backend: KeyedStateBackend, window: Window) -> None:
        self._backend = backend
        self._window = window

    def _state(self, state_descriptor: StateDescriptor) -> Any:
        return self._backend.state(state_descriptor, self._window)

    get_state = _state
    get_list_state = _state
    get_map_state = _state
    get_reducing_state = _state
    get_aggregating_state = _state


class NoWindowStateStore(KeyedStateStore):
    """Refuses per-window state if windows merge, because the state could not be merged with them."""

    def _refuse(self, state_descriptor: StateDescriptor) -> Any:
        raise UnsupportedFeatureError(
            f"per-window state '{state_descriptor.name}' is not allowed with merging windows such as sessions; "
            "use context.global_state()"
        )

    get_state = _refuse
    get_list_state = _refuse
    get_map_state = _refuse
    get_reducing_state = _refuse
    get_aggregating_state = _refuse


class ProcessContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The context of a window function for the current key's pane of one window."""

    def __init__(
        self,
        timers: InternalTimerService,
        backend: KeyedStateBackend,
        global_state: KeyedStateStore,
        is_merging: bool,
        emit_side: Callable[[str, Any, int | None], None],
    ) -> None:
        self._timers = timers
        self._backend = backend
        self._global_state = global_state
        self._is_merging = is_merging
        self._emit_side = emit_side
        self._window: Window = _NOWHERE

    def at(self, window: Window) -> ProcessContext:
        """This context, now for `window`."""
        self._window = window
        return self

    def window(self) -> Window:
        return self._window

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def current_watermark(self) -> int:
        return self._timers.current_watermark

    def window_state(self) -> KeyedStateStore:
        return NoWindowStateStore() if self._is_merging else WindowStateStore(self._backend, self._window)

    def global_state(self) -> KeyedStateStore:
        return self._global_state

    def output(self, tag: OutputTag, value: Any) -> None:
        if not isinstance(tag, OutputTag):
            raise TypeError(f"context.output needs an OutputTag, got {tag!r}; write OutputTag('name', type)")
        self._emit_side(tag.tag_id, value, self._window.max_timestamp())
