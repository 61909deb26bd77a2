"""Timers of one operator: (timestamp, key, namespace) in event time and in processing time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Any

from penstock.common.constants import MIN_LONG_VALUE
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import StateTable

OnTimer = Callable[[int, Any, Hashable], None]
"""Called with timestamp, key and namespace; the backend's current key is set."""


class TimerQueue:
    """The timers of one time domain, kept in a state table so that they are saved and restored like any state.

    The table's namespace is (timestamp, namespace): all keys that wait for the end of the same window share one
    entry of the heap.
    """

    def __init__(self, table: StateTable) -> None:
        self._table = table
        self._heap: list[tuple[int, int, Hashable]] = []
        self._sequence = 0

    def add(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        bucket = (timestamp, namespace)
        keys = self._table.entries.get(bucket)
        if keys is None:
            self._push(bucket)
            self._table.entries[bucket] = {key: True}
        elif key in keys:
            return
        else:
            keys[key] = True
        self._table.changed.written(bucket, key, False)

    def remove(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        # The bucket stays in the heap; an empty one is passed over when its time comes.
        self._table.remove((timestamp, namespace), key)

    def contains(self, timestamp: int, key: Any, namespace: Hashable) -> bool:
        return self._table.contains((timestamp, namespace), key)

    def next_timestamp(self) -> int | None:
        while self._heap:
            timestamp, _, namespace = self._heap[0]
            if (timestamp, namespace) in self._table.entries:
                return timestamp
            heapq.heappop(self._heap)
        return None

    def fire_until(self, time: int, backend: KeyedStateBackend, on_timer: OnTimer) -> int:
        """Fire every timer at or before `time`, in the order of their timestamps, also those set on the way.

        Returns how many fired.
        """
        fired = 0
        entries, changed = self._table.entries, self._table.changed
        while self._heap and self._heap[0][0] <= time:
            timestamp, _, namespace = heapq.heappop(self._heap)
            bucket = (timestamp, namespace)
            for key in list(entries.get(bucket, ())):
                # Asked anew each time: a timer that fires may delete or set others of this bucket.
                waiting = entries.get(bucket)
                if waiting is None or waiting.pop(key, None) is None:
                    continue
                if not waiting:
                    del entries[bucket]
                changed.removed(bucket, key)
                backend.current_key = key
                on_timer(timestamp, key, namespace)
                fired += 1
            if bucket in entries:
                # A key of this bucket set the same timer again while it fired.
                self._push(bucket)
        return fired

    def take_until(self, time: int) -> tuple[list[int], list[Any]]:
        """Remove every timer at or before `time`, in the order in which they fire; their timestamps and keys.

        For those who set and delete no timers meanwhile.
        """
        timestamps: list[int] = []
        keys: list[Any] = []
        entries, changed = self._table.entries, self._table.changed
        while self._heap and self._heap[0][0] <= time:
            timestamp, _, namespace = heapq.heappop(self._heap)
            waiting = entries.pop((timestamp, namespace), None)
            if waiting is not None:
                changed.removed_all((timestamp, namespace), waiting)
                timestamps += [timestamp] * len(waiting)
                keys += waiting
        return timestamps, keys

    def restore(self) -> None:
        """Rebuild the heap after the table was loaded."""
        self._heap = [(timestamp, at, namespace) for at, (timestamp, namespace) in enumerate(self._buckets())]
        self._sequence = len(self._heap)
        heapq.heapify(self._heap)

    def _buckets(self) -> list[Any]:
        return list(self._table.entries)

    def _push(self, bucket: tuple[int, Hashable]) -> None:
        if len(self._heap) > 64 + 2 * len(self._table.entries):
            # Mostly buckets whose timers were deleted (a session window deletes one for every extension).
            self.restore()
        self._sequence += 1
        heapq.heappush(self._heap, (bucket[0], self._sequence, bucket[1]))


class InternalTimerService:
    """Registers, deletes and fires the timers of one operator for its current key."""

    def __init__(
        self,
        name: str,
        backend: KeyedStateBackend,
        on_event_time: OnTimer,
        on_processing_time: OnTimer,
        clock: Callable[[], int],
    ) -> None:
        self._backend = backend
        self._on_event_time = on_event_time
        self._on_processing_time = on_processing_time
        self._clock = clock
        self.event_time = TimerQueue(backend.table(f"{TIMER_TABLE_PREFIX}{name}/event-time"))
        self.processing_time = TimerQueue(backend.table(f"{TIMER_TABLE_PREFIX}{name}/processing-time"))
        self.current_watermark = MIN_LONG_VALUE

    def current_processing_time(self) -> int:
        return self._clock()

    def register_event_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        self.event_time.add(timestamp, self._backend.key(), namespace)

    def delete_event_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        self.event_time.remove(timestamp, self._backend.key(), namespace)

    def register_processing_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        self.processing_time.add(timestamp, self._backend.key(), namespace)

    def delete_processing_time_timer(self, namespace: Hashable, timestamp: int) -> None:
        self.processing_time.remove(timestamp, self._backend.key(), namespace)

    def advance_watermark(self, watermark: int) -> int:
        """How many timers fired."""
        self.current_watermark = watermark
        return self.event_time.fire_until(watermark, self._backend, self._on_event_time)

    def advance_processing_time(self, now_ms: int) -> int:
        """How many timers fired."""
        return self.processing_time.fire_until(now_ms, self._backend, self._on_processing_time)

    def restore(self) -> None:
        self.event_time.restore()
        self.processing_time.restore()


TIMER_TABLE_PREFIX = "_timers/"
