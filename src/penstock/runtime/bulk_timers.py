"""Timers that are set and fired for many keys of one namespace at a time; a window is such a namespace.

They are stored as timers that are set one by one are, so each kind of queue can continue from the state of the other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Any

from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import StateTable
from penstock.runtime.timers import OnTimer, TimerQueue

OnTimers = Callable[[int, Hashable, list[Any]], None]
"""Called with the time, the namespace, and the keys whose timers fire."""


class BulkTimerQueue(TimerQueue):
    """A timer queue that fires all keys of one time and namespace at once."""

    def __init__(self, table: StateTable, on_timers: OnTimers) -> None:
        super().__init__(table)
        self._on_timers = on_timers

    def add_all(self, time: int, keys: list[Any], namespace: Hashable) -> None:
        bucket = (time, namespace)
        waiting = self._table.entries_of(bucket)
        if waiting is None:
            self._push(bucket)
            waiting, new = self._table.open_namespace(bucket), keys
        else:
            new = [key for key in keys if key not in waiting]
        if new:
            waiting.update(dict.fromkeys(new, True))
            self._table.note_all_written(bucket, (), new)

    def fire_until(self, time: int, backend: KeyedStateBackend, on_timer: OnTimer) -> int:
        fired = 0
        while self._heap and self._heap[0][0] <= time:
            due, _, namespace = heapq.heappop(self._heap)
            keys = self._table.remove_namespace((due, namespace))
            if keys:
                self._on_timers(due, namespace, keys)
                fired += len(keys)
        return fired
