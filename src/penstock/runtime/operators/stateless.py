"""map, flat_map and filter. Chains of them are fused by `penstock.runtime.chain_compiler`."""

from __future__ import annotations

from itertools import compress
from typing import Any

from penstock.graph.descriptions import FilterDescription, FlatMapDescription, MapDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.user_function import UserFunction, results_of


class UserFunctionOperator(StreamOperator):
    """An operator around one user function that lives as long as the operator."""

    def __init__(self, function: Any, method: str) -> None:
        self.user_function = UserFunction(function, method)

    def open(self) -> None:
        self.user_function.open(StreamingRuntimeContext(self.context, has_keyed_state=False))

    def close(self) -> None:
        self.user_function.close()


class MapOperator(UserFunctionOperator):
    def __init__(self, description: MapDescription) -> None:
        super().__init__(description.function, "map")

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        call = self.user_function.call
        self.output.collect_batch([call(value) for value in batch.values], batch.timestamps)


class FlatMapOperator(UserFunctionOperator):
    def __init__(self, description: FlatMapDescription) -> None:
        super().__init__(description.function, "flat_map")

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        call = self.user_function.call
        if batch.timestamps is None:
            self.output.collect_batch([out for value in batch.values for out in results_of(call(value))], None)
            return
        values: list[Any] = []
        timestamps: list[int | None] = []
        for value, timestamp in zip(batch.values, batch.timestamps, strict=True):
            before = len(values)
            values.extend(results_of(call(value)))
            timestamps.extend([timestamp] * (len(values) - before))
        self.output.collect_batch(values, timestamps)


class FilterOperator(UserFunctionOperator):
    def __init__(self, description: FilterDescription) -> None:
        super().__init__(description.function, "filter")

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        keep = list(map(self.user_function.call, batch.values))
        timestamps = None if batch.timestamps is None else list(compress(batch.timestamps, keep))
        self.output.collect_batch(list(compress(batch.values, keep)), timestamps)
