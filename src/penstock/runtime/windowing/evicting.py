"""The window operator with an evictor: panes keep all elements, and the evictor prunes a pane whenever it fires."""

from __future__ import annotations

from typing import Any

from penstock.datastream.window import Evictor, TimestampedValue, Window
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.windowing.accumulation import Accumulation, TimestampedListing, accumulation_of
from penstock.runtime.windowing.operator import WindowOperator


class EvictingWindowOperator(WindowOperator):
    """Runs a `WindowDescription` with an evictor. Reduce and aggregate functions get the elements it leaves."""

    def __init__(self, description: WindowDescription) -> None:
        super().__init__(description)
        self.evictor: Evictor[Any, Any] = description.evictor

    def open(self) -> None:
        super().open()
        self._fold = accumulation_of(self.description, self.context.copied, self.context.inlines_functions)

    def build_accumulation(self) -> Accumulation:
        return TimestampedListing(self.context.copied)

    def fire(self, window: Window) -> None:
        held = self.panes.get(window)
        if held is None:
            return
        elements: list[TimestampedValue] = list(held)
        context = self.pane_context.at(window)
        self.evictor.evict_before(elements, len(elements), window, context)
        self.emit(window, self._folded(elements))
        self.evictor.evict_after(elements, len(elements), window, context)
        if elements:
            self.panes.put(window, elements)
        else:
            self.panes.clear(window)

    def _folded(self, elements: list[TimestampedValue]) -> list[Any]:
        """The elements for the window function: all of them, or the one that they are reduced or aggregated to."""
        if not elements:
            return self._fold.elements_of_nothing()
        held: Any = None
        copied = self.context.copied  # The pane continues to hold the elements.
        for value, timestamp in elements:
            held = self._fold.added(held, copied(value), timestamp)
        return self._fold.last_elements(held) or []
