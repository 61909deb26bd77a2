"""The window operator with an evictor: panes keep all elements, and the evictor prunes them whenever they fire."""

from __future__ import annotations

import functools
from typing import Any, cast

from penstock.datastream.window import Evictor, TimestampedValue, Window
from penstock.graph.descriptions import WindowDescription
from penstock.runtime.windowing.contents import PaneContents, TimestampedContents
from penstock.runtime.windowing.evaluation import reduce_call
from penstock.runtime.windowing.operator import WindowOperator


class EvictingWindowOperator(WindowOperator):
    """Runs a `WindowDescription` with an evictor. Reduce and aggregate run over what the evictor left."""

    def __init__(self, description: WindowDescription) -> None:
        super().__init__(description)
        self.evictor: Evictor[Any, Any] = description.evictor

    def open_contents(self) -> PaneContents:
        return TimestampedContents(self.backend)

    def fire(self, window: Window, state_window: Window) -> None:
        contents = cast(TimestampedContents, self.contents)
        elements: list[TimestampedValue] | None = contents.get(state_window)
        if elements is None:
            return
        context = self.pane_context.at(window)
        self.evictor.evict_before(elements, len(elements), window, context)
        self.emit(window, self._folded([element.value for element in elements]))
        self.evictor.evict_after(elements, len(elements), window, context)
        contents.replace(state_window, elements)

    def _folded(self, values: list[Any]) -> list[Any]:
        """The elements as the window function gets them: all of them, or the one they amount to."""
        if self.description.reduce_function is not None:
            return [functools.reduce(reduce_call(self.description.reduce_function), values)] if values else []
        aggregate = self.description.aggregate_function
        if aggregate is not None:
            accumulator = aggregate.create_accumulator()
            for value in values:
                accumulator = aggregate.add(value, accumulator)
            return [aggregate.get_result(accumulator)]
        return values
