"""A function that is called once for each batch."""

from __future__ import annotations

from penstock.graph.descriptions import ListFunctionDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator


class ListFunctionOperator(StreamOperator):
    """Emits what the function makes of the elements of each batch."""

    def __init__(self, description: ListFunctionDescription) -> None:
        self._function = description.function
        self._timestamps_of = description.timestamps_of

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        results = self._function(batch.values)
        self.output.collect_batch(results, None if self._timestamps_of is None else self._timestamps_of(results))
