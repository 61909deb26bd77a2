"""The rolling reduce of a keyed stream; sum, min and max are reduces, too."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

from penstock.common.constants import MAX_LONG_VALUE
from penstock.graph.descriptions import ReduceDescription
from penstock.runtime.batch import Batch
from penstock.runtime.element_copies import IMMUTABLE_TYPES, as_it_is, copied_unless_tuple
from penstock.runtime.generated_loop import GeneratedLoop, LoopScope, filled, source_of
from penstock.runtime.operators.keyed import KeyedOperator
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.state.table import VOID_NAMESPACE
from penstock.runtime.user_function import UserFunction

_LOOP_TEXT = """\
def reduce_all(keys, values, partials, opened):
    out = []
    append = out.append
    get = partials.get
    for key, value in zip(keys, values):
        held = get(key)
        if held is None:
            if key not in partials:
                opened.append(key)
        else:
            self_backend.current_key = key
            value = {reduced}
        partials[key] = value
        append({emitted})
    return out
"""


class ReduceOperator(KeyedOperator):
    """Keeps one value per key and emits the new value for every element.

    As in Flink, None is no value: if the function returns None, the next element counts as the first of its key.
    """

    def __init__(self, description: ReduceDescription) -> None:
        super().__init__(description)
        self.user_function = UserFunction(description.function, "reduce")
        self._check_first: Callable[[Any], None] | None = getattr(description.function, "check", None)
        """Raises if the first element lacks the field to aggregate; `reduce` fails only at a key's second element."""

    def open(self) -> None:
        self.user_function.open(StreamingRuntimeContext(self.context, has_keyed_state=True))
        self._table = self.context.keyed_state.table("_reduce")

    def close(self) -> None:
        self.user_function.close()

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if batch.values:
            self.output.collect_batch(self.reduced(batch, self.keys_of(batch)), batch.timestamps)

    def reduced(self, batch: Batch, keys: list[Any]) -> list[Any]:
        """For each element: the value of its key after it."""
        if self._check_first is not None:
            self._check_first(batch.values[0])
            self._check_first = None
        reduced = self._table.open_namespace(VOID_NAMESPACE, keys)
        new: list[Any] = []
        try:
            results: list[Any] = self._loop.run(keys, batch.values, reduced, new)
        finally:  # Also for an element that fails and is left out: the function may have changed the value of its key.
            if self._table.wants_notes(VOID_NAMESPACE):
                self._table.note_all_written(VOID_NAMESPACE, keys, new)
            self._table.close_namespace(VOID_NAMESPACE)
        return results

    @cached_property
    def _loop(self) -> GeneratedLoop:
        """Looks up, reduces, keeps and emits; a small user function is inlined."""
        copied = self.context.copied_result
        scope = LoopScope(self.context.inlines_functions, {"zip": zip, "self_backend": self.context.keyed_state})
        scope.locals |= {"type_of": type, "tuple_type": tuple, "immutable_types": IMMUTABLE_TYPES, "copied": copied}
        # The value is kept to be reduced with the next element, so the receiver gets a copy of a mutable value.
        emitted = "value if type_of(value) in immutable_types else copied(value)"
        if copied is as_it_is:
            emitted = "value"
        elif copied is copied_unless_tuple:
            emitted = "value if type_of(value) is tuple_type else copied(value)"
        reduced = scope.line(scope.call("f0", self.user_function.call, "held", "value"), "f0")
        return scope.compile(source_of(filled(_LOOP_TEXT, reduced=reduced, emitted=emitted), "reduce"))


class FinalReduceOperator(ReduceOperator):
    """Emits one value per key at the end of the input, as Flink does in batch mode: a timer of each key waits for it.

    A key whose elements were reduced to None has no value.
    """

    def open(self) -> None:
        super().open()
        self._timers = self.context.timer_service("reduce-end", self.on_event_time, self.on_event_time)

    def process_batch(self, batch: Batch, input_index: int = 0) -> None:
        if not batch.values:
            return
        keys = self.keys_of(batch)
        self.reduced(batch, keys)
        for key in dict.fromkeys(keys):  # Each key once, in an order that is the same in every process.
            self.context.keyed_state.current_key = key
            self._timers.register_event_time_timer(VOID_NAMESPACE, MAX_LONG_VALUE)

    def on_event_time(self, timestamp: int, key: Any, namespace: Hashable) -> None:
        reduced = self._table.get(VOID_NAMESPACE, key)
        if reduced is not None:
            self.output.collect(reduced, None)


def build_reduce(description: ReduceDescription) -> ReduceOperator:
    return FinalReduceOperator(description) if description.only_final else ReduceOperator(description)
