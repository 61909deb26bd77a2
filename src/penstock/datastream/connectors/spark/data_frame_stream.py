"""The rows of a streaming DataFrame as a stream."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.common.exceptions import InvalidProgramError, JobExecutionError
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.bad_records import BadRecordHandler, BadRecords
from penstock.datastream.connectors.file_system.source import FilePart, FileSource
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    ReaderOutput,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from penstock.datastream.connectors.spark.batch_spool import MOST_AHEAD, BatchSpool
from penstock.datastream.connectors.spark.data_frame import DataFrameSource, row_type_of
from penstock.datastream.connectors.support.split_reading import OffsetSplit, OpenSplit, SplitsReader
from penstock.datastream.formats.parquet import ParquetColumnarRowInputFormat
from penstock.files.locations import location_within

__all__ = ["StreamingDataFrameSource", "source_of"]

_LOOK_MS = 100
_ENDING_TRIGGERS = ("availableNow", "once")


def source_of(data_frame: Any, trigger: Mapping[str, Any] | None) -> DataFrameSource | StreamingDataFrameSource:
    """The source of `env.from_data_frame(...)`."""
    if getattr(data_frame, "isStreaming", False):
        return StreamingDataFrameSource(data_frame, trigger)
    if trigger:
        raise ValueError(
            f"from_data_frame: only a streaming DataFrame has a trigger, but {trigger!r} is for a batch one"
        )
    return DataFrameSource(data_frame)


@dataclass(frozen=True)
class SpoolPosition:
    """What a checkpoint keeps of the enumerator."""

    folder: str
    next_batch: int
    unassigned: tuple[OffsetSplit, ...] = ()
    unread: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """For each batch that was taken and is not removed: its files that are not read to their end."""
    paths: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """For each of these batches: all its files."""
    has_all: bool = False
    """True if the query has ended."""


class StreamingDataFrameSource(Source[Any, OffsetSplit, SpoolPosition]):
    """The rows of a streaming DataFrame; made by `env.from_data_frame(df)`.

    The driver runs the DataFrame's query. Each micro-batch is written once, as Parquet files next to the job's
    checkpoints, and read from there; what Spark knows of the query is there, too. A checkpoint says how far each file
    is read. The restoring job continues to read them, and Spark continues the query from there.
    """

    def __init__(self, data_frame: Any, trigger: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._data_frame = data_frame
        self._trigger = dict(trigger or {})
        self.row_type = row_type_of(data_frame.schema.jsonValue())
        self._ends = any(self._trigger.get(name) for name in _ENDING_TRIGGERS)

    def __repr__(self) -> str:
        return f"StreamingDataFrameSource({self.row_type!r}, trigger={self._trigger})"

    def __getstate__(self) -> dict[str, Any]:
        # The rows are in files when readers begin: a DataFrame cannot leave the driver, and need not.
        return {**self.__dict__, "_data_frame": None}

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._ends else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation:
        return self.row_type

    def create_enumerator(self, context: SplitEnumeratorContext[OffsetSplit]) -> BatchesEnumerator:
        folder = location_within(context.get_storage_folder(), secrets.token_hex(8))
        return self.restore_enumerator(context, SpoolPosition(folder, 0))

    def restore_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit], checkpoint: SpoolPosition
    ) -> BatchesEnumerator:
        return BatchesEnumerator(context, self, checkpoint, self._ends)

    def start_query(self, spool: BatchSpool) -> Any:
        """Start the query, or continue it, and give its batches to the spool."""
        if self._data_frame is None:
            raise InvalidProgramError(
                "from_data_frame: the DataFrame cannot go to another process; run the job in the program that made it"
            )
        writer = self._data_frame.writeStream.foreachBatch(spool.add).option("checkpointLocation", spool.query_folder)
        return (writer.trigger(**self._trigger) if self._trigger else writer).start()

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, OffsetSplit]:
        files = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(self.row_type), "rows").build()
        return BatchesReader(context, partial(files._read, BadRecordHandler(BadRecords.fail(), context)))


class BatchesEnumerator(SplitEnumerator[OffsetSplit, SpoolPosition]):
    """Runs the query, and deals out the files of its batches, in order, to readers that ask.

    A batch is removed when it was read and two checkpoints know that: the last one can always be restored.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext[OffsetSplit],
        source: StreamingDataFrameSource,
        former: SpoolPosition,
        ends: bool,
    ) -> None:
        self._context = context
        self._source = source
        self._ends = ends
        # The job waits for a query that ends, so such a query must not wait for the job.
        self._spool = BatchSpool(former.folder, former.next_batch, None if ends else MOST_AHEAD)
        self._query: Any = None
        self._next_batch = former.next_batch
        self._unassigned = list(former.unassigned)
        self._unread = {batch: set(paths) for batch, paths in former.unread}
        self._paths = {batch: list(paths) for batch, paths in former.paths}
        self._has_all = former.has_all
        self._waiting: dict[int, None] = {}
        self._is_closed = False
        self._to_remove: list[tuple[int, list[int]]] = []
        """Batches that were read by a checkpoint, with its number."""

    # --- the query ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._has_all:
            return
        if self._ends:
            self._context.call_async(self._run_to_the_end, self._found)
        else:
            self._context.call_async(self._look, self._found, 0, _LOOK_MS)

    def _run_to_the_end(self) -> list[tuple[int, list[FilePart]]]:
        """All batches that there will be."""
        self._start_query()
        self._query.awaitTermination()
        return self._taken()

    def _look(self) -> list[tuple[int, list[FilePart]]]:
        if self._query is None:
            self._start_query()
        found = self._taken()
        if not self._query.isActive and not self._is_closed and not found:
            raise self._ended()
        return found

    def _start_query(self) -> None:
        self._spool.check()
        self._query = self._source.start_query(self._spool)
        if self._is_closed:
            self._query.stop()

    def _taken(self) -> list[tuple[int, list[FilePart]]]:
        """The complete batches from the next one on."""
        taken: list[tuple[int, list[FilePart]]] = []
        while (parts := self._spool.take(self._next_batch + len(taken))) is not None:
            taken.append((self._next_batch + len(taken), parts))
        return taken

    def _ended(self) -> JobExecutionError:
        failure = self._query.exception()
        if failure is None:
            return JobExecutionError("from_data_frame: the query of the streaming DataFrame was stopped from outside")
        return JobExecutionError(f"from_data_frame: the query of the streaming DataFrame failed: {failure}")

    def _found(self, batches: Any, error: BaseException | None) -> None:
        if error is not None:
            raise error
        for batch_id, parts in batches:
            if batch_id == self._next_batch:
                self._take(batch_id, parts)
        self._has_all = self._ends
        self._deal()

    def _take(self, batch_id: int, parts: list[FilePart]) -> None:
        self._next_batch += 1
        self._paths[batch_id] = [part.path for part in parts]
        self._unread[batch_id] = {part.path for part in parts}
        self._unassigned += [OffsetSplit(part.path, part) for part in parts]

    def close(self) -> None:
        self._is_closed = True
        self._spool.close()
        if self._query is not None:
            self._query.stop()

    # --- the readers -------------------------------------------------------------------------------------------------

    def handle_split_request(self, subtask_id: int, requester_hostname: str | None) -> None:
        self._waiting[subtask_id] = None
        self._deal()

    def add_reader(self, subtask_id: int) -> None:
        self._deal()

    def add_splits_back(self, splits: list[OffsetSplit], subtask_id: int) -> None:
        self._unassigned = [*splits, *self._unassigned]

    def _deal(self) -> None:
        while self._waiting and (self._unassigned or self._has_all):
            subtask = next(iter(self._waiting))
            del self._waiting[subtask]
            if self._unassigned:
                self._context.assign_split(self._unassigned.pop(0), subtask)
            else:
                self._context.signal_no_more_splits(subtask)
        waiting = [split.content.path for split in self._unassigned[:1]]
        self._spool.make_room(self._batch_of(waiting[0]) if waiting else self._next_batch)

    def handle_source_event(self, subtask_id: int, source_event: Any) -> None:
        """A file was read to its end."""
        self._unread[self._batch_of(source_event)].discard(source_event)

    def _batch_of(self, path: str) -> int:
        return next(batch for batch, paths in self._paths.items() if path in paths)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def snapshot_state(self, checkpoint_id: int) -> SpoolPosition:
        self._to_remove.append((checkpoint_id, [batch for batch, unread in self._unread.items() if not unread]))
        return SpoolPosition(
            self._spool.folder,
            self._next_batch,
            tuple(self._unassigned),
            tuple((batch, tuple(sorted(paths))) for batch, paths in self._unread.items()),
            tuple((batch, tuple(paths)) for batch, paths in self._paths.items()),
            self._has_all,
        )

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        for _, batches in [each for each in self._to_remove if each[0] < checkpoint_id]:
            for batch in batches:
                if batch in self._paths:
                    self._spool.remove(batch, self._paths.pop(batch))
                    del self._unread[batch]
        self._to_remove = [each for each in self._to_remove if each[0] >= checkpoint_id]


class BatchesReader(SplitsReader):
    """Reads files of batches, and reports each to the enumerator when it has been read."""

    def _end(self, current: OpenSplit, output: ReaderOutput) -> None:
        super()._end(current, output)
        self._context.send_source_event_to_coordinator(current.split.content.path)
