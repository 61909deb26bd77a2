"""The interval join: pairs of elements of two keyed streams whose timestamps are near each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, NoReturn, Protocol, cast

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.functions import ProcessJoinFunction
from penstock.datastream.output_tag import OutputTag
from penstock.datastream.state import MapState, MapStateDescriptor
from penstock.graph.descriptions import IntervalJoinDescription
from penstock.runtime.batch import Batch
from penstock.runtime.bulk_timers import BulkTimerQueue
from penstock.runtime.operators.contexts import EmitSide, EmittingContext, emit_results
from penstock.runtime.operators.user_function import UserFunctionOperator
from penstock.runtime.state.heap_table import HeapStateTable
from penstock.runtime.state.keyed import KeyedStateBackend
from penstock.runtime.state.table import VOID_NAMESPACE, StateTable

TIMER_SERVICE = "interval-join-timers"
LATE_RECORDS_DROPPED = "numLateRecordsDropped"


class PairContext(EmittingContext, ProcessJoinFunction.Context):
    """The context of `process_element`; the timestamp of a pair is the later one of its two elements."""

    def __init__(self, emit_side: EmitSide) -> None:
        super().__init__(emit_side)
        self.left_timestamp = self.right_timestamp = 0

    def at(self, left_timestamp: int, right_timestamp: int) -> int:
        """Make this the context of a pair; returns the pair's timestamp."""
        self.left_timestamp, self.right_timestamp = left_timestamp, right_timestamp
        self.element_timestamp = later = max(left_timestamp, right_timestamp)
        return later

    def get_left_timestamp(self) -> int:
        return self.left_timestamp

    def get_right_timestamp(self) -> int:
        return self.right_timestamp

    def get_timestamp(self) -> int:
        return max(self.left_timestamp, self.right_timestamp)


