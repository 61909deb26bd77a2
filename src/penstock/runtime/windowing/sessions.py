"""The quick window operator for session windows that fire at their end.

Nearly always a key has one open session, and an element begins it, falls into it or lengthens it. So while a batch is
processed, the session that a key is in is kept apart; it goes back to the key's panes, and its timer is moved, when the
key begins another one or the batch ends. All else (sessions that join, sessions that have fired and wait for late
elements) takes the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from penstock.common.constants import MIN_LONG_VALUE
from penstock.datastream.window import TimeWindow
from penstock.datastream.windowing.windows import ended_until, touching
from penstock.runtime.batch import Batch
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable
from penstock.runtime.timers import OnTimer, TimerQueue, WindowKeyTimerQueue
from penstock.runtime.windowing.accumulation import Accumulation, ReducingParts
from penstock.runtime.windowing.panes import MergingPanes
from penstock.runtime.windowing.quick import QuickWindowOperator

_window_of: Callable[[tuple[int, int]], TimeWindow] = partial(tuple.__new__, TimeWindow)
"""A TimeWindow of a (start, end) pair, without the detour by its constructor."""


_Current = list[Any]
"""A session that is kept apart: start, end, what it holds, and the session among the panes that it was before."""


_Due = list[tuple[int, tuple[Any, TimeWindow]]]
"""Timers that fire: time, key and session."""


class _SessionTimers(WindowKeyTimerQueue):
    """Timers of sessions, handed out together: what happens when they fire neither sets nor deletes any."""

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
    """True if parts of sessions come, `(end, value)`, made of elements by `penstock.runtime.combining`."""

    def build_accumulation(self) -> Accumulation:
        if not self.takes_parts or self.takes_accumulators:
            return super().build_accumulation()
        return ReducingParts(self.description.reduce_function, self.context.copied, self.context.inlines_functions)

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
        # A session that ends later than this has not fired, and does not fire with its next element either.
        fired_until = ended_until(self.timers.current_watermark) if self.is_event_time else MIN_LONG_VALUE
        current: dict[Any, _Current] = {}
        for key, value, start, end in zip(keys, batch.values, starts, ends, strict=True):
            session = current.get(key)
            if session is not None:
                panes = all_panes.get(key)
                if not panes or not any(touching(start, end, other) for other in panes):
                    if start <= session[1] and session[0] <= end:  # They are `touching`: not called, for speed.
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
        """Take the session that a new one from `start` to `end` belongs to out of a key's panes; None: it is not easy.

        What is taken ends where both end, and may be new.
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
        """Have sessions that were kept apart among their keys' panes again, with their timers where they end now."""
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
        """Where the session of each element would begin and end if it were alone."""
        gap = getattr(self.assigner, "session_gap", None)
        if self.is_event_time and gap is not None and MIN_LONG_VALUE not in cast(Any, batch.timestamps):
            starts = cast("Sequence[int]", batch.timestamps)
            return starts, self._ends or [start + gap for start in starts]
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
        """Sessions end for good, and what they amount to is the result."""
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
