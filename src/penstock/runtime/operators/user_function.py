"""The base class of operators that call one user function for every element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import repeat
from typing import Any

from penstock.graph.descriptions import KeySelectorFunction
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.operators.keyed import keys_of
from penstock.runtime.runtime_context import StreamingRuntimeContext
from penstock.runtime.state.direct_views import NO_KEY
from penstock.runtime.user_function import UserFunction


class UserFunctionOperator(StreamOperator):
    """An operator with one user function, which is opened and closed with the operator.

    `methods` and `key_selectors` have one item for each input. With a key selector, the function has keyed state.
    """

    def __init__(
        self,
        function: Any,
        methods: tuple[str, ...],
        key_selectors: tuple[KeySelectorFunction | None, ...] = (None, None),
    ) -> None:
        self.user_function = UserFunction(function, methods[0])
        self.calls = [self.user_function.method(method) for method in methods]
        self.key_selectors = key_selectors
        self.is_keyed = any(selector is not None for selector in key_selectors)

    def open(self) -> None:
        with self.context.keyed_state.of_nobody() if self.is_keyed else nullcontext():
            self.user_function.open(StreamingRuntimeContext(self.context, has_keyed_state=self.is_keyed))

    def close(self) -> None:
        self.user_function.close()

    def keys(self, batch: Batch, input_index: int) -> Iterable[Any]:
        """The current key for each element; `NO_KEY` for all elements of an input without keys."""
        selector = self.key_selectors[input_index]
        return repeat(NO_KEY) if selector is None else keys_of(batch, selector)

    def elements(self, batch: Batch, input_index: int = 0) -> Iterable[Any]:
        """The values of the batch. On a keyed stream, iterating sets the current key to the key of each value."""
        selector = self.key_selectors[input_index]
        if selector is not None:
            return self._keyed(keys_of(batch, selector), batch.values)
        if self.is_keyed:
            self.context.keyed_state.clear_current_key()
        return batch.values

    def results_of_each(self, batch: Batch, input_index: int = 0) -> list[Any]:
        """The function's result for each element, copied so that it belongs to the receiver."""
        call, copied = self.calls[input_index], self.context.copied_result
        results: list[Any] = []
        for value in self.elements(batch, input_index):
            results.append(copied(call(value)))
        return results

    def _keyed(self, keys: list[Any], values: list[Any]) -> Iterator[Any]:
        backend = self.context.keyed_state
        for key, element in zip(keys, values, strict=True):
            backend.current_key = key
            yield element