class _Side(NamedTuple):
    """One of the two inputs: an element at time t joins elements of the other at t + `lower` to t + `upper`."""

    name: str
    lower: int
    upper: int
    late_tag: OutputTag | None

    @property
    def kept_ms(self) -> int:
        """How long after its timestamp an element may still get partners that are not late."""
        return max(self.upper, 0)

    @property
    def cleanup_step_ms(self) -> int:
        """Elements are dropped at multiples of this. That is a little late, but one timer serves many elements."""
        return max((self.upper - self.lower) // _CLEANUPS_AN_INTERVAL, 1)


_CLEANUPS_AN_INTERVAL = 16


class _Buffer(Protocol):
    """The elements of one side, by key and timestamp."""

    def add_all(self, keys: list[Any], timestamps: Sequence[int], values: list[Any]) -> None: ...

    def of(self, key: Any) -> Iterable[tuple[int, list[Any]]]:
        """The elements of a key, by timestamp."""

    def drop_until(self, keys: list[Any], timestamp: int) -> None:
        """Drop the elements of these keys that are not later than `timestamp`."""


class _HeapBuffer:
    """A buffer that works directly on the dictionaries of a table in memory."""

    def __init__(self, table: StateTable) -> None:
        self._table = table

    def add_all(self, keys: list[Any], timestamps: Sequence[int], values: list[Any]) -> None:
        entries = self._table.open_namespace(VOID_NAMESPACE)
        opened = []
        for key, timestamp, value in zip(keys, timestamps, values, strict=True):
            held = entries.get(key)
            if held is None:
                entries[key] = {timestamp: [value]}
                opened.append(key)
            elif timestamp in held:
                held[timestamp].append(value)
            else:
                held[timestamp] = [value]
        self._table.note_all_written(VOID_NAMESPACE, keys, opened)

    def of(self, key: Any) -> Iterable[tuple[int, list[Any]]]:
        held = self._table.get(VOID_NAMESPACE, key)
        return () if held is None else held.items()

    def drop_until(self, keys: list[Any], timestamp: int) -> None:
        entries = self._table.open_namespace(VOID_NAMESPACE)
        emptied, changed = [], []
        for key in keys:
            held = entries.get(key)
            if held is None:
                continue
            if max(held) <= timestamp:
                del entries[key]
                emptied.append(key)
                continue
            dropped = [each for each in held if each <= timestamp]
            if dropped:
                for each in dropped:
                    del held[each]
                changed.append(key)
        self._table.note_all_removed(VOID_NAMESPACE, emptied)
        self._table.note_all_written(VOID_NAMESPACE, changed, ())
        self._table.close_namespace(VOID_NAMESPACE)


class _MapBuffer:
    """A buffer in map state, for any state backend."""

    def __init__(self, backend: KeyedStateBackend, state: MapState[int, list[Any]]) -> None:
        self._backend = backend
        self._state = state

    def add_all(self, keys: list[Any], timestamps: Sequence[int], values: list[Any]) -> None:
        for key, timestamp, value in zip(keys, timestamps, values, strict=True):
            self._backend.current_key = key
            self._state.put(timestamp, [*(self._state.get(timestamp) or ()), value])

    def of(self, key: Any) -> Iterable[tuple[int, list[Any]]]:
        self._backend.current_key = key
        return self._state.items()

    def drop_until(self, keys: list[Any], timestamp: int) -> None:
        for key in keys:
            self._backend.current_key = key
            for each in self._state.keys():  # noqa: SIM118 (the state changes in the loop)
                if each <= timestamp:
                    self._state.remove(each)


def _buffer_of(backend: KeyedStateBackend, name: str) -> _Buffer:
    state = backend.state(MapStateDescriptor(name))
    table = backend.table(name)
    return _HeapBuffer(table) if type(table) is HeapStateTable else _MapBuffer(backend, state)


def _never(timestamp: int, key: Any, namespace: Hashable) -> None:
    raise AssertionError("timers fire many at a time")


class IntervalJoinOperator(UserFunctionOperator):
    """Keeps the elements of both sides, by key and timestamp, until no more partners can arrive.

    An element behind the watermark is late: it is sent to the late output of its side, or dropped and counted.
    """

    def __init__(self, description: IntervalJoinDescription) -> None:
        super().__init__(description.function, ("process_element",), description.key_selectors)
        lower = description.lower_bound_ms + (0 if description.is_lower_inclusive else 1)
        upper = description.upper_bound_ms - (0 if description.is_upper_inclusive else 1)
        self._sides = (
            _Side("left", lower, upper, description.late_left_tag),
            _Side("right", -upper, -lower, description.late_right_tag),
        )

    def open(self) -> None:
        self._buffers = [_buffer_of(self.context.keyed_state, f"_interval_join/{side.name}") for side in self._sides]
        self._kept: dict[Hashable, tuple[_Buffer, int]] = {
            side.name: (buffer, side.kept_ms) for side, buffer in zip(self._sides, self._buffers, strict=True)
        }
        self._timers = self.context.timer_service(TIMER_SERVICE, _never, _never, self._timer_queue)
        self._pair = PairContext(self.output.collect_side)
        super().open()

    def _timer_queue(self, table: StateTable) -> BulkTimerQueue:
        return BulkTimerQueue(table, self._clean_up)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        """Keep every element that is not late, and call the function for each partner that has already arrived."""
        keys = cast("list[Any]", self.keys(batch, input_index))
        timestamps, earliest = self._checked_times(batch)
        watermark = self._timers.current_watermark
        if earliest >= watermark:
            self._join(keys, batch.values, timestamps, input_index)
            return
        start = 0
        for is_late, run in groupby(timestamps, lambda timestamp: timestamp < watermark):
            part = slice(start, start := start + sum(1 for _ in run))
            if is_late:
                self._skip_late(batch.values[part], timestamps[part], self._sides[input_index])
            else:
                self._join(keys[part], batch.values[part], timestamps[part], input_index)

    def _checked_times(self, batch: Batch) -> tuple[Sequence[int], int]:
        """The timestamps of the elements, and the earliest of them."""
        timestamps: Sequence[int | None] = batch.timestamps or [None] * len(batch.values)
        try:
            earliest: int | None = min(cast("Sequence[int]", timestamps), default=MAX_LONG_VALUE)
        except TypeError:
            earliest = None
        if earliest is None or earliest == MIN_LONG_VALUE:
            self._refuse(batch.values[timestamps.index(earliest)])
        return cast("Sequence[int]", timestamps), earliest

    def _join(self, keys: list[Any], values: list[Any], timestamps: Sequence[int], input_index: int) -> None:
        side, others = self._sides[input_index], self._buffers[1 - input_index]
        self._buffers[input_index].add_all(keys, timestamps, values)
        self._set_timers(keys, timestamps, side)
        # As in Flink, an element at the watermark is not late, but partners that expire at the watermark are gone. They
        # may still be in the buffer, which is cleaned up a little late.
        gone_until = self._timers.current_watermark - self._sides[1 - input_index].kept_ms
        lower, upper, partners_of = side.lower, side.upper, others.of
        found: list[tuple[Any, Any, int, Any, int]] = []
        for key, value, timestamp in zip(keys, values, timestamps, strict=True):
            for other_timestamp, partners in partners_of(key):
                if other_timestamp > gone_until and lower <= other_timestamp - timestamp <= upper:
                    found += [(key, value, timestamp, partner, other_timestamp) for partner in partners]
        self._call_for(found, input_index)

    def _set_timers(self, keys: list[Any], timestamps: Sequence[int], side: _Side) -> None:
        """Set one timer for all elements of a key that are dropped at the same time."""
        kept_ms, step_ms = side.kept_ms, side.cleanup_step_ms
        cleanups: dict[int, list[Any]] = {}
        for key, timestamp in zip(keys, timestamps, strict=True):
            steps = -(-(timestamp + kept_ms) // step_ms)
            if steps in cleanups:
                cleanups[steps].append(key)
            else:
                cleanups[steps] = [key]
        timers = cast(BulkTimerQueue, self._timers.event_time)
        for steps, some in cleanups.items():
            timers.add_all(min(steps * step_ms, MAX_LONG_VALUE), some, side.name)

    def _call_for(self, found: list[tuple[Any, Any, int, Any, int]], input_index: int) -> None:
        """Call the function for pairs. It gets copies, because both elements are kept for other partners."""
        call, pair, copied, output = self.calls[0], self._pair, self.context.copied, self.output
        backend, is_left = self.context.keyed_state, input_index == 0
        for key, value, timestamp, partner, other_timestamp in found:
            backend.current_key = key
            if is_left:
                latest = pair.at(timestamp, other_timestamp)
                results = call(copied(value), copied(partner), pair)
            else:
                latest = pair.at(other_timestamp, timestamp)
                results = call(copied(partner), copied(value), pair)
            emit_results(output, results, latest)

    def _clean_up(self, time: int, namespace: Hashable, keys: list[Any]) -> None:
        buffer, kept_ms = self._kept[namespace]
        buffer.drop_until(keys, time - kept_ms)

    def _skip_late(self, values: list[Any], timestamps: Sequence[int], side: _Side) -> None:
        if side.late_tag is None:
            self.context.increment(LATE_RECORDS_DROPPED, len(values))
            return
        for value, timestamp in zip(values, timestamps, strict=True):
            self.output.collect_side(side.late_tag.tag_id, value, timestamp)

    def _refuse(self, value: Any) -> NoReturn:
        raise InvalidProgramError(
            f"operator '{self.context.operator_name}': element {value!r} has no event time, but an interval join needs "
            f"one; call assign_timestamps_and_watermarks(...) before key_by(...)"
        )
