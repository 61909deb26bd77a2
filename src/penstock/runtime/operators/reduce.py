"""The rolling reduce of a keyed stream; sum, min and max are reduces too."""

from __future__ import annotations

from typing import Any

from penstock.graph.descriptions import ReduceDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.keyed import KeyedOperator
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.runtime.user_function import UserFunction

_MISSING = object()


class ReduceOperator(KeyedOperator):
    """Keeps one value per key. Emits the new value for every element, or only the last one in batch mode."""

    def __init__(self, description: ReduceDescription) -> None:
        super().__init__(description)
        self.user_function = UserFunction(description.function, "reduce")
        self._only_final = description.only_final

    def open(self) -> None:
        self.user_function.open(StreamingRuntimeContext(self.context, has_keyed_state=True))
        self._table = self.context.keyed_state.table("_reduce")

    def close(self) -> None:
        self.user_function.close()

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if not batch.values:
            return
        keys = self.keys_of(batch)
        reduced = self._table.entries.setdefault(VOID_NAMESPACE, {})
        reduce = self.user_function.call
        backend = self.context.keyed_state
        results: list[Any] = []
        for key, value in zip(keys, batch.values, strict=True):
            before = reduced.get(key, _MISSING)
            if before is not _MISSING:
                backend.current_key = key
                value = reduce(before, value)
            reduced[key] = value
            results.append(value)
        self._table.changed[VOID_NAMESPACE].update(keys)
        if not self._only_final:
            self.output.collect_batch(results, batch.timestamps)

    def finish(self) -> None:
        if self._only_final:
            self.output.collect_batch(list(self._table.entries.get(VOID_NAMESPACE, {}).values()), None)
