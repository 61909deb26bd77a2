"""Slots: spans of time whose elements all belong to the same tumbling or sliding windows. Flink SQL's slices."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE

_FIRST = MIN_LONG_VALUE + 1
"""The first timestamp: the smallest number stands for no event time."""


class Slot(NamedTuple):
    """From `start` to `end` (exclusive)."""

    start: int
    end: int


class Slots:
    """The slots of an assigner. A slot begins or ends wherever a window does: at one or two points in each slide."""

    def __init__(self, assigner: Any) -> None:
        self._slide: int = assigner.slide
        self._offset: int = assigner.offset
        self._window_end: int = assigner.size % assigner.slide
        """The time from the beginning of a slide to the point where windows end."""

    def at(self, timestamp: int) -> Slot:
        """The slot of an element with this timestamp."""
        into_slide = (timestamp - self._offset) % self._slide
        begun = timestamp - into_slide
        if into_slide >= self._window_end:
            return Slot(max(begun + self._window_end, _FIRST), begun + self._slide)
        return Slot(max(begun, _FIRST), begun + self._window_end)

    def first_window_end(self, slot: Slot) -> int:
        """The end of the first window that the slot belongs to."""
        return min(slot.end + (self._offset + self._window_end - slot.end) % self._slide, MAX_LONG_VALUE)
