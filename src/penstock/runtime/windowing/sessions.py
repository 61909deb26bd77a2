"""The quick window operator for session windows that fire at their end.

Nearly always a key has one open session, and an element begins it, falls into it or lengthens it. That takes a few
steps per element; timers are moved once per key and batch, when it is known where the session ends. All else (a second
session of the key, sessions that join, sessions that have fired and wait for late elements) takes the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from penstock.common.constants import MIN_LONG_VALUE
from penstock.datastream.window import TimeWindow, Window
from penstock.runtime.batch import Batch
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.runtime.windowing.panes import MergingPanes
from penstock.runtime.windowing.quick import QuickWindowOperator

_window_of: Callable[[tuple[int, int]], TimeWindow] = partial(tuple.__new__, TimeWindow)
"""A TimeWindow of a (start, end) pair, without the detour by its constructor."""


class SessionWindowOperator(QuickWindowOperator):
    """Runs session windows with their own trigger."""

    def open(self) -> None:
        super().open()
        self._table = cast(MergingPanes, self.panes).table

    # --- elements --------------------------------------------------------------------------------------------------

    def process_quickly(self, batch: Batch) -> None:
        starts, ends = self._sessions_of(batch)
        all_panes = self._panes_by_key()
        changed, added = self._table.changed[VOID_NAMESPACE], self.accumulation.added
        # A session that ends later than this has not fired, and does not fire with its next element either.
        fired_until = self.timers.current_watermark + 1 if self.is_event_time else MIN_LONG_VALUE
        # Keys whose sessions began or moved in this batch, and the sessions that their timers still stand for.
        moved: dict[Any, list[TimeWindow]] = {}
        for key, value, start, end in zip(self.keys_of(batch), batch.values, starts, ends, strict=True):
            panes = all_panes.get(key)
            if panes is None:
                if end > fired_until:
                    all_panes[key] = {_window_of((start, end)): added(None, value, None)}
                    changed.add(key)
                    moved.setdefault(key, [])
                    continue
            else:
                met = [session for session in panes if start <= session[1] and session[0] <= end]
                if len(met) < 2:
                    since, until = met[0] if met else (start, end)
                    if until > fired_until or end > fired_until:
                        changed.add(key)
                        if met and since <= start and end <= until:
                            panes[met[0]] = added(panes[met[0]], value, None)
                            continue
                        if key not in moved:
                            moved[key] = list(panes)
                        held = panes.pop(met[0]) if met else None
                        panes[_window_of((min(since, start), max(until, end)))] = added(held, value, None)
                        continue
            if key in moved:
                self._move_timers(key, moved.pop(key))
            self.backend.current_key = key
            self.process_element(value, start if self.is_event_time else None)
            all_panes = self._panes_by_key()
        for key, before in moved.items():
            self._move_timers(key, before)
        if not all_panes:
            del self._table.entries[VOID_NAMESPACE]

    def _sessions_of(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Where the session of each element would begin and end if it were alone."""
        gap = getattr(self.assigner, "session_gap", None)
        if self.is_event_time and gap is not None and MIN_LONG_VALUE not in cast(Any, batch.timestamps):
            starts = cast("Sequence[int]", batch.timestamps)
            return starts, [start + gap for start in starts]
        assign, context = self.assigner.assign_windows, self.assigner_context
        timestamps = cast("Sequence[int]", batch.timestamps) if self.is_event_time else [0] * len(batch.values)
        windows = []
        for value, timestamp in zip(batch.values, timestamps, strict=True):
            windows += assign(value, timestamp, context)
        return [window.start for window in windows], [window.end for window in windows]

    def _panes_by_key(self) -> dict[Any, dict[TimeWindow, Any]]:
        panes: dict[Any, dict[TimeWindow, Any]] = self._table.entries.setdefault(VOID_NAMESPACE, {})
        return panes

    def _move_timers(self, key: Any, before: list[TimeWindow]) -> None:
        """Set the timers of a key's sessions, in place of those of the sessions it had `before`."""
        sessions = self._table.entries[VOID_NAMESPACE][key]
        for session in before:
            if session not in sessions:
                for time in self.timer_times(session):
                    self.queue.remove(time, key, session)
        for session in sessions:
            if session not in before:
                for time in self.timer_times(session):
                    self.queue.add(time, key, session)

    # --- time ------------------------------------------------------------------------------------------------------

    def on_window_timers(self, time: int, window: Window, keys: list[Any]) -> None:
        all_panes, session = self._panes_by_key(), cast(TimeWindow, window)
        fires, is_last = time == session[1] - 1, time == session[1] - 1 + self.kept_ms
        for key in keys:
            panes = all_panes.get(key)
            if panes is None or session not in panes:
                continue
            self.backend.current_key = key
            held = panes[session]
            if fires and held is not None:
                self._fire_session(session, held, is_last)
            if is_last:
                del panes[session]
                if not panes:
                    del all_panes[key]
                self._table.changed[VOID_NAMESPACE].add(key)
                self.evaluation.clear(session)
        if not all_panes:
            del self._table.entries[VOID_NAMESPACE]

    def _fire_session(self, session: TimeWindow, held: Any, is_last: bool) -> None:
        elements = self.accumulation.last_elements(held) if is_last else self.accumulation.elements(held)
        if elements is None:
            return
        if self.evaluation.function is not None:
            self.emit(session, elements)
        else:
            for element in elements:
                self.output.collect(element, session[1] - 1)
