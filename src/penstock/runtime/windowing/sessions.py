"""The fast window operator for session windows that fire at their end.

Nearly always a key has one open session, and an element begins it, falls into it or extends it. So while a batch is
processed, the current session of a key is kept apart. It goes back to the key's panes, and its timer is moved, when the
key begins another session or the batch ends. All other elements (those that join sessions, and those of sessions that
have fired and are kept for late elements) are processed as in the general operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.datastream.window import TimeWindow
from penstock.datastream.windowing.windows import ended_until, touching
from penstock.runtime.batch import Batch
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable
from penstock.runtime.timers import OnTimer, TimerQueue, WindowKeyTimerQueue
from penstock.runtime.windowing.panes import MergingPanes
from penstock.runtime.windowing.quick import QuickWindowOperator

_window_of: Callable[[tuple[int, int]], TimeWindow] = partial(tuple.__new__, TimeWindow)
"""Makes a TimeWindow of a (start, end) pair without calling its constructor, which is slower."""


_Current = list[Any]
"""A session that is kept apart: start, end, contents, and the session it was among the panes, or None if it is new."""


_Due = list[tuple[int, tuple[Any, TimeWindow]]]
"""Timers that fire: the time, and (key, session)."""


class _SessionTimers(WindowKeyTimerQueue):
    """Timers of sessions. They fire together, because processing them neither sets nor deletes timers."""

    def __init__(self, table: StateTable, on_timers: Callable[[_Due], None]) -> None:
        super().__init__(table)
        self._on_timers = on_timers

    def fire_until(self, time: int, backend: KeyedStateBackend, on_timer: OnTimer) -> int:
        timestamps, keys = self.take_until(time)
        if keys:
            self._on_timers(list(zip(timestamps, keys, strict=True)))
        return len(keys)


class SessionWindowOperator(QuickWindowOperator):
    """Runs session windows with their own trigger."""

    takes_parts = False
    """True if the operator receives parts of sessions, `(end, value)`, which `penstock.runtime.combining` has made."""

    def open(self) -> None:
        super().open()
        self._table = cast(MergingPanes, self.panes).table

    # --- elements --------------------------------------------------------------------------------------------------

    def process_elements(self, batch: Batch) -> None:
        self._ends: list[int] | None = None
        if self.takes_parts:
            self._ends = [end for end, _ in batch.values]
            batch = batch._replace(values=[value for _, value in batch.values])
        super().process_elements(batch)

    def process_quickly(self, batch: Batch) -> None:
        starts, ends = self._sessions_of(batch)
        keys, added = self.keys_of(batch), self.accumulation.added
        all_panes = self._table.open_namespace(VOID_NAMESPACE, keys)
        # A session that ends later than this has not fired, and adding an element does not make it fire.
        fired_until = ended_until(self.timers.current_watermark) if self.is_event_time else MIN_LONG_VALUE
        current: dict[Any, _Current] = {}
        for key, value, start, end in zip(keys, batch.values, starts, ends, strict=True):
            session = current.get(key)
            if session is not None:
                panes = all_panes.get(key)
                if not panes or not any(touching(start, end, other) for other in panes):
                    if start <= session[1] and session[0] <= end:  # The rule of `touching`, inlined for speed.
                        if start < session[0]:
                            session[0] = start
                        if end > session[1]:
                            session[1] = end
                        session[2] = added(session[2], value, None)
                        continue
                    if end > fired_until:
                        self._put_back({key: session}, all_panes)
                        current[key] = [start, end, added(None, value, None), None]
                        continue
                self._put_back({key: current.pop(key)}, all_panes)
            elif key not in all_panes and end > fired_until:
                current[key] = [start, end, added(None, value, None), None]
                continue
            else:
                found = self._find(all_panes.get(key), start, end, fired_until)
                if found is not None:
                    found[2] = added(found[2], value, None)
                    current[key] = found
                    continue
            self.backend.current_key = key
            time = start if self.is_event_time else None
            self.add_to_windows([_window_of((start, end))], value, time, MIN_LONG_VALUE if time is None else time)
            all_panes = self._table.open_namespace(VOID_NAMESPACE, keys)
        self._put_back(current, all_panes)
        self._table.close_namespace(VOID_NAMESPACE)

    def _find(self, panes: dict[TimeWindow, Any] | None, start: int, end: int, fired_until: int) -> _Current | None:
        """The session from `start` to `end`, merged with the one that it touches. That one is removed from the panes.

        None if the general operator must do it: the session touches several others, or the result has fired already.
        """
        if panes is None:
            return [start, end, None, None] if end > fired_until else None
        met = [session for session in panes if touching(start, end, session)]
        if not met:
            return [start, end, None, None] if end > fired_until else None
        since, until = met[0]
        if len(met) > 1 or max(until, end) <= fired_until:
            return None
        return [min(since, start), max(until, end), panes.pop(met[0]), met[0]]

    def _put_back(self, apart: dict[Any, _Current], all_panes: dict[Any, dict[TimeWindow, Any]]) -> None:
        """Put sessions that were kept apart back into the panes of their keys, and move their timers."""
        add, remove, written = self.queue.add, self.queue.remove, self._table.note_written
        has_one_timer = not self.kept_ms
        for key, (start, end, held, before) in apart.items():
            session = _window_of((start, end))
            panes = all_panes.get(key)
            if panes is None:
                all_panes[key] = {session: held}
            else:
                panes[session] = held
            written(VOID_NAMESPACE, key, panes is not None)
            if session == before:
                continue
            if has_one_timer:
                if before is not None:
                    remove(before[1] - 1, key, before)
                add(end - 1, key, session)
                continue
            if before is not None:
                for time in self.timer_times(before):
                    remove(time, key, before)
            for time in self.timer_times(session):
                add(time, key, session)

    def _sessions_of(self, batch: Batch) -> tuple[Sequence[int], Sequence[int]]:
        """Where the session of each element would begin and end without other elements."""
        gap = getattr(self.assigner, "session_gap", None)
        if self.is_event_time and gap is not None and MIN_LONG_VALUE not in cast(Any, batch.timestamps):
            starts = cast("Sequence[int]", batch.timestamps)
            ends = self._ends or [start + gap for start in starts]
            if max(ends) > MAX_LONG_VALUE:  # As `within_time` does.
                ends = [min(end, MAX_LONG_VALUE) for end in ends]
            return starts, ends
        assign, context = self.assigner.assign_windows, self.assigner_context
        timestamps = cast("Sequence[int]", batch.timestamps) if self.is_event_time else [0] * len(batch.values)
        windows = []
        for value, timestamp in zip(batch.values, timestamps, strict=True):
            windows += assign(value, timestamp, context)
        return [window.start for window in windows], [window.end for window in windows]

    # --- time ------------------------------------------------------------------------------------------------------

    def make_queue(self, table: StateTable) -> TimerQueue:
        return _SessionTimers(table, self._on_timers)

    def _on_timers(self, timers: _Due) -> None:
        all_panes = self._table.open_namespace(VOID_NAMESPACE, (key for _, (key, _) in timers))
        if self.evaluation.function is None and not self.kept_ms:
            self._emit_last(timers, all_panes)
        else:
            self._evaluate(timers, all_panes)
        self._table.close_namespace(VOID_NAMESPACE)

    def _emit_last(self, timers: _Due, all_panes: dict[Any, dict[TimeWindow, Any]]) -> None:
        """Emit the contents of sessions that end, without a window function, and drop the sessions."""
        elements_of = self.accumulation.last_elements
        emitted: list[Any] = []
        times: list[int] = []
        for time, (key, session) in timers:
            panes = all_panes.get(key)
            if panes is None or session not in panes:
                continue
            held = panes[session]
            self._drop_session(session, key, panes, all_panes)
            elements = None if held is None else elements_of(held)
            if elements:
                emitted += elements
                times += [time] * len(elements)
        self.output.collect_batch(emitted, times)

    def _drop_session(
        self, session: TimeWindow, key: Any, panes: dict[TimeWindow, Any], all_panes: dict[Any, dict[TimeWindow, Any]]
    ) -> None:
        del panes[session]
        if panes:
            self._table.note_written(VOID_NAMESPACE, key, True)
        else:
            del all_panes[key]
            self._table.note_removed(VOID_NAMESPACE, key)

    def _evaluate(self, timers: _Due, all_panes: dict[Any, dict[TimeWindow, Any]]) -> None:
        for time, (key, session) in timers:
            fires, is_last = time == session[1] - 1, time == session[1] - 1 + self.kept_ms
            panes = all_panes.get(key)
            if panes is None or session not in panes:
                continue
            self.backend.current_key = key
            held = panes[session]
            if fires and held is not None:
                self._fire_session(session, held, is_last)
            if is_last:
                self._drop_session(session, key, panes, all_panes)
                self.evaluation.clear(session)

    def _fire_session(self, session: TimeWindow, held: Any, is_last: bool) -> None:
        elements = self.accumulation.last_elements(held) if is_last else self.accumulation.elements(held)
        if elements is not None:
            self.emit(session, elements)
