"""Sources inside a task: they turn the assignments of the driver into batches."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.own_copies import own_copy
from penstock.graph import descriptions as d
from penstock.runtime.batch import Batch
from penstock.runtime.chunk import Status, Watermark, encode, encode_in_driver, read_chunk
from penstock.runtime.element_copies import all_copied
from penstock.runtime.operators.base import StreamOperator
from penstock.runtime.outputs import ColumnMaker
from penstock.runtime.split_watermarks import WatermarkEmitter
from penstock.runtime.state.codec import decode_state

READ_BATCH_RECORDS = 4096
_BATCH_IN_COLUMNS = 4 * READ_BATCH_RECORDS
"""Larger, because most of the cost of columns is per batch, not per record."""


@dataclass(frozen=True)
class SourceAssignment:
    """What a source subtask must read in this epoch. The end of data follows the last assignment."""

    payload: Any
    is_last: bool
    is_encoded: bool = False
    """True if the payload holds only strings and bytes, and no object of a class from the user's script."""

    def encode(self) -> bytes:
        return (encode if self.is_encoded else encode_in_driver)((self.payload, self.is_last))

    @staticmethod
    def decode(chunk: bytes) -> SourceAssignment:
        return SourceAssignment(*pickle.loads(chunk))


@dataclass(frozen=True)
class SourceReport:
    """What a reader reports to the driver at the end of an epoch."""

    requests: int = 0
    """How many splits the reader has requested."""
    host: str = ""
    events: bytes | None = None
    is_at_end: bool = False
    has_more: bool = False
    """True if the reader stopped because the epoch was full."""
    records: int = 0
    watermark: int | None = None
    """The source's watermark; None if the source is idle, or has no watermark yet."""

    def decoded_events(self) -> list[Any]:
        return [] if self.events is None else list(decode_state(self.events))


class SourceOperator(StreamOperator):
    """The head of a chain that has no input but assignments."""

    def read(self, payload: Any) -> Iterator[Batch]:
        """The records of one assignment, in order."""
        raise NotImplementedError

    def emit(self, batch: Batch) -> None:
        """Pass one of the batches from `read` to the next operator."""
        self.output.collect_batch(batch.values, batch.timestamps)

    def end_reading(self) -> None:
        """Called after the last assignment was read, before the last watermark is emitted."""

    def take_report(self) -> SourceReport | None:
        """The report to the driver on this epoch; None for a source that reports nothing."""
        return None


class AssignedRecordsOperator(SourceOperator):
    """Its assignments are the records themselves: a list, or a range of numbers."""

    def __init__(self) -> None:
        self._column_maker = ColumnMaker()

    def read(self, payload: Any) -> Iterator[Batch]:
        """For a range of numbers, the values of each batch are a range, too."""
        is_in_columns = isinstance(payload, range) and self.output.takes_columns()
        size = _BATCH_IN_COLUMNS if is_in_columns else READ_BATCH_RECORDS
        for start in range(0, len(payload), size):
            part = payload[start : start + size]
            # The same object may occur several times in a collection, or in several of its elements.
            yield Batch(cast("list[Any]", part) if isinstance(part, range) else all_copied(list(part)))

    def emit(self, batch: Batch) -> None:
        if not isinstance(batch.values, range):
            super().emit(batch)
            return
        columns = self._column_maker.of_numbers(batch.values) if self.output.takes_columns() else None
        if columns is None:
            self.output.collect_batch(list(batch.values), None)
        else:
            self.output.collect_columns(columns)


class ReceivedChunksOperator(SourceOperator):
    """Its assignments are chunks of what a source function has emitted, including watermarks and idleness."""

    def __init__(self) -> None:
        self._emitter = WatermarkEmitter(self)

    def read(self, payload: Any) -> Iterator[Batch]:
        for chunk in payload:
            for event in read_chunk(chunk):
                match event:
                    case Batch():
                        yield event
                    case Watermark():
                        self._emitter.emit_watermark(event.timestamp)
                    case Status():
                        self._emitter.send_status(event.is_idle)

    def end_reading(self) -> None:
        self._emitter.send_status(False)

    def restore_task_memory(self, memory: Any) -> None:
        """Start active. Earlier versions saved whether the source was idle; now its spool says so again."""


def build_source_operator(description: d.SourceDescription) -> SourceOperator:
    match description:
        case d.CollectionSourceDescription() | d.SequenceSourceDescription() | d.SocketSourceDescription():
            return AssignedRecordsOperator()
        case d.FunctionSourceDescription():
            return ReceivedChunksOperator()
        case d.SplitSourceDescription():
            from penstock.runtime.source_reading import SourceReaderOperator

            return SourceReaderOperator(own_copy(description))
    raise UnsupportedFeatureError(f"there is no source operator for {type(description).__name__}")
