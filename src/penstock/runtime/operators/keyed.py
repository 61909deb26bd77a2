"""What keyed operators share."""

from __future__ import annotations

from typing import Any

from penstock.graph.descriptions import KeyedDescription
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator


class KeyedOperator(StreamOperator):
    """An operator behind key_by: knows the key of every element."""

    def __init__(self, description: KeyedDescription) -> None:
        self.key_selector = description.key_selector

    def keys_of(self, batch: Batch) -> list[Any]:
        """The keys of a batch: those that came with it, or computed here."""
        if batch.keys is not None:
            return batch.keys
        select = self.key_selector
        return [select(value) for value in batch.values]
