"""Timestamps and watermarks of the splits that one source subtask reads."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from penstock.common.constants import MIN_LONG_VALUE
from penstock.common.watermark_generator import (
    NoWatermarks,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarksWithIdleness,
    time_of,
)
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.graph.descriptions import WatermarksDescription
from penstock.runtime.batch import Batch, Timestamps
from penstock.runtime.operators.watermarks import BY_LARGEST_TIMESTAMP, TimestampExtraction, largest_of

_NOTHING = WatermarksDescription(WatermarkStrategy.no_watermarks())


class SplitWatermark(WatermarkOutput):
    """How far one split is in event time: what its generator, or its reader, said last."""

    is_paused = False
    """True while the split is not read because it is too far ahead: that does not make it idle."""

    def __init__(self, generator: WatermarkGenerator) -> None:
        self.generator = generator
        self.watermark = MIN_LONG_VALUE
        self.is_idle = False

    def emit_watermark(self, watermark: Any) -> None:
        timestamp = time_of(watermark)
        self.is_idle = False
        self.watermark = max(self.watermark, timestamp)

    def mark_idle(self) -> None:
        self.is_idle = True

    def mark_active(self) -> None:
        self.is_idle = False

    @property
    def looks_at_largest(self) -> bool:
        """True if one call of the generator for a whole batch gives what a call for each element gives."""
        generator = self.generator
        inner = generator.generator if isinstance(generator, WatermarksWithIdleness) else generator
        return isinstance(inner, BY_LARGEST_TIMESTAMP)

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
        return not isinstance(self.generator, BY_LARGEST_TIMESTAMP)


class SplitWatermarks:
    """Each split has a generator of its own; the subtask's watermark is the smallest of those that are not idle.

    A subtask without splits is idle after the strategy's idle timeout.
    """

    def __init__(self, description: WatermarksDescription | None, clock: Callable[[], int]) -> None:
        self._description = description or _NOTHING
        self._clock = clock
        self._extraction = TimestampExtraction(self._description.strategy.create_timestamp_assigner())
        self._keeps_timestamps = self._extraction.keeps_timestamps
        self._splits: dict[str, SplitWatermark] = {}
        self._none = SplitWatermark(self._quiet_generator())
        """In place of splits, while there are none."""
        self._last_emit_ms = clock()

    def add(self, split_id: str) -> SplitWatermark:
        """The split's watermark; the known one if the split is known."""
        if split_id not in self._splits:
            self._splits[split_id] = SplitWatermark(self._new_generator())
        return self._splits[split_id]

    def remove(self, split_id: str) -> None:
        self._splits.pop(split_id, None)
        if not self._splits:
            self._none = SplitWatermark(self._quiet_generator())

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
            largest = MIN_LONG_VALUE if timestamps is None else largest_of(list(timestamps))
            split.generator.on_event(values[-1], largest, split)
            yield Batch(values, timestamps)
        else:
            yield from self._stamped_one_by_one(split, values, timestamps)

    def _stamped_one_by_one(
        self, split: SplitWatermark, values: list[Any], timestamps: Timestamps | None
    ) -> Iterator[Batch]:
        start = 0
        before = self.combined()
        for at, value in enumerate(values):
            timestamp = None if timestamps is None else timestamps[at]
            split.generator.on_event(value, MIN_LONG_VALUE if timestamp is None else timestamp, split)
            if self._description.auto_watermark_interval_ms == 0:
                split.generator.on_periodic_emit(split)
            if self.combined() != before:
                yield _part(values, timestamps, start, at + 1)
                start, before = at + 1, self.combined()
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
                split.generator.on_periodic_emit(split)
        self._last_emit_ms = self._clock()

    def combined(self) -> tuple[int, bool]:
        """The watermark of all splits together, and whether they are idle."""
        active = [split.watermark for split in self._all() if not split.is_idle]
        return min(active, default=MIN_LONG_VALUE), not active

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


def _part(values: list[Any], timestamps: Timestamps | None, start: int, end: int) -> Batch:
    return Batch(values[start:end], None if timestamps is None else timestamps[start:end])


def _without_clock(split: SplitWatermark) -> SplitWatermark:
    """A copy; the clock belongs to the process."""
    copied = copy.copy(split)
    copied.generator = copy.copy(split.generator)
    if isinstance(copied.generator, WatermarksWithIdleness):
        copied.generator.clock = int
    return copied
