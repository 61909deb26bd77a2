"""Reduces the elements of a window before they are exchanged: one partial result per key and window, not all.

For tumbling windows that reduce (`WindowDescription.combines`) a partial result is an element like any other, so the
window operator does not know the difference. What is held back leaves before a watermark that could close its window,
and at the end of the epoch; the elements of a window are reduced in the order they came. (Sliding windows do not
combine: an element of two windows would overtake others in one of them.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from penstock.common.constants import MIN_LONG_VALUE
from penstock.graph.descriptions import WindowDescription
from penstock.graph.job_graph import JobEdge
from penstock.runtime.batch import Timestamps
from penstock.runtime.key_groups import check_keys
from penstock.runtime.outputs import EdgeTarget
from penstock.runtime.partitioning import ByKeyGroup
from penstock.runtime.rows import Row
from penstock.runtime.windowing.accumulation import Reducing

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
        self._size: int = description.assigner.size
        self._offset: int = description.assigner.offset
        self._reduce = Reducing(description.reduce_function).reduce
        self._windows: dict[int, dict[Any, Any]] = {}
        """By window start: partial results by key."""
        self._held = 0
        self._watermark = MIN_LONG_VALUE
        self._is_suspended = False
        self._is_worthwhile = True
        self._tried, self._partials = 0, 0

    def push_batch(self, values: list[Any], timestamps: Timestamps | None) -> None:
        if not self._is_worthwhile or self._is_suspended or timestamps is None or timestamps[0] is None:
            super().push_batch(values, timestamps)
            return
        times = cast("Sequence[int]", timestamps)
        try:
            first, latest = self._start_of(min(times)), max(times)
        except TypeError:  # Some elements have no timestamp: for the window operator to refuse.
            super().push_batch(values, timestamps)
            return
        if first + self._size > self._watermark + 1 and latest < first + self._size:
            self._combine(first, values)
        else:
            self._combine_by_window(values, times)
        if self._held > MOST_HELD:
            self._send_all()

    def _combine_by_window(self, values: list[Any], times: Sequence[int]) -> None:
        shares: dict[int, tuple[list[Any], list[int]]] = {}
        start = end = 0
        for value, timestamp in zip(values, times, strict=True):
            if not start <= timestamp < end:
                start = self._start_of(timestamp)
                end = start + self._size
                share = shares.setdefault(start, ([], []))
            share[0].append(value)
            share[1].append(timestamp)
        for window_start, share in shares.items():
            if window_start + self._size <= self._watermark + 1:
                # Late elements are for the window operator to judge, one by one.
                super().push_batch(*share)
            else:
                self._combine(window_start, share[0])

    def _combine(self, start: int, values: list[Any]) -> None:
        """Select the key, look up, reduce: one loop, because this is where a busy job spends its time."""
        partials = self._windows.setdefault(start, {})
        before = len(partials)
        select, reduce, get = self._select, self._reduce, partials.get
        for value in values:
            key = select(value)
            try:
                held = get(key)
            except TypeError:
                check_keys([key])
                raise
            partials[key] = value if held is None else reduce(held, value)
        opened = len(partials) - before
        self._held += opened
        self._partials += opened
        self._tried += len(values)

    def _start_of(self, timestamp: int) -> int:
        return timestamp - (timestamp - self._offset) % self._size

    # --- what is held back leaves in time ----------------------------------------------------------------------------

    def push_watermark(self, watermark: int) -> None:
        self._watermark = watermark
        self._is_suspended = False
        for start in [start for start in self._windows if start + self._size <= watermark + 1]:
            self._send_window(start)
        super().push_watermark(watermark)

    def push_status(self, idle: bool) -> None:
        self._send_all()
        # While idle, others may move the watermark past what this channel knows: lateness is decided downstream then.
        self._is_suspended = self._is_suspended or idle
        super().push_status(idle)

    def push_end_of_data(self) -> None:
        self._send_all()
        super().push_end_of_data()

    def end_epoch(self) -> None:
        self._send_all()
        super().end_epoch()
        if self._tried > _TRIAL_RECORDS:
            self._is_worthwhile = self._tried >= self._partials * _LEAST_REDUCTION
            self._tried = self._partials = 0

    def memory(self) -> Any:
        return super().memory(), self._watermark, self._is_suspended, self._is_worthwhile

    def restore(self, memory: Any) -> None:
        dealer, self._watermark, self._is_suspended, self._is_worthwhile = memory
        super().restore(dealer)

    def _send_all(self) -> None:
        for start in list(self._windows):
            self._send_window(start)

    def _send_window(self, start: int) -> None:
        partials = self._windows.pop(start)
        self._held -= len(partials)
        self._deliver(list(partials), list(partials.values()), [start] * len(partials))

    def _deliver(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        self.records_out += len(keys)
        self.send(cast(ByKeyGroup, self.dealer).deal_keyed(keys, values, timestamps))
