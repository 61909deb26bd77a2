"""The fast window operator for tumbling and sliding windows that fire at their end, which most jobs use.

The elements of a batch are first divided among their windows, then added window by window, in order of arrival. Timers
are set together for all keys that are new to a window, and a window fires for all its keys together. Elements of
windows that have fired already, and are kept for late elements, are processed as in the general operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

from penstock.common.constants import MIN_LONG_VALUE
from penstock.datastream.window import Window
from penstock.datastream.windowing.windows import has_passed
from penstock.runtime.batch import Batch
from penstock.runtime.bulk_timers import BulkTimerQueue
from penstock.runtime.element_copies import all_copied, are_immutable, as_it_is
from penstock.runtime.state.table import StateTable
from penstock.runtime.windowing.panes import PlainPanes
from penstock.runtime.windowing.quick import QuickWindowOperator
from penstock.runtime.windowing.slots import Slots

_NO_PANE = object()


class _Share(NamedTuple):
    """The part of a batch that belongs to one open window."""

    keys: list[Any]
    values: list[Any]


class _Slot(NamedTuple):
    """A slot and its windows: those that have not fired, and those that have but are kept for late elements."""

    start: int
    end: int
    open: list[_Share]
    fired: list[Window]


class AlignedWindowOperator(QuickWindowOperator):
    """Runs tumbling and sliding windows with their own trigger."""

    def open(self) -> None:
        super().open()
        self._table = cast(PlainPanes, self.panes).table

    @cached_property
    def _slots(self) -> Slots:
        """Made when the first elements come: only then does the assigner know its offset."""
        return Slots(self.assigner)

    def make_queue(self, table: StateTable) -> BulkTimerQueue:
        self._timers = BulkTimerQueue(table, self.on_window_timers)
        return self._timers

    # --- elements --------------------------------------------------------------------------------------------------

    def process_quickly(self, batch: Batch) -> None:
        keys = self.keys_of(batch)
        if self.is_event_time:
            self._deal(keys, batch.values, cast("Sequence[int]", batch.timestamps))
        else:
            copied = self._copying(batch.values)
            for window in self.assigner.assign_windows(None, MIN_LONG_VALUE, self.assigner_context):
                self._add(window, keys, copied(batch.values))

    def _copying(self, values: list[Any]) -> Callable[[list[Any]], list[Any]]:
        """A function that copies elements for one window, if windows share elements and that could do harm."""
        assigner = self.assigner
        if assigner.slide >= assigner.size or self.context.copied is as_it_is or are_immutable(values):
            return as_it_is
        return all_copied

    def _deal(self, keys: list[Any], values: list[Any], timestamps: Sequence[int]) -> None:
        """Divide the elements among their windows, then add each window's share."""
        shares: dict[Window, _Share] = {}
        for part, slot in self._runs(values, timestamps, shares):
            run_keys, run_values = keys[part], values[part]
            for share in slot.open:
                share.keys.extend(run_keys)
                share.values.extend(run_values)
            if slot.fired or not slot.open:
                for key, value, timestamp in zip(run_keys, run_values, timestamps[part], strict=True):
                    self.backend.current_key = key
                    self._add_late(value, timestamp, slot.fired, not slot.open)
        copied = self._copying(values) if len(shares) > 1 else as_it_is
        for window, share in shares.items():
            self._add(window, share.keys, copied(share.values))

    def _runs(
        self, values: list[Any], timestamps: Sequence[int], shares: dict[Window, _Share]
    ) -> Iterator[tuple[slice, _Slot]]:
        """Runs of consecutive elements in the same slot, with the slot. Nearly all batches have few runs."""
        slots: dict[int, _Slot] = {}
        slot = self._slot_of(values[0], timestamps[0], slots, shares)
        begun = 0
        start, end = slot.start, slot.end
        if not start <= min(timestamps) <= max(timestamps) < end:
            for at, timestamp in enumerate(timestamps):
                if not start <= timestamp < end:
                    yield slice(begun, at), slot
                    slot, begun = self._slot_of(values[at], timestamp, slots, shares), at
                    start, end = slot.start, slot.end
        yield slice(begun, len(values)), slot

    def _slot_of(self, value: Any, timestamp: int, slots: dict[int, _Slot], shares: dict[Window, _Share]) -> _Slot:
        """The slot of `timestamp`, with its windows. `shares` gets an entry for each of them that has not fired."""
        start, end = self._slots.at(timestamp)
        slot = slots.get(start)
        if slot is None:
            windows = self.assigner.assign_windows(value, timestamp, self.assigner_context)
            live = [window for window in windows if not self.is_window_late(window)]
            fired = [window for window in live if has_passed(window.max_timestamp(), self.timers.current_watermark)]
            mine = [shares.setdefault(window, _Share([], [])) for window in live if window not in fired]
            slot = slots[start] = _Slot(start, end, mine, fired)
        return slot

    def _add_late(self, value: Any, timestamp: int, fired: list[Window], is_nowhere_open: bool) -> None:
        """Add an element of the current key to those of its windows that have fired, or skip it if it is late."""
        for window in fired:
            self.add_to_pane(window, self.context.copied(value), timestamp, timestamp)
        if is_nowhere_open and not fired and self.is_element_late(timestamp):
            self.skip_late(value, timestamp)

    def _add(self, window: Window, keys: list[Any], values: list[Any]) -> None:
        """Add elements to their panes of a window that has not fired, and set the timers of new panes."""
        panes = self._table.open_namespace(window)  # Not closed below: after this the window has entries.
        opened = self.accumulation.add_all(panes, keys, values)
        self._table.note_all_written(window, keys, opened)
        if opened:
            for time in self.timer_times(window):
                self._timers.add_all(time, opened, window)

    # --- time ------------------------------------------------------------------------------------------------------

    def on_window_timers(self, time: int, window: Any, keys: list[Any]) -> None:
        """The timers of `keys` for `window` fire: at the end of the window, at its cleanup time, or both in one."""
        fires, is_last = time == window.max_timestamp(), time == self.cleanup_time(window)
        panes = self._table.entries_of(window) or {}
        if self.evaluation.function is not None:
            self._evaluate_all(window, panes, keys, fires, is_last)
        elif fires:
            results = self.accumulation.all_elements(panes, keys, is_last)
            self.output.collect_batch(results, [window.max_timestamp()] * len(results))
        if is_last:
            self._drop_all(window, panes, keys)

    def _evaluate_all(self, window: Window, panes: dict[Any, Any], keys: list[Any], fires: bool, is_last: bool) -> None:
        elements_of = self.accumulation.last_elements if is_last else self.accumulation.elements
        backend, emit, clears = self.backend, self.emit, is_last and self.evaluation.has_clear
        for key in keys:
            backend.current_key = key
            held = panes.get(key) if fires else None
            if held is not None:
                elements = elements_of(held)
                if elements is not None:
                    emit(window, elements)
            if clears:
                self.evaluation.clear(window)

    def _drop_all(self, window: Window, panes: dict[Any, Any], keys: list[Any]) -> None:
        gone = [key for key in keys if panes.pop(key, _NO_PANE) is not _NO_PANE]
        self._table.note_all_removed(window, gone)
        self._table.close_namespace(window)
