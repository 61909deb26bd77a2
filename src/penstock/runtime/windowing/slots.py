"""Spans of time in which all elements belong to the same windows, of tumbling and sliding windows."""

from __future__ import annotations

from typing import Any, NamedTuple


class Slot(NamedTuple):
    """From `start` to `end` (exclusive)."""

    start: int
    end: int


class Slots:
    """Slots begin and end where windows do: once or twice in each slide."""

    def __init__(self, assigner: Any) -> None:
        self._slide: int = assigner.slide
        self._offset: int = assigner.offset
        self._window_end: int = assigner.size % assigner.slide
        """How far into a slide windows end."""

    def at(self, timestamp: int) -> Slot:
        into_slide = (timestamp - self._offset) % self._slide
        begun = timestamp - into_slide
        if into_slide >= self._window_end:
            return Slot(begun + self._window_end, begun + self._slide)
        return Slot(begun, begun + self._window_end)

    def first_window_end(self, slot: Slot) -> int:
        """Where the first window ends that a slot belongs to."""
        return slot.end + (self._offset + self._window_end - slot.end) % self._slide
