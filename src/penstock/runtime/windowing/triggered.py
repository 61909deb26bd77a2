"""The window operator for tumbling and sliding windows with any trigger: the general algorithm, batch by batch.

For each window, everything that is the same for all elements of a batch is determined once: whether the window is late,
its panes and its cleanup timers. The trigger is asked about every element. But if it certainly only sets timers, the
elements of a window are added together, and the trigger is asked once for each of their keys.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def _event_time(timestamp: int | None) -> int:
    return MIN_LONG_VALUE if timestamp is None else timestamp


class _OpenWindow:
    """A window while a batch is added to it, with its panes by key."""

    def __init__(self, window: Window, table: StateTable, cleanup: TimerQueue, cleanup_time: int) -> None:
        self.window = window
        self.keys: list[Any] = []
        self.values: list[Any] = []
        """The elements of the batch that are added together, and their keys."""
        self._table = table
        self._cleanup = cleanup
        self._cleanup_time = cleanup_time
        self.written: list[Any] = []
        self.new: list[Any] = []
        self.reopen()
        self.find_cleanup_timers()

    def reopen(self) -> None:
        """Open the window's panes again after the table was used in another way."""
        self.panes = self._table.open_namespace(self.window)

    def close(self) -> None:
        """Note what was written. To be called before the table is used in another way, and after the batch."""
        if self.written:
            self._table.note_all_written(self.window, self.written, self.new)
            self.written, self.new = [], []
        self._table.close_namespace(self.window)

    def find_cleanup_timers(self) -> None:
        self.waiting: Any = self._cleanup.keys_at(self._cleanup_time, self.window)
        """The keys that have a cleanup timer already."""


class _Slot(NamedTuple):
    """A span of time whose elements belong to the same windows, and those of the windows that are not late."""

    start: int
    end: int
    open: list[_OpenWindow]


class TriggeredWindowOperator(WindowOperator):
    """Runs tumbling and sliding windows with triggers other than their default one."""

    def open(self) -> None:
        super().open()
        self._table = cast(PlainPanes, self.panes).table
        self._cleanup = self.timers.event_time if self.is_event_time else self.timers.processing_time
        self._asks_once = self.context.inlines_functions and only_sets_timers(self.trigger)

    @cached_property
    def _slots(self) -> Slots:
        """Made when the first elements come: only then does the assigner know its offset."""
        return Slots(self.assigner)

    def process_elements(self, batch: Batch) -> None:
        opened: dict[Window, _OpenWindow] = {}
        if self._asks_once:
            self._deal(batch, opened)
            for into in opened.values():
                self._add_all(into)
        else:
            self._add_one_by_one(batch, opened)
            for into in opened.values():
                into.close()

    def _deal(self, batch: Batch, opened: dict[Window, _OpenWindow]) -> None:
        """Divide the elements among their windows."""
        keys, values = self.keys_of(batch), batch.values
        timestamps = batch.timestamps or [None] * len(values)
        at = 0
        while at < len(values):
            self.backend.current_key = keys[at]
            slot = self._slot_of(values[at], _event_time(timestamps[at]), opened)
            begun, at = at, self._end_of_run(slot, timestamps, at)
            run = slice(begun, at)
            for number, into in enumerate(slot.open):
                into.keys.extend(keys[run])
                # Each window gets its own copies.
                into.values.extend(map(self.context.copied, values[run]) if number else values[run])
            if not slot.open:
                self._skip_late(keys[run], values[run], timestamps[run])

    def _end_of_run(self, slot: _Slot, timestamps: Sequence[int | None], begun: int) -> int:
        """The position of the next element that is not in `slot`."""
        if not self.is_event_time:
            return len(timestamps)
        start, end = slot.start, slot.end
        for at in range(begun, len(timestamps)):
            if not start <= _event_time(timestamps[at]) < end:
                return at
        return len(timestamps)

    def _skip_late(self, keys: list[Any], values: list[Any], timestamps: Sequence[int | None]) -> None:
        for key, value, timestamp in zip(keys, values, timestamps, strict=True):
            self.backend.current_key = key
            if self.is_element_late(_event_time(timestamp)):
                self.skip_late(value, timestamp)

    def _add_all(self, into: _OpenWindow) -> None:
        into.new = self.accumulation.add_all(into.panes, into.keys, into.values)
        into.written = into.keys
        into.close()
        context = self.pane_context.at(into.window)
        # It makes no difference to the trigger about which element of a key it is asked, nor which timestamp that has.
        for key, value in dict(zip(into.keys, into.values, strict=True)).items():
            self.backend.current_key = key
            self.trigger.on_element(value, MIN_LONG_VALUE, into.window, context)
            if key not in into.waiting:
                self.register_cleanup_timer(into.window)
                into.find_cleanup_timers()

    def _add_one_by_one(self, batch: Batch, opened: dict[Window, _OpenWindow]) -> None:
        timestamps = batch.timestamps or [None] * len(batch.values)
        backend, added = self.backend, self.accumulation.added
        on_element, context, unchanged = self.trigger.on_element, self.pane_context, TriggerResult.CONTINUE
        start = end = 0
        windows: list[_OpenWindow] = []
        for key, value, timestamp in zip(self.keys_of(batch), batch.values, timestamps, strict=True):
            backend.current_key = key
            event_time = _event_time(timestamp)
            if not start <= event_time < end:
                start, end, windows = self._slot_of(value, event_time, opened)
            if not windows and self.is_element_late(event_time):
                self.skip_late(value, timestamp)
            for number, into in enumerate(windows):
                if number:
                    value = self.context.copied(value)  # Each window gets its own copy.
                panes = into.panes
                held = panes.get(key)
                if held is None and key not in panes:
                    into.new.append(key)
                panes[key] = added(held, value, timestamp)
                into.written.append(key)
                result = on_element(value, event_time, into.window, context.at(into.window))
                if result is not unchanged:
                    into.close()
                    self.settle(into.window, result)
                    into.reopen()
                if key not in into.waiting:
                    self.register_cleanup_timer(into.window)
                    into.find_cleanup_timers()

    def _slot_of(self, value: Any, event_time: int, opened: dict[Window, _OpenWindow]) -> _Slot:
        """The slot of an element at `event_time`, with its windows, which are opened if need be.

        In processing time, all elements of a batch are in the same slot.
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
