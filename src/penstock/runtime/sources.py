"""Sources inside a task: they turn the part of the epoch that the driver assigned them into batches."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from penstock.common.exceptions import UnsupportedFeatureError
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
"""Columns cost little for each record, and something for each batch."""


@dataclass(frozen=True)
class SourceAssignment:
    """What a source subtask is to read in this epoch. The last one is followed by the end of data."""

    payload: Any
    is_last: bool
    is_encoded: bool = False
    """True if the payload holds texts and bytes only, and nothing that was defined in the user's script."""

    def encode(self) -> bytes:
        return (encode if self.is_encoded else encode_in_driver)((self.payload, self.is_last))

    @staticmethod
    def decode(chunk: bytes) -> SourceAssignment:
        return SourceAssignment(*pickle.loads(chunk))


@dataclass(frozen=True)
class SourceReport:
    """What a reader reports to the driver at the end of an epoch."""

    requests: int = 0
    """How many splits it has asked for."""
    host: str = ""
    events: bytes | None = None
    is_at_end: bool = False
    has_more: bool = False
    """True if it stopped because the epoch was full."""
    records: int = 0
    watermark: int | None = None
    """How far it is in event time, if others are to wait for it."""

    def decoded_events(self) -> list[Any]:
        return [] if self.events is None else list(decode_state(self.events))


class SourceOperator(StreamOperator):
    """The head of a chain that has no input but assignments."""

    def read(self, payload: Any) -> Iterator[Batch]:
        """The records of one assignment, in order."""
        raise NotImplementedError

    def emit(self, batch: Batch) -> None:
        """Hand one of the batches that were read to who follows."""
        self.output.collect_batch(batch.values, batch.timestamps)

    def end_reading(self) -> None:
        """The last assignment was read: say what must be said before the last watermark."""

    def take_report(self) -> SourceReport | None:
        """What the driver must know after the epoch; None for a source that has nothing to say."""
        return None


class AssignedRecordsOperator(SourceOperator):
    """The records themselves were assigned: a list, or a range of numbers."""

    def __init__(self) -> None:
        self._column_maker = ColumnMaker()

    def read(self, payload: Any) -> Iterator[Batch]:
        """The values of a batch of numbers are a range."""
        is_in_columns = isinstance(payload, range) and self.output.takes_columns()
        size = _BATCH_IN_COLUMNS if is_in_columns else READ_BATCH_RECORDS
        for start in range(0, len(payload), size):
            part = payload[start : start + size]
            # Objects may be in a collection twice, or in several of its elements.
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
    """Chunks were assigned: what a source function has emitted, with its own watermarks and idleness."""

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

    def task_memory(self) -> Any:
        return self._emitter.is_idle

    def restore_task_memory(self, memory: Any) -> None:
        self._emitter.is_idle = memory


def build_source_operator(description: d.SourceDescription) -> SourceOperator:
    match description:
        case d.CollectionSourceDescription() | d.SequenceSourceDescription() | d.SocketSourceDescription():
            return AssignedRecordsOperator()
        case d.FunctionSourceDescription():
            return ReceivedChunksOperator()
        case d.SplitSourceDescription():
            from penstock.runtime.source_reading import SourceReaderOperator

            return SourceReaderOperator(description)
    raise UnsupportedFeatureError(f"there is no source operator for {type(description).__name__}")
