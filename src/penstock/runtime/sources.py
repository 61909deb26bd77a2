"""Sources inside a task: they turn the part of the epoch that the driver assigned them into batches."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.graph import descriptions as d
from penstock.runtime.batch import Batch
from penstock.runtime.operators.base import StreamOperator

READ_BATCH_RECORDS = 4096


@dataclass(frozen=True)
class SourceAssignment:
    """What a source subtask is to read in this epoch. The last one is followed by the end of data."""

    payload: Any
    is_last: bool

    def encode(self) -> bytes:
        from penstock.runtime.chunk import encode_in_driver

        return encode_in_driver((self.payload, self.is_last))

    @staticmethod
    def decode(chunk: bytes) -> SourceAssignment:
        return SourceAssignment(*pickle.loads(chunk))


class SourceOperator(StreamOperator):
    """The head of a chain that has no input but assignments."""

    def read(self, payload: Any) -> Iterator[Batch]:
        """The records of one assignment, in order."""
        raise NotImplementedError


class AssignedRecordsOperator(SourceOperator):
    """The records themselves were assigned: a list, or a range of numbers."""

    def read(self, payload: Any) -> Iterator[Batch]:
        for start in range(0, len(payload), READ_BATCH_RECORDS):
            yield Batch(list(payload[start : start + READ_BATCH_RECORDS]))


def build_source_operator(description: d.SourceDescription) -> SourceOperator:
    match description:
        case d.CollectionSourceDescription() | d.SequenceSourceDescription() | d.SocketSourceDescription():
            return AssignedRecordsOperator()
    raise UnsupportedFeatureError(f"there is no source operator for {type(description).__name__}")
