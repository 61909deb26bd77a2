"""Timers set and fired for many keys of one window at a time.

They are the same timers, in the same table, as the general operator sets one by one: either can go on from the state
of the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Any, cast

from penstock.datastream.window import Window
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import StateTable
from penstock.runtime.timers import OnTimer, TimerQueue

OnWindowTimers = Callable[[int, Window, list[Any]], None]
"""Called with the time, the window, and the keys whose timers for it fire."""


class BulkTimerQueue(TimerQueue):
    """A timer queue that hands out all keys of one time and window at once."""

    def __init__(self, table: StateTable, on_window_timers: OnWindowTimers) -> None:
        super().__init__(table)
        self._on_window_timers = on_window_timers

    def add_all(self, time: int, keys: list[Any], window: Hashable) -> None:
        bucket = (time, window)
        waiting = self._table.entries.get(bucket)
        new = keys if waiting is None else [key for key in keys if key not in waiting]
        if waiting is None:
            self._push(bucket)
            self._table.entries[bucket] = dict.fromkeys(keys, True)
        else:
            waiting.update(dict.fromkeys(new, True))
        self._table.changed.written_all(bucket, (), new)

    def fire_until(self, time: int, backend: KeyedStateBackend, on_timer: OnTimer) -> int:
        fired = 0
        while self._heap and self._heap[0][0] <= time:
            due, _, window = heapq.heappop(self._heap)
            waiting = self._table.entries.get((due, window))
            if waiting is not None:
                keys = list(waiting)
                del self._table.entries[(due, window)]
                self._table.changed.removed_all((due, window), keys)
                self._on_window_timers(due, cast(Window, window), keys)
                fired += len(keys)
        return fired
