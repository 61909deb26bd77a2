"""Timestamps and watermarks of the splits that one subtask reads. Any other stream is one split."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.watermark_generator import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
    time_of,
)
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.graph.descriptions import WatermarksDescription
from penstock.runtime.batch import Batch, Timestamps
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.timestamp_extraction import TimestampExtraction, largest_of

if TYPE_CHECKING:
    from penstock.runtime.columns import Array, Columns

_NOTHING = WatermarksDescription(WatermarkStrategy.no_watermarks())

# The generators that only look at the largest timestamp: one call for a whole batch gives what a call for each gives.
# That is not so of their subclasses, which are the user's.
_BY_LARGEST_TIMESTAMP = (BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks, NoWatermarks)


class WatermarkEmitter:
    """What an operator says of event time: watermarks only rise, and one that rises ends idleness, as in Flink."""

    def __init__(self, operator: StreamOperator) -> None:
        self._operator = operator
        self.is_idle = False

    def emit_watermark(self, watermark: int) -> None:
        if watermark > self._operator.current_watermark:
            self.send_status(False)
            self._operator.current_watermark = watermark
            self._operator.output.emit_watermark(watermark)

    def send_status(self, idle: bool) -> None:
        if idle != self.is_idle:
            self.is_idle = idle
            self._operator.output.emit_status(idle)

    @property
    def is_at_end(self) -> bool:
        return self._operator.current_watermark == MAX_LONG_VALUE


class SplitWatermark(WatermarkOutput):
    """How far one split is in event time: what its generator, or its reader, said last."""

    is_paused = False
    """True while the split is not read because it is too far ahead: that does not make it idle."""
    is_called_active = False
    """True if somebody said so, until that is passed on: it ends the subtask's idleness without a new watermark."""

    on_change: Callable[[], None] | None = None
    """Called after each change, so that a watermark counts even if its split falls idle right after it."""

    def __init__(self, generator: WatermarkGenerator) -> None:
        self.generator = generator
        self.watermark = MIN_LONG_VALUE
        self.is_idle = False

    def emit_watermark(self, watermark: Any) -> None:
        time = time_of(watermark)
        if time > self.watermark:
            self.watermark = time
            self._set_idle(False)
        elif self.is_idle:
            self._set_idle(False)

    def mark_idle(self) -> None:
        self._set_idle(True)

    def mark_active(self) -> None:
        self.is_called_active = True
        self._set_idle(False)

    def _set_idle(self, is_idle: bool) -> None:
        self.is_idle = is_idle
        if self.on_change is not None:
            self.on_change()

    @property
    def looks_at_largest(self) -> bool:
        """True if one call of the generator for a whole batch gives what a call for each element gives."""
        generator = self.generator
        inner = generator.generator if type(generator) is WatermarksWithIdleness else generator
        return type(inner) in _BY_LARGEST_TIMESTAMP

    def pause_or_resume(self, is_paused: bool) -> None:
        if self.is_paused and not is_paused and isinstance(self.generator, WatermarksWithIdleness):
            self.generator.restart()
        self.is_paused = is_paused

    def wants_time(self) -> bool:
        """True if the mere passing of time may change what the generator says."""
        if self.is_paused:
            return False
        if isinstance(self.generator, WatermarksWithIdleness) and self.is_idle:
            return False
        return type(self.generator) not in _BY_LARGEST_TIMESTAMP


