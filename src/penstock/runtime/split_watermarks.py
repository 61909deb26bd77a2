"""Timestamps and watermarks of the splits that one subtask reads. A stream that is not read in splits counts as one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from penstock.common.own_copies import own_copy
from penstock.common.watermark_generator import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
    time_of,
)
from penstock.common.watermark_strategy import WatermarkStrategy, connect_with_assigner
from penstock.graph.descriptions import WatermarksDescription
from penstock.runtime.batch import Batch, Timestamps
from penstock.runtime.clocks import ticks_of
from penstock.runtime.timestamp_extraction import TimestampExtraction, largest_of

if TYPE_CHECKING:
    from penstock.runtime.columns import Array, Columns
    from penstock.runtime.operators.base import StreamOperator

_NOTHING = WatermarksDescription(WatermarkStrategy.no_watermarks())

_BY_LARGEST_TIMESTAMP = (BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks, NoWatermarks)
"""Generators that use only the largest timestamp: one call for a whole batch has the same effect as one for each
element. That need not be true for their subclasses, which are the user's."""


class WatermarkEmitter:
    """Emits an operator's watermarks and idleness: watermarks only rise, and a new one ends idleness, as in Flink."""

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
    """The watermark and idleness of one split, as its generator or its reader last set them."""

    is_paused = False
    """True while the split is not read because it is too far ahead: that does not make it idle."""
    is_called_active = False
    """True after the split was added or marked active, until `SplitWatermarks.settle` has passed that on: it ends the
    subtask's idleness even without a new watermark."""

    on_change: Callable[[], None] | None = None
    """Called after each change, so that a watermark counts even if its split becomes idle right after it."""

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
        """True if one call of the generator for a whole batch has the same effect as one for each element."""
        generator = self.generator
        inner = generator.generator if type(generator) is WatermarksWithIdleness else generator
        return type(inner) in _BY_LARGEST_TIMESTAMP

    def pause_or_resume(self, is_paused: bool) -> None:
        if self.is_paused and not is_paused and isinstance(self.generator, WatermarksWithIdleness):
            self.generator.restart()
        self.is_paused = is_paused

    def wants_time(self) -> bool:
        """True if time alone may change the watermark or the idleness."""
        if self.is_paused:
            return False
        if isinstance(self.generator, WatermarksWithIdleness) and self.is_idle:
            return False
        return type(self.generator) not in _BY_LARGEST_TIMESTAMP


def _of_one_subtask(description: WatermarksDescription) -> WatermarksDescription:
    """With its own copy of the strategy: an assigner may remember the elements that it has seen."""
    return replace(description, strategy=own_copy(description.strategy))


