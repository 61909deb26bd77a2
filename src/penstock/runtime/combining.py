"""Reduces the elements of a window before they are exchanged: one partial result per key and slice instead of them all.

For windows that reduce (`WindowDescription.combines`) a partial result is an element like any other, so the window
operator does not know the difference. A slice is a span of event time in which all elements belong to the same windows:
a tumbling window, or one slide of a sliding one. What is held back leaves before a watermark that could close its
windows, and at the end of the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from penstock.common.constants import MIN_LONG_VALUE
from penstock.graph.descriptions import WindowDescription
from penstock.graph.job_graph import JobEdge
from penstock.runtime.batch import Timestamps
from penstock.runtime.outputs import EdgeTarget
from penstock.runtime.partitioning import ByKeyGroup
from penstock.runtime.rows import Row
from penstock.runtime.windowing.accumulation import accumulation_of

MOST_HELD = 100_000
"""Partial results held at most; beyond that all are sent."""
_TRIAL_RECORDS = 50_000
_LEAST_REDUCTION = 1.5
"""Fewer elements than this per partial result, and combining costs more than it saves."""


class CombiningEdgeTarget(EdgeTarget):
    """An edge into a window operator that sends partial results."""

    def __init__(
        self,
        edge: JobEdge,
        subtask: int,
        parallelism: int,
        target_parallelism: int,
        target_max_parallelism: int,
        ready: list[Row],
        description: WindowDescription,
    ) -> None:
        super().__init__(edge, subtask, parallelism, target_parallelism, target_max_parallelism, ready)
        self._select = description.key_selector
        self._slide: int = description.assigner.slide
        self._offset: int = description.assigner.offset
        self._accumulation = accumulation_of(description)
        self._slices: dict[int, dict[Any, Any]] = {}
        self._held = 0
        self._watermark = MIN_LONG_VALUE
        self._is_combining = True
        self._tried, self._partials = 0, 0

    def push_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        if not self._is_combining or timestamps is None or None in timestamps:
            super().push_batch(values, timestamps)
            return
        select = self._select
        keys = [select(value) for value in values]
        times = cast("Sequence[int]", timestamps)
        earliest = self._slice_of(min(times))
        if earliest + self._slide - 1 <= self._watermark:
            # Late elements are for the window operator to judge, one by one.
            super().push_batch(values, timestamps)
        elif max(times) < earliest + self._slide:
            self._combine(earliest, keys, values)
        else:
            self._combine_by_slice(keys, values, times)
        if self._held > MOST_HELD:
            self._send_all()

    def _combine_by_slice(self, keys: list[Any], values: list[Any], times: Sequence[int]) -> None:
        shares: dict[int, tuple[list[Any], list[Any]]] = {}
        start = end = 0
        for key, value, timestamp in zip(keys, values, times, strict=True):
            if not start <= timestamp < end:
                start = self._slice_of(timestamp)
                end = start + self._slide
                share_keys, share_values = shares.setdefault(start, ([], []))
            share_keys.append(key)
            share_values.append(value)
        for slice_start, share in shares.items():
            self._combine(slice_start, *share)

    def _combine(self, start: int, keys: list[Any], values: list[Any]) -> None:
        partials = self._slices.setdefault(start, {})
        opened = len(self._accumulation.add_all(partials, keys, values))
        self._held += opened
        self._partials += opened
        self._tried += len(keys)

    def _slice_of(self, timestamp: int) -> int:
        return timestamp - (timestamp - self._offset) % self._slide

    # --- what is held back leaves in time ----------------------------------------------------------------------------

    def push_watermark(self, watermark: int) -> None:
        self._watermark = watermark
        for start in [start for start in self._slices if start + self._slide - 1 <= watermark]:
            self._send_slice(start)
        super().push_watermark(watermark)

    def push_status(self, idle: bool) -> None:
        self._send_all()
        # While idle, others may move the watermark past what this channel knows: lateness is then decided downstream.
        self._is_combining = self._is_combining and not idle
        super().push_status(idle)

    def push_end_of_data(self) -> None:
        self._send_all()
        super().push_end_of_data()

    def end_epoch(self) -> None:
        self._send_all()
        super().end_epoch()
        if self._tried > _TRIAL_RECORDS:
            self._is_combining = self._is_combining and self._tried >= self._partials * _LEAST_REDUCTION
            self._tried = self._partials = 0

    def _send_all(self) -> None:
        for start in list(self._slices):
            self._send_slice(start)

    def _send_slice(self, start: int) -> None:
        partials = self._slices.pop(start)
        self._held -= len(partials)
        dealer = cast(ByKeyGroup, self.dealer)
        keys, values = list(partials), list(partials.values())
        self.records_out += len(keys)
        self.send(dealer.deal_keyed(keys, values, [start] * len(keys)))
