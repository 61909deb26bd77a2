"""Timers of one operator: (timestamp, key, namespace) in event time and in processing time."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Hashable
from itertools import repeat
from operator import length_hint
from typing import Any, Final

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.timestamps import whole_milliseconds
from penstock.runtime.nan_keys import is_same_key
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable

OnTimer = Callable[[int, Any, Hashable], None]
"""Called with timestamp, key and namespace; the backend's current key is set."""

_GIVER = "a function that sets or deletes a timer"


def time_of_timer(timestamp: Any) -> int:
    """A time that a user gave as whole milliseconds."""
    return whole_milliseconds(timestamp, _GIVER)


class TimerQueue:
    """The timers of one time domain, kept in a state table so that they are saved and restored like any state.

    The table's namespace is (timestamp, namespace), which is called a bucket here: all keys that wait for the end of
    the same window share one entry of the heap.
    """

    def __init__(self, table: StateTable) -> None:
        self._table = table
        self._heap: list[tuple[int, int, Hashable]] = []
        self._sequence = 0

    def add(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        if type(timestamp) is not int or not MIN_LONG_VALUE <= timestamp <= MAX_LONG_VALUE:
            timestamp = whole_milliseconds(timestamp, _GIVER)
        bucket = (timestamp, namespace)
        waiting = self._table.entries_of(bucket)
        if waiting is None:
            self._push(bucket)
        elif key in waiting:
            return
        self._table.put(bucket, key, True)

    def remove(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        if type(timestamp) is not int or not MIN_LONG_VALUE <= timestamp <= MAX_LONG_VALUE:
            timestamp = whole_milliseconds(timestamp, _GIVER)
        # The bucket stays in the heap. If it is empty when its time comes, it is skipped.
        self._table.remove((timestamp, namespace), key)

    def contains(self, timestamp: int, key: Any, namespace: Hashable) -> bool:
        return self._table.contains((timestamp, namespace), key)

    def keys_at(self, timestamp: int, namespace: Hashable) -> Any:
        """The keys with a timer at this time. Timers that are set and deleted later show in the same object.

        That ends when timers fire, or when the last of these keys is deleted.
        """
        return self._table.entries_of((timestamp, namespace)) or ()

    def next_timestamp(self) -> int | None:
        while self._heap:
            timestamp, _, namespace = self._heap[0]
            if self._table.has_namespace((timestamp, namespace)):
                return timestamp
            heapq.heappop(self._heap)
        return None

    def fire_until(self, time: int, backend: KeyedStateBackend, on_timer: OnTimer) -> int:
        """Fire every timer at or before `time` in the order of timestamps, including timers that are set meanwhile.

        Returns how many fired.
        """
        fired = 0
        while self._heap and self._heap[0][0] <= time:
            fired += self._fire_next(backend, on_timer)
        return fired

    def _fire_next(self, backend: KeyedStateBackend, on_timer: OnTimer) -> int:
        """Fire the bucket at the top of the heap."""
        fired = 0
        timestamp, _, namespace = heapq.heappop(self._heap)
        bucket = (timestamp, namespace)
        for key in self._table.keys(bucket):
            if self._table.remove(bucket, key):  # False if a timer that has just fired deleted it.
                backend.current_key = key
                on_timer(timestamp, key, namespace)
                fired += 1
        if self._table.has_namespace(bucket):
            # A key of this bucket set the same timer again while it fired.
            self._push(bucket)
        return fired

    def take_until(self, time: int) -> tuple[list[int], list[Any]]:
        """Remove every timer at or before `time`, in the order in which they fire; their timestamps and keys.

        Only for callers that set and delete no timers while they handle these.
        """
        timestamps: list[int] = []
        keys: list[Any] = []
        while self._heap and self._heap[0][0] <= time:
            timestamp, _, namespace = heapq.heappop(self._heap)
            waiting = self._table.remove_namespace((timestamp, namespace))
            timestamps += [timestamp] * len(waiting)
            keys += [self.key_of(key, namespace) for key in waiting]
        return timestamps, keys

    def key_of(self, key: Any, namespace: Hashable) -> Any:
        """The key in the form that `take_until` returns."""
        return key

    def restore(self) -> None:
        """Rebuild the heap after the table was loaded."""
        buckets = enumerate(self._table.namespaces())
        self._heap = [(timestamp, at, namespace) for at, (timestamp, namespace) in buckets]
        self._sequence = len(self._heap)
        heapq.heapify(self._heap)

    def _push(self, bucket: tuple[int, Hashable]) -> None:
        if len(self._heap) > 64 + 2 * self._table.namespace_count():
            # Mostly buckets whose timers were deleted (a session window deletes one for every extension).
            self.restore()
        self._sequence += 1
        heapq.heappush(self._heap, (bucket[0], self._sequence, bucket[1]))


class _Several(dict[Any, bool]):
    """The keys of several new timers with the same timestamp."""


_NO_TIMER: Final = object()


class TakenTimers:
    """Timers that fire in one loop, which runs over `keys_in_turn`. That may end early (`cut`)."""

    def __init__(self, timestamps: list[int], keys: list[Any]) -> None:
        self.timestamps = timestamps
        self.keys = keys
        self.keys_in_turn = iter(keys)

    def cut(self) -> tuple[list[int], list[Any]]:
        """End the iteration after the current timer; the timers after it."""
        at = len(self.keys) - length_hint(self.keys_in_turn)
        rest = self.timestamps[at:], self.keys[at:]
        del self.timestamps[at:], self.keys[at:]
        return rest


class KeyTimerQueue(TimerQueue):
    """For timers at many different times, each with few keys, and all with the namespace `VOID_NAMESPACE`.

    Most timers are gone before a snapshot is taken. So a new timer is put into the table only when the table is read as
    a whole. Until then it is an entry of a dictionary, and its timestamp an entry of a heap. New timers and those of
    the table fire together, in the order of timestamps.
    """

    def __init__(self, table: StateTable) -> None:
        super().__init__(table)
        self._new: dict[int, Any] = {}
        """The new timers, which are not in the table. By timestamp: the key, or `_Several` keys."""
        self._times: list[int] = []
        """A heap of the timestamps of new timers. Some of the timers may have been deleted."""
        self._newest_times: list[int] = []
        """Timestamps of new timers that are not in the heap yet."""
        self._gathered: tuple[list[int], list[Any]] = [], []
        """Timestamps and keys of timers that a generated loop has set. They are added before anything else happens."""
        self._taken: TakenTimers | None = None
        table.settle = self._settle

    def gathering(self) -> tuple[Callable[[int], None], Callable[[Any], None]]:
        """For loops that set many timers: each is a call of both functions, with its timestamp and its key."""
        times, keys = self._gathered
        return times.append, keys.append

    def add_gathered(self) -> None:
        times, keys = self._gathered
        if keys:
            added = times[:], keys[:]
            times.clear()
            keys.clear()
            self.add_all(*added)

    def take(self, time: int) -> TakenTimers:
        """Remove every timer at or before `time`. Their loop ends early if a timer is set or deleted meanwhile."""
        self._taken = TakenTimers(*self.take_until(time))
        return self._taken

    def end_taking(self) -> bool:
        """Call this after the loop over taken timers; True if it has ended early."""
        was_cut, self._taken = self._taken is None, None
        return was_cut

    def _catch_up(self) -> None:
        """Add the gathered timers, and put back those that were taken and have not fired yet."""
        if self._taken is not None:
            rest, self._taken = self._taken.cut(), None
            for timestamp, key in zip(*rest, strict=True):
                self.add(timestamp, key, VOID_NAMESPACE)
        if self._gathered[1]:
            self.add_gathered()

    def place_of(self, key: Any) -> tuple[Any, Hashable]:
        """The key and namespace in the table for a key of this queue."""
        return key, VOID_NAMESPACE

    def add(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        if type(timestamp) is not int or not MIN_LONG_VALUE <= timestamp <= MAX_LONG_VALUE:
            timestamp = whole_milliseconds(timestamp, _GIVER)
        if self._taken is not None or self._gathered[1]:
            self._catch_up()
        new = self._new
        held = new.get(timestamp, _NO_TIMER)
        if held is _NO_TIMER:
            if self._heap and super().contains(timestamp, *self.place_of(key)):
                return
            new[timestamp] = key
            self._newest_times.append(timestamp)
            if len(self._times) + len(self._newest_times) > 64 + 2 * len(new):
                self._times, self._newest_times = sorted(new), []  # The others were deleted.
        elif type(held) is _Several:
            if key not in held and not (self._heap and super().contains(timestamp, *self.place_of(key))):
                held[key] = True
        elif not is_same_key(held, key) and not (self._heap and super().contains(timestamp, *self.place_of(key))):
            new[timestamp] = _Several({held: True, key: True})

    def add_all(self, timestamps: list[int], keys: list[Any]) -> None:
        """Add one timer for each key, at whole milliseconds. Only for a queue whose keys are those of its table."""
        new, added = self._new, dict(zip(timestamps, keys, strict=True))
        if self._heap or len(added) < len(keys) or not new.keys().isdisjoint(added):
            for timestamp, key in zip(timestamps, keys, strict=True):
                self.add(timestamp, key, VOID_NAMESPACE)
            return
        new.update(added)
        self._newest_times += timestamps

    def _gather_times(self) -> None:
        """Move all timestamps into the heap."""
        newest, self._newest_times = self._newest_times, []
        if len(newest) > len(self._times) // 4:
            self._times += newest
            self._times.sort()  # A sorted list is a heap. Most timestamps come in order, so sorting is fast.
        else:
            for timestamp in newest:
                heapq.heappush(self._times, timestamp)

    def remove(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        if type(timestamp) is not int or not MIN_LONG_VALUE <= timestamp <= MAX_LONG_VALUE:
            timestamp = whole_milliseconds(timestamp, _GIVER)
        self._catch_up()
        if not self._took_new(timestamp, key):
            super().remove(timestamp, *self.place_of(key))

    def _took_new(self, timestamp: int, key: Any) -> bool:
        """Remove a new timer; False if there is none."""
        held = self._new.get(timestamp, _NO_TIMER)
        if type(held) is _Several:
            if held.pop(key, None) is None:
                return False
            if not held:
                del self._new[timestamp]
            return True
        if held is _NO_TIMER or not is_same_key(held, key):
            return False
        del self._new[timestamp]
        return True

    def contains(self, timestamp: int, key: Any, namespace: Hashable) -> bool:
        self._catch_up()
        held = self._new.get(timestamp, _NO_TIMER)
        is_new = key in held if type(held) is _Several else held is not _NO_TIMER and is_same_key(held, key)
        return is_new or super().contains(timestamp, *self.place_of(key))

    def next_timestamp(self) -> int | None:
        self._catch_up()
        if self._newest_times:
            self._gather_times()
        new_times = self._times
        while new_times and new_times[0] not in self._new:
            heapq.heappop(new_times)
        times = [*new_times[:1], super().next_timestamp()]
        return min((time for time in times if time is not None), default=None)

    def fire_until(self, time: int, backend: KeyedStateBackend, on_timer: OnTimer) -> int:
        fired = 0
        while (timestamp := self.next_timestamp()) is not None and timestamp <= time:
            if self._heap and self._heap[0][0] == timestamp:
                fired += self._fire_next(backend, on_timer)
                continue
            held = self._new[timestamp]
            for each in list(held) if type(held) is _Several else [held]:
                if self._took_new(timestamp, each):
                    key, namespace = self.place_of(each)
                    backend.current_key = key
                    on_timer(timestamp, key, namespace)
                    fired += 1
        return fired

    def take_until(self, time: int) -> tuple[list[int], list[Any]]:
        self._catch_up()
        timestamps, keys = super().take_until(time) if self._heap else ([], [])
        has_old = bool(keys)
        due = self._due_times(time)
        held_then = list(map(self._new.pop, due, repeat(_NO_TIMER)))
        if {_Several, type(_NO_TIMER)}.isdisjoint(map(type, held_then)):
            timestamps += due
            keys += held_then
        else:
            for timestamp, held in zip(due, held_then, strict=True):
                several = list(held) if type(held) is _Several else [] if held is _NO_TIMER else [held]
                timestamps += [timestamp] * len(several)
                keys += several
        if has_old:
            order = sorted(range(len(keys)), key=timestamps.__getitem__)
            return [timestamps[at] for at in order], [keys[at] for at in order]
        return timestamps, keys

    def _due_times(self, time: int) -> list[int]:
        """Remove all timestamps up to `time` from the heap; these timestamps in order."""
        if self._newest_times:
            self._gather_times()
        times, pop = self._times, heapq.heappop
        due: list[int] = []
        few = 32 + len(times) // 16
        while times and times[0] <= time:
            if len(due) == few:  # If many are due, sorting is faster than removing them one by one.
                times.sort()
                end = bisect_right(times, time)
                due += times[:end]
                del times[:end]
                break
            due.append(pop(times))
        return due

    def _settle(self) -> None:
        """Put all new timers into the table."""
        self._catch_up()
        new, self._new, self._times, self._newest_times = self._new, {}, [], []
        for timestamp, held in new.items():
            for each in held if type(held) is _Several else [held]:
                super().add(timestamp, *self.place_of(each))


class WindowKeyTimerQueue(KeyTimerQueue):
    """The same for timers with namespaces, each with few keys: the keys of this queue are pairs (key, namespace)."""

    def place_of(self, key: Any) -> tuple[Any, Hashable]:
        own, namespace = key
        return own, namespace

    def key_of(self, key: Any, namespace: Hashable) -> Any:
        return key, namespace

    def add(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        super().add(timestamp, (key, namespace), namespace)

    def remove(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        super().remove(timestamp, (key, namespace), namespace)

    def contains(self, timestamp: int, key: Any, namespace: Hashable) -> bool:
        return super().contains(timestamp, (key, namespace), namespace)


class InternalTimerService:
    """Registers, deletes and fires the timers of one operator for its current key."""

    def __init__(
        self,
        name: str,
        backend: KeyedStateBackend,
        on_event_time: OnTimer,
        on_processing_time: OnTimer,
        clock: Callable[[], int],
        make_queue: Callable[[StateTable], TimerQueue] = TimerQueue,
    ) -> None:
        self._backend = backend
        self._on_event_time = on_event_time
        self._on_processing_time = on_processing_time
        self._clock = clock
        self.event_time = make_queue(backend.table(f"{TIMER_TABLE_PREFIX}{name}/event-time"))
        self.processing_time = make_queue(backend.table(f"{TIMER_TABLE_PREFIX}{name}/processing-time"))
        self.current_watermark = MIN_LONG_VALUE

    def wrap(self, wrapped: Callable[[OnTimer], OnTimer]) -> None:
        """Have timers call what `wrapped` makes of the functions that they call now."""
        self._on_event_time = wrapped(self._on_event_time)
        self._on_processing_time = wrapped(self._on_processing_time)

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