class SplitWatermarks:
    """Each split has its own generator; the subtask's watermark is the smallest one of the splits that are not idle.

    A subtask without splits is idle after the strategy's idle timeout. Idleness ends as in Flink: with a watermark that
    rises, or when a generator or reader marks its split active. It also ends with a new split, which may be behind.
    """

    def __init__(
        self, description: WatermarksDescription | None, clock: Callable[[], int], inlines_functions: bool = True
    ) -> None:
        self._description = _NOTHING if description is None else _of_one_subtask(description)
        self._clock, self._ticks = clock, ticks_of(clock)
        self._assigner = self._description.strategy.create_timestamp_assigner()
        self._extraction = TimestampExtraction(self._assigner, inlines_functions)
        self._keeps_timestamps = self._extraction.keeps_timestamps
        self._splits: dict[str, SplitWatermark] = {}
        self._none = SplitWatermark(self._generator_without_splits())
        """Takes the place of splits while there are none."""
        self._reached = MIN_LONG_VALUE
        self._are_idle = False
        self._last_emit_tick_ms = self._ticks()

    def add(self, split_id: str) -> SplitWatermark:
        """The split's watermark; a new one if the split is not known yet."""
        if split_id not in self._splits:
            self._splits[split_id] = split = SplitWatermark(self._new_generator())
            split.on_change = self._advance_reached
            split.is_called_active = True
            self._advance_reached()
        return self._splits[split_id]

    def remove(self, split_id: str) -> None:
        self._splits.pop(split_id, None)
        if not self._splits:
            self._none = SplitWatermark(self._generator_without_splits())
        self._advance_reached()

    def _new_generator(self) -> WatermarkGenerator:
        if self._description.only_final:
            return NoWatermarks()
        return self._description.strategy.create_watermark_generator(self._ticks)

    def _generator_without_splits(self) -> WatermarkGenerator:
        timeout_ms = self._description.strategy.idle_timeout_ms
        if timeout_ms is None or self._description.only_final:
            return NoWatermarks()
        return WatermarksWithIdleness(NoWatermarks(), timeout_ms, self._ticks)

    # --- elements --------------------------------------------------------------------------------------------------

    def stamped(self, split_id: str, values: list[Any], timestamps: Timestamps | None) -> Iterator[Batch]:
        """The elements with their timestamps, in batches that end where the watermark may rise."""
        split = self.add(split_id)
        if not (self._keeps_timestamps and timestamps is None):
            timestamps = self._extraction.timestamps_of(Batch(values, timestamps))
        if split.looks_at_largest and self._description.auto_watermark_interval_ms > 0:
            # Called even if there are no timestamps, because an element shows that the split is not idle.
            largest = MIN_LONG_VALUE if timestamps is None else largest_of(timestamps)
            split.generator.on_event(values[-1], largest, split)
            yield Batch(values, timestamps)
        else:
            yield from self._stamped_one_by_one(split, values, timestamps)

    def takes_columns(self, split_id: str) -> bool:
        """False if `stamped_columns` cannot be used for this split."""
        looks_at_largest = self.add(split_id).looks_at_largest and self._description.auto_watermark_interval_ms > 0
        return looks_at_largest and self._extraction.on_columns is not None

    def stamped_columns(self, split_id: str, columns: Columns) -> Array | None:
        """The new timestamps; None if `stamped` must be called instead."""
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
        emits_each_time = self._description.auto_watermark_interval_ms == 0
        on_event, on_periodic_emit = split.generator.on_event, split.generator.on_periodic_emit
        for at, value in enumerate(values):
            timestamp = None if timestamps is None else timestamps[at]
            on_event(value, MIN_LONG_VALUE if timestamp is None else timestamp, split)
            if emits_each_time:
                on_periodic_emit(split)
            if self._reached != reached or self._are_idle != are_idle or split.is_called_active:
                yield _part(values, timestamps, start, at + 1)
                start = at + 1
                reached, are_idle = self.combined()
        if start < len(values):
            yield _part(values, timestamps, start, len(values))

    # --- time ------------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Let the generators emit watermarks if the interval has passed."""
        if self._ticks() - self._last_emit_tick_ms >= self._description.auto_watermark_interval_ms:
            self.emit_periodic()

    def emit_periodic(self) -> None:
        for split in self._all():
            if not split.is_paused:
                split.on_change = None  # The watermarks of all splits count together, after the last one has emitted.
                split.generator.on_periodic_emit(split)
        for split in self._splits.values():
            split.on_change = self._advance_reached
        self._advance_reached()
        self._last_emit_tick_ms = self._ticks()

    def combined(self) -> tuple[int, bool]:
        """The watermark that all splits together have reached, and whether all of them are idle."""
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
        """Emit changes of the watermark and of idleness."""
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
        """Note that these splits are not read for now, and that all others are."""
        for split_id, split in self._splits.items():
            split.pause_or_resume(split_id in split_ids)

    def next_time(self) -> int | None:
        """When time alone may change something next; None if it cannot."""
        if not any(split.wants_time() for split in self._all()):
            return None
        return self._clock() + max(self._description.auto_watermark_interval_ms, 1)

    def _all(self) -> list[SplitWatermark]:
        return list(self._splits.values()) or [self._none]

    # --- in another process ----------------------------------------------------------------------------------------

    def memory(self) -> Any:
        return {split_id: _without_clock(split) for split_id, split in self._splits.items()}, _without_clock(self._none)

    def restore(self, memory: Any) -> None:
        """Continue with these watermarks. Idleness starts anew, as in Flink: no split could bring anything."""
        self._splits, self._none = memory
        for split in (*self._splits.values(), self._none):
            split.is_idle = False
            generator = split.generator
            if isinstance(generator, WatermarksWithIdleness):
                generator.clock = self._ticks
                generator.restart()
                generator = generator.generator
            connect_with_assigner(generator, self._assigner)
        for split in self._splits.values():
            split.on_change = self._advance_reached
        self._advance_reached()

    def restore_generator(self, split_id: str, generator: WatermarkGenerator) -> None:
        """Restore the only split of a stream from its generator."""
        self.restore(({split_id: SplitWatermark(generator)}, self._none))


def _part(values: list[Any], timestamps: Timestamps | None, start: int, end: int) -> Batch:
    return Batch(values[start:end], None if timestamps is None else timestamps[start:end])


def _without_clock(split: SplitWatermark) -> SplitWatermark:
    """A copy for pickling, without the clock and the callback, which belong to the process."""
    copied = copy.copy(split)
    copied.on_change = None
    copied.generator = copy.copy(split.generator)
    if isinstance(copied.generator, WatermarksWithIdleness):
        copied.generator.clock = int  # Any callable that can be pickled: `restore` replaces it.
    return copied