class SplitWatermarks:
    """Each split has a generator of its own; the subtask's watermark is the smallest of those that are not idle.

    A subtask without splits is idle after the strategy's idle timeout. Idleness ends as in Flink: with a watermark that
    rises, or when a generator or reader marks its split active; and also with a new split, which may be behind.
    """

    def __init__(self, description: WatermarksDescription | None, clock: Callable[[], int]) -> None:
        self._description = description or _NOTHING
        self._clock = clock
        self._extraction = TimestampExtraction(self._description.strategy.create_timestamp_assigner())
        self._keeps_timestamps = self._extraction.keeps_timestamps
        self._splits: dict[str, SplitWatermark] = {}
        self._none = SplitWatermark(self._quiet_generator())
        """In place of splits, while there are none."""
        self._reached = MIN_LONG_VALUE
        self._are_idle = False
        self._last_emit_ms = clock()

    def add(self, split_id: str) -> SplitWatermark:
        """The split's watermark; the known one if the split is known."""
        if split_id not in self._splits:
            self._splits[split_id] = split = SplitWatermark(self._new_generator())
            split.on_change = self._advance_reached
            split.is_called_active = True
            self._advance_reached()
        return self._splits[split_id]

    def remove(self, split_id: str) -> None:
        self._splits.pop(split_id, None)
        if not self._splits:
            self._none = SplitWatermark(self._quiet_generator())
        self._advance_reached()

    def _new_generator(self) -> WatermarkGenerator:
        if self._description.only_final:
            return NoWatermarks()
        return self._description.strategy.create_watermark_generator(self._clock)

    def _quiet_generator(self) -> WatermarkGenerator:
        timeout_ms = self._description.strategy.idle_timeout_ms
        if timeout_ms is None or self._description.only_final:
            return NoWatermarks()
        return WatermarksWithIdleness(NoWatermarks(), timeout_ms, self._clock)

    # --- elements --------------------------------------------------------------------------------------------------

    def stamped(self, split_id: str, values: list[Any], timestamps: Timestamps | None) -> Iterator[Batch]:
        """The elements with their timestamps, in batches that end where the watermark may rise."""
        split = self.add(split_id)
        if not (self._keeps_timestamps and timestamps is None):
            timestamps = self._extraction.timestamps_of(Batch(values, timestamps))
        if split.looks_at_largest and self._description.auto_watermark_interval_ms > 0:
            # Also without timestamps: an element says that the split is not idle.
            largest = MIN_LONG_VALUE if timestamps is None else largest_of(timestamps)
            split.generator.on_event(values[-1], largest, split)
            yield Batch(values, timestamps)
        else:
            yield from self._stamped_one_by_one(split, values, timestamps)

    def takes_columns(self, split_id: str) -> bool:
        """True if `stamped_columns` may work."""
        looks_at_largest = self.add(split_id).looks_at_largest and self._description.auto_watermark_interval_ms > 0
        return looks_at_largest and self._extraction.on_columns is not None

    def stamped_columns(self, split_id: str, columns: Columns) -> Array | None:
        """The new timestamps; None if `stamped` must have the elements."""
        timestamps = self._extraction.column_of(columns)
        if timestamps is not None:
            split = self.add(split_id)
            split.generator.on_event(columns.taken(slice(-1, None)).batch().values[0], int(timestamps.max()), split)
        return timestamps

    def _stamped_one_by_one(
        self, split: SplitWatermark, values: list[Any], timestamps: Timestamps | None
    ) -> Iterator[Batch]:
        start = 0
        reached, are_idle = self.combined()
        is_asked = self._description.auto_watermark_interval_ms == 0
        on_event, on_periodic_emit = split.generator.on_event, split.generator.on_periodic_emit
        for at, value in enumerate(values):
            timestamp = None if timestamps is None else timestamps[at]
            on_event(value, MIN_LONG_VALUE if timestamp is None else timestamp, split)
            if is_asked:
                on_periodic_emit(split)
            if self._reached != reached or self._are_idle != are_idle or split.is_called_active:
                yield _part(values, timestamps, start, at + 1)
                start = at + 1
                reached, are_idle = self.combined()
        if start < len(values):
            yield _part(values, timestamps, start, len(values))

    # --- time ------------------------------------------------------------------------------------------------------

    def advance(self, now_ms: int) -> None:
        """Ask the generators, if it is time to."""
        if now_ms - self._last_emit_ms >= self._description.auto_watermark_interval_ms:
            self.emit_periodic()

    def emit_periodic(self) -> None:
        for split in self._all():
            if not split.is_paused:
                split.on_change = None  # They speak at the same time: none counts before all have spoken.
                split.generator.on_periodic_emit(split)
        for split in self._splits.values():
            split.on_change = self._advance_reached
        self._advance_reached()
        self._last_emit_ms = self._clock()

    def combined(self) -> tuple[int, bool]:
        """The watermark that all splits together have reached, and whether they are idle."""
        return self._reached, self._are_idle

    def _advance_reached(self) -> None:
        slowest = None
        for split in self._splits.values() or (self._none,):
            if not split.is_idle and (slowest is None or split.watermark < slowest):
                slowest = split.watermark
        self._are_idle = slowest is None
        if slowest is not None and slowest > self._reached:
            self._reached = slowest

    def settle(self, emitter: WatermarkEmitter) -> None:
        """Emit what has changed."""
        if emitter.is_at_end:
            return
        for split in self._splits.values():
            if split.is_called_active:
                split.is_called_active = False
                emitter.send_status(False)
        emitter.emit_watermark(self._reached)
        if self._are_idle:
            emitter.send_status(True)

    def ahead_of(self, limit: int) -> set[str]:
        """The splits whose watermark is beyond `limit`."""
        return {split_id for split_id, split in self._splits.items() if split.watermark > limit}

    def split_ids(self) -> set[str]:
        return set(self._splits)

    def pause(self, split_ids: set[str]) -> None:
        """These are not read for now, all others are."""
        for split_id, split in self._splits.items():
            split.pause_or_resume(split_id in split_ids)

    def next_time(self) -> int | None:
        """When time alone may change something."""
        if not any(split.wants_time() for split in self._all()):
            return None
        return self._clock() + max(self._description.auto_watermark_interval_ms, 1)

    def _all(self) -> list[SplitWatermark]:
        return list(self._splits.values()) or [self._none]

    # --- in another process ----------------------------------------------------------------------------------------

    def memory(self) -> Any:
        return {split_id: _without_clock(split) for split_id, split in self._splits.items()}, _without_clock(self._none)

    def restore(self, memory: Any) -> None:
        self._splits, self._none = memory
        for split in (*self._splits.values(), self._none):
            if isinstance(split.generator, WatermarksWithIdleness):
                split.generator.clock = self._clock
        for split in self._splits.values():
            split.on_change = self._advance_reached
        self._advance_reached()

    def restore_generator(self, split_id: str, generator: WatermarkGenerator, is_idle: bool) -> None:
        """Take back a split of which the generator was kept, and whether the subtask was idle."""
        split = SplitWatermark(generator)
        split.is_idle = is_idle
        self.restore(({split_id: split}, self._none))


def _part(values: list[Any], timestamps: Timestamps | None, start: int, end: int) -> Batch:
    return Batch(values[start:end], None if timestamps is None else timestamps[start:end])


def _without_clock(split: SplitWatermark) -> SplitWatermark:
    """A copy; the clock belongs to the process."""
    copied = copy.copy(split)
    copied.on_change = None
    copied.generator = copy.copy(split.generator)
    if isinstance(copied.generator, WatermarksWithIdleness):
        copied.generator.clock = int
    return copied
