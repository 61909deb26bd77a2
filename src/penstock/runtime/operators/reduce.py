"""The rolling reduce of a keyed stream; sum, min and max are reduces too."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from penstock.common.constants import MAX_LONG_VALUE
from penstock.graph.descriptions import ReduceDescription
from penstock.runtime.batch import Batch
from penstock.runtime.element_copies import IMMUTABLE_TYPES, as_it_is
from penstock.runtime.operators.keyed import KeyedOperator
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.runtime.user_function import UserFunction

_MISSING = object()


class ReduceOperator(KeyedOperator):
    """Keeps one value per key and emits the new value for every element."""

    def __init__(self, description: ReduceDescription) -> None:
        super().__init__(description)
        self.user_function = UserFunction(description.function, "reduce")
        self._check_first: Callable[[Any], None] | None = getattr(description.function, "check", None)
        """Finds out with the first element, not with the second of a key, that it lacks the field to be summed."""

    def open(self) -> None:
        self.user_function.open(StreamingRuntimeContext(self.context, has_keyed_state=True))
        self._table = self.context.keyed_state.table("_reduce")

    def close(self) -> None:
        self.user_function.close()

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if batch.values:
            self.output.collect_batch(self.reduced(batch, self.keys_of(batch)), batch.timestamps)

    def reduced(self, batch: Batch, keys: list[Any]) -> list[Any]:
        """The value of its key after each element."""
        if self._check_first is not None:
            self._check_first(batch.values[0])
            self._check_first = None
        reduced = self._table.open_namespace(VOID_NAMESPACE)
        reduce = self.user_function.call
        backend = self.context.keyed_state
        copied = self.context.copied_result
        new: list[Any] = []
        results: list[Any] = []
        for key, value in zip(keys, batch.values, strict=True):
            before = reduced.get(key, _MISSING)
            if before is not _MISSING:
                backend.current_key = key
                value = reduce(before, value)
            else:
                new.append(key)
            reduced[key] = value
            # It stays here as what the next element is reduced with, so the receiver gets a copy.
            results.append(value if copied is as_it_is or type(value) in IMMUTABLE_TYPES else copied(value))
        self._table.note_all_written(VOID_NAMESPACE, keys, new)
        return results


class FinalReduceOperator(ReduceOperator):
    """Emits one value per key, at the end of time: a timer of each key waits for it, as in Flink's batch mode."""

    def open(self) -> None:
        super().open()
        self._timers = self.context.timer_service("reduce-end", self.on_event_time, self.on_event_time)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if not batch.values:
            return
        keys = self.keys_of(batch)
        self.reduced(batch, keys)
        for key in dict.fromkeys(keys):  # Each once, in an order that is the same in every process.
            self.context.keyed_state.current_key = key
            self._timers.register_event_time_timer(VOID_NAMESPACE, MAX_LONG_VALUE)

    def on_event_time(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        self.output.collect(self._table.get(VOID_NAMESPACE, key), None)


def build_reduce(description: ReduceDescription) -> ReduceOperator:
    return FinalReduceOperator(description) if description.only_final else ReduceOperator(description)
