"""The window operator for tumbling and sliding windows with a trigger of any kind: the general algorithm, by batches.

What is the same for all elements of a batch in one window is found out once: the window, whether it is late, its panes
and its cleanup timers. The trigger is asked about every element, unless it is seen to do no more than set timers.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, cast

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.datastream.window import TriggerResult, Window
from penstock.runtime.batch import Batch
from penstock.runtime.state.table import StateTable
from penstock.runtime.timers import TimerQueue
from penstock.runtime.windowing.operator import WindowOperator
from penstock.runtime.windowing.panes import PlainPanes
from penstock.runtime.windowing.slots import Slots
from penstock.runtime.windowing.timer_triggers import only_sets_timers


class _OpenWindow:
    """A window while a batch is added to it, with its panes by key."""

    def __init__(self, window: Window, table: StateTable, cleanup: TimerQueue, cleanup_time: int) -> None:
        self.window = window
        self.asked: set[Any] = set()
        """Keys for which a trigger that only sets timers was asked."""
        self._table = table
        self._cleanup = cleanup
        self._cleanup_time = cleanup_time
        self.written: list[Any] = []
        self.new: list[Any] = []
        self.reopen()
        self.find_cleanup_timers()

    def reopen(self) -> None:
        """After others have worked on the table."""
        self.panes = self._table.open_namespace(self.window)

    def close(self) -> None:
        """Before others do, and when the batch has been added: the table knows what was written."""
        if self.written:
            self._table.note_all_written(self.window, self.written, self.new)
            self.written, self.new = [], []
        self._table.close_namespace(self.window)

    def find_cleanup_timers(self) -> None:
        self.waiting: Any = self._cleanup.keys_at(self._cleanup_time, self.window)
        """The keys that have a cleanup timer."""


class _Slot(NamedTuple):
    """A span of time in which elements belong to the same windows; those that are not late are open."""

    start: int
    end: int
    open: list[_OpenWindow]


class TriggeredWindowOperator(WindowOperator):
    """Runs tumbling and sliding windows with triggers other than their own."""

    def open(self) -> None:
        super().open()
        self._table = cast(PlainPanes, self.panes).table
        self._cleanup = self.timers.event_time if self.is_event_time else self.timers.processing_time
        self._asks_once = self.context.inlines_functions and only_sets_timers(self.trigger)

    @cached_property
    def _slots(self) -> Slots:
        """As soon as there are elements, which is when the assigner knows its offset."""
        return Slots(self.assigner)

    def process_elements(self, batch: Batch) -> None:
        opened: dict[Window, _OpenWindow] = {}
        timestamps = batch.timestamps or [None] * len(batch.values)
        backend, added, asks_once = self.backend, self.accumulation.added, self._asks_once
        on_element, context, unchanged = self.trigger.on_element, self.pane_context, TriggerResult.CONTINUE
        start = end = 0
        windows: list[_OpenWindow] = []
        for key, value, timestamp in zip(self.keys_of(batch), batch.values, timestamps, strict=True):
            backend.current_key = key
            event_time = MIN_LONG_VALUE if timestamp is None else timestamp
            if not start <= event_time < end:
                start, end, windows = self._slot_of(value, event_time, opened)
            if not windows and self.is_element_late(event_time):
                self.skip_late(value, timestamp)
            for number, into in enumerate(windows):
                if number:
                    value = self.context.copied(value)  # Each window has its own.
                panes = into.panes
                held = panes.get(key)
                if held is None and key not in panes:
                    into.new.append(key)
                panes[key] = added(held, value, timestamp)
                into.written.append(key)
                if not asks_once or key not in into.asked:
                    result = on_element(value, event_time, into.window, context.at(into.window))
                    if result is not unchanged:
                        into.close()
                        self.settle(into.window, result)
                        into.reopen()
                    if asks_once:
                        into.asked.add(key)
                if key not in into.waiting:
                    self.register_cleanup_timer(into.window)
                    into.find_cleanup_timers()
        for into in opened.values():
            into.close()

    def _slot_of(self, value: Any, event_time: int, opened: dict[Window, _OpenWindow]) -> _Slot:
        """Which elements belong to the same windows as one at `event_time`, and those windows.

        By processing time that are all elements of a batch.
        """
        live = []
        for window in self.assigner.assign_windows(value, event_time, self.assigner_context):
            if self.is_window_late(window):
                continue
            if window not in opened:
                opened[window] = _OpenWindow(window, self._table, self._cleanup, self.cleanup_time(window))
            live.append(opened[window])
        if not self.is_event_time:
            return _Slot(MIN_LONG_VALUE, MAX_LONG_VALUE + 1, live)
        return _Slot(*self._slots.at(event_time), live)
