"""The keys of a batch, and the base class of keyed operators."""

from __future__ import annotations

from typing import Any

from penstock.graph.descriptions import KeyedDescription, KeySelectorFunction
from penstock.runtime.batch import Batch, call_each
from penstock.runtime.element_copies import all_copied
from penstock.runtime.hashable_keys import hashable_keys
from penstock.runtime.nan_keys import with_one_nan
from penstock.runtime.operators.base import StreamOperator


def keys_of(batch: Batch, key_selector: KeySelectorFunction) -> list[Any]:
    """The keys that came with the batch, or else those that the selector returns for its elements.

    A key shares nothing with its element, which the operator's function may change.
    """
    if batch.keys is not None:
        return batch.keys
    return with_one_nan(hashable_keys(all_copied(call_each(key_selector, batch.values))))


class KeyedOperator(StreamOperator):
    """An operator after key_by, which knows the key of every element."""

    def __init__(self, description: KeyedDescription) -> None:
        self.key_selector = description.key_selector

    def keys_of(self, batch: Batch) -> list[Any]:
        return keys_of(batch, self.key_selector)
