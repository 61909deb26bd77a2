"""map, flat_map and filter, on one stream or on two connected ones.

`penstock.runtime.chain_compiler` fuses map, flat_map and filter into one loop, unless their stream is keyed.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

from penstock.graph.descriptions import (
    CoFlatMapDescription,
    CoMapDescription,
    FilterDescription,
    FlatMapDescription,
    MapDescription,
)
from penstock.runtime.batch import Batch, Timestamps, call_each
from penstock.runtime.operators.user_function import UserFunctionOperator
from penstock.runtime.user_function import results_of


class MapOperator(UserFunctionOperator):
    def __init__(self, description: MapDescription) -> None:
        super().__init__(description.function, ("map",), (description.key_selector,))

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        self.output.collect_batch(self.results_of_each(batch), batch.timestamps)


class FilterOperator(UserFunctionOperator):
    def __init__(self, description: FilterDescription) -> None:
        super().__init__(description.function, ("filter",), (description.key_selector,))

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        keep = call_each(self.calls[0], self.elements(batch))
        values, timestamps = _kept(keep, batch.values, batch.timestamps)
        self.output.collect_batch(list(map(self.context.copied_result, values)), timestamps)


class CoMapOperator(UserFunctionOperator):
    """Emits the result for each element, unless the function returned None."""

    def __init__(self, description: CoMapDescription) -> None:
        super().__init__(description.function, ("map1", "map2"), description.key_selectors)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        results = self.results_of_each(batch, input_index)
        keep = [result is not None for result in results]
        self.output.collect_batch(*_kept(keep, results, batch.timestamps))


def _kept(
    keep: list[Any], values: list[Any], timestamps: Timestamps | None
) -> tuple[list[Any], list[int | None] | None]:
    return list(compress(values, keep)), None if timestamps is None else list(compress(timestamps, keep))


class FlatMapOperator(UserFunctionOperator):
    def __init__(self, description: FlatMapDescription) -> None:
        super().__init__(description.function, ("flat_map",), (description.key_selector,))

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        call = self.calls[input_index]
        elements, copied = self.elements(batch, input_index), self.context.copied_result
        values: list[Any] = []
        if batch.timestamps is None:
            for value in elements:
                values.extend(map(copied, results_of(call(value))))
            self.output.collect_batch(values, None)
            return
        timestamps: list[int | None] = []
        for value, timestamp in zip(elements, batch.timestamps, strict=True):
            before = len(values)
            values.extend(map(copied, results_of(call(value))))
            timestamps.extend([timestamp] * (len(values) - before))
        self.output.collect_batch(values, timestamps)


class CoFlatMapOperator(FlatMapOperator):
    def __init__(self, description: CoFlatMapDescription) -> None:
        UserFunctionOperator.__init__(self, description.function, ("flat_map1", "flat_map2"), description.key_selectors)
