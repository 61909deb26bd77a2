"""The file sink in a subtask: buckets, and the part file that is being written in each."""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.common.own_copies import own_copy
from penstock.common.serialization import BulkWriter, Encoder
from penstock.datastream.connectors.file_system.bucketing import BucketAssignerContext, PartFileInfo
from penstock.datastream.connectors.file_system.compaction import PartsToCompact, WaitingParts
from penstock.datastream.connectors.file_system.part_files import (
    FileCommittable,
    InProgressFileToCleanup,
    PartFile,
    PartStream,
    resume_part,
)
from penstock.datastream.connectors.sink_v2 import (
    CommittingSinkWriter,
    SinkWriterContext,
    StatefulSinkWriter,
    WriterInitContext,
)
from penstock.files.locations import store_at
from penstock.files.store import FileStore

if TYPE_CHECKING:
    from penstock.datastream.connectors.file_system.sink import FileSinkOptions


@dataclass(frozen=True)
class BucketState:
    """The part file that a bucket continues after a restart: its bytes up to `part.length` count."""

    bucket_id: str
    created_ms: int
    part: PartFile


FileWriterState = BucketState | WaitingParts


class _EncodingWriter(BulkWriter):
    """A row format as a bulk writer that holds nothing back."""

    def __init__(self, encoder: Encoder, stream: PartStream) -> None:
        self._encoder = encoder
        self._stream = stream

    def add_element(self, element: Any) -> None:
        self._encoder.encode(element, self._stream)  # type: ignore[arg-type]  # a BinaryIO in all but name


class OpenPart(PartFileInfo):
    """A part file that is being written."""

    def __init__(
        self, bucket_id: str, path: str, hidden_path: str, stream: PartStream, writer: BulkWriter, created_ms: int
    ) -> None:
        self._bucket_id = bucket_id
        self._path = path
        self._hidden_path = hidden_path
        self._stream = stream
        self._writer = writer
        self._created_ms = self._updated_ms = created_ms
        self.is_saved = False
        """True if a checkpoint refers to it."""

    def get_bucket_id(self) -> str:
        return self._bucket_id

    def get_creation_time(self) -> int:
        return self._created_ms

    def get_size(self) -> int:
        return self._stream.size

    def get_last_update_time(self) -> int:
        return self._updated_ms

    def write(self, element: Any, now_ms: int) -> None:
        self._writer.add_element(element)
        self._updated_ms = now_ms

    def save(self, files: FileStore) -> BucketState:
        """Make everything written so far safe, and remember how much that is."""
        files.sync(self._stream.file, self._hidden_path)
        self.is_saved = True
        return BucketState(self._bucket_id, self._created_ms, self._part())

    def finish(self, files: FileStore) -> PartFile:
        """End the file; it stays hidden."""
        self._writer.finish()
        files.sync(self._stream.file, self._hidden_path)
        self._stream.file.close()
        return self._part()

    def show(self) -> None:
        """Let those who read the hidden file see what was written so far."""
        self._stream.file.flush()

    def dispose(self, files: FileStore, keeps_file: bool) -> None:
        try:
            self._stream.discard()
        finally:
            if not self.is_saved and not keeps_file:
                files.delete(self._hidden_path)

    def _part(self) -> PartFile:
        return PartFile(self._path, self._hidden_path, self._stream.size)


class Bucket:
    """A folder of the sink: at most one open part file, and those finished since the last checkpoint.

    Names are Flink's: `part-<unique id of this bucket in this subtask>-<number>`, and while the file is hidden
    `.part-<unique id>-<number>.inprogress.<another unique id>`.
    """

    def __init__(self, bucket_id: str, folder: str, options: FileSinkOptions, files: FileStore) -> None:
        self._bucket_id = bucket_id
        self._folder = folder
        self._policy = options.rolling_policy
        self._options = options
        self._files = files
        self._unique_id = str(uuid.uuid4())
        self._next_number = 0
        self._open: OpenPart | None = None
        self._finished: list[tuple[PartFile, bool]] = []
        """Each with True if a checkpoint refers to the file."""
        self._unsaved: list[PartFile] = []
        """What was prepared for a checkpoint that has no state of this bucket yet."""
        self._copied: list[InProgressFileToCleanup] = []
        self._to_compact = None if options.compaction is None else PartsToCompact(options.compaction, files)

    @property
    def has_open_part(self) -> bool:
        return self._open is not None

    @property
    def is_active(self) -> bool:
        return self._open is not None or bool(self._finished) or bool(self._to_compact)

    def write(self, element: Any, now_ms: int) -> None:
        part = self._open
        if part is None or self._policy.should_roll_on_event(part, element):
            self._finish_part()
            part = self._open = self._new_part(now_ms)
        part.write(element, now_ms)

    def on_processing_time(self, now_ms: int) -> None:
        if self._open is not None and self._policy.should_roll_on_processing_time(self._open, now_ms):
            self._finish_part()

    def prepare_commit(self, is_last: bool) -> list[FileCommittable]:
        """The files finished since the last checkpoint, with the open one if it rolls now; and what is not needed."""
        if self._open is not None:
            if is_last or not self._can_stay_open() or self._policy.should_roll_on_checkpoint(self._open):
                self._finish_part()
        finished = [part for part, _ in self._finished]
        self._unsaved = [part for part, is_saved in self._finished if not is_saved]
        self._finished = []
        shown: list[FileCommittable] = list(finished)
        if self._to_compact is not None:
            before = {*self._to_compact.parts, *finished}
            shown = self._to_compact.prepare_commit(finished, is_last)
            self._unsaved += [each for each in shown if isinstance(each, PartFile) and each not in before]
        copied, self._copied = self._copied, []
        return [*shown, *copied]

    def snapshot(self) -> list[FileWriterState]:
        self._unsaved = []
        states: list[FileWriterState] = [] if self._open is None else [self._open.save(self._files)]
        return [*states, self._to_compact.snapshot(self._bucket_id)] if self._to_compact else states

    def restore(self, state: FileWriterState) -> None:
        if isinstance(state, BucketState):
            self._continue(state)
        elif self._to_compact is not None:
            self._to_compact.restore(state)
        else:  # From here on, nothing is compacted.
            self._finished.extend((part, True) for part in state.parts)

    def _continue(self, state: BucketState) -> None:
        """Continue a file; after a change of parallelism there may be several, of which one stays open."""
        saved = state.part
        part = PartFile(saved.path, _hidden(saved.path), saved.length)
        stream = PartStream(resume_part(self._files, saved.hidden_path, saved.length, part.hidden_path), saved.length)
        self._copied.append(InProgressFileToCleanup(saved.hidden_path))
        if self._open is None and self._can_stay_open():
            self._open = self._opened(part.path, part.hidden_path, stream, state.created_ms)
        else:
            self._files.sync(stream.file, part.hidden_path)
            stream.file.close()
            self._finished.append((part, False))

    def show(self) -> None:
        if self._open is not None:
            self._open.show()

    def dispose(self, keeps_files: bool) -> None:
        """Close; files that no checkpoint refers to are removed, as no restart will ask for them.

        With `keeps_files` they stay, hidden: in a job without checkpoints they are all there is of its results.
        """
        unsaved = [*self._unsaved, *(part for part, is_saved in self._finished if not is_saved)]
        self._finished, self._unsaved = [], []
        for part in () if keeps_files else unsaved:
            self._files.delete(part.hidden_path)
        if self._open is not None:
            part_to_close, self._open = self._open, None
            part_to_close.dispose(self._files, keeps_files)

    def _can_stay_open(self) -> bool:
        """True if the file may stay open over a checkpoint: it can be cut, and needs nothing written at its end."""
        return self._files.can_append and self._options.encoder is not None

    def _finish_part(self) -> None:
        if self._open is not None:
            self._finished.append((self._open.finish(self._files), self._open.is_saved))
            self._open = None

    def _new_part(self, now_ms: int) -> OpenPart:
        names = self._options.output_file_config
        name = f"{names.part_prefix}-{self._unique_id}-{self._next_number}{names.part_suffix}"
        self._next_number += 1
        path = f"{self._folder}/{name}"
        hidden_path = _hidden(path)
        return self._opened(path, hidden_path, PartStream(self._files.create(hidden_path)), now_ms)

    def _opened(self, path: str, hidden_path: str, stream: PartStream, created_ms: int) -> OpenPart:
        options = self._options
        writer: BulkWriter
        if options.encoder is not None:
            writer = _EncodingWriter(options.encoder, stream)
        else:
            assert options.writer_factory is not None
            writer = options.writer_factory.create(stream)  # type: ignore[arg-type]  # a BinaryIO in all but name
        return OpenPart(self._bucket_id, path, hidden_path, stream, writer, created_ms)


def _hidden(path: str) -> str:
    """A unique, hidden name for a file until it is finished."""
    folder, name = posixpath.split(path)
    return f"{folder}/.{name}.inprogress.{uuid.uuid4()}"


class _ElementContext(BucketAssignerContext):
    def __init__(self) -> None:
        self.now_ms = 0
        self.writer_context: SinkWriterContext | None = None

    def current_processing_time(self) -> int:
        return self.now_ms

    def current_watermark(self) -> int:
        assert self.writer_context is not None
        return self.writer_context.current_watermark()

    def timestamp(self) -> int | None:
        assert self.writer_context is not None
        return self.writer_context.timestamp()


class FileWriter(CommittingSinkWriter[Any, FileCommittable], StatefulSinkWriter[Any, FileWriterState]):
    """Writes elements into the part files of their buckets."""

    def __init__(self, options: FileSinkOptions, context: WriterInitContext, states: Iterable[FileWriterState]) -> None:
        # Subtasks may run in one process, and users' policies and assigners may count or remember elements.
        self._options = replace(options, rolling_policy=own_copy(options.rolling_policy))
        self._files, self._base_folder = store_at(options.base_path)
        self._assigner = own_copy(options.bucket_assigner)
        self._element_context = _ElementContext()
        self._time = context.get_processing_time_service()
        self._now = self._time.get_current_processing_time
        self._buckets: dict[str, Bucket] = {}
        self._has_timer = False
        self._takes_checkpoints = context.takes_checkpoints()
        self._has_more_to_show = False
        self._is_last = False
        for state in states:
            self._bucket(state.bucket_id).restore(state)
            self._check_later()

    def write(self, element: Any, context: SinkWriterContext) -> None:
        about = self._element_context
        about.now_ms = now_ms = self._now()
        about.writer_context = context
        bucket_id = self._assigner.get_bucket_id(element, about)
        bucket = self._buckets.get(bucket_id) or self._bucket(bucket_id)
        bucket.write(element, now_ms)
        if not self._has_timer:
            self._check_later()
        if not self._takes_checkpoints and not self._has_more_to_show:
            self._show_soon()

    def flush(self, end_of_input: bool) -> None:
        self._is_last = self._is_last or end_of_input

    def prepare_commit(self) -> list[FileCommittable]:
        self._buckets = {bucket_id: bucket for bucket_id, bucket in self._buckets.items() if bucket.is_active}
        return [part for bucket in self._buckets.values() for part in bucket.prepare_commit(self._is_last)]

    def snapshot_state(self, checkpoint_id: int) -> list[FileWriterState]:
        return [state for bucket in self._buckets.values() for state in bucket.snapshot()]

    def close(self) -> None:
        with ExitStack() as stack:  # All of them, even if one fails.
            for bucket in self._buckets.values():
                stack.callback(bucket.dispose, keeps_files=not self._takes_checkpoints)

    def _bucket(self, bucket_id: str) -> Bucket:
        bucket = self._buckets.get(bucket_id)
        if bucket is None:
            folder = self._folder_of(bucket_id)
            bucket = self._buckets[bucket_id] = Bucket(bucket_id, folder, self._options, self._files)
        return bucket

    def _folder_of(self, bucket_id: str) -> str:
        if not isinstance(bucket_id, str) or bucket_id.startswith("/") or ".." in bucket_id.split("/"):
            raise ValueError(
                f"FileSink: {type(self._assigner).__name__} chose the bucket {bucket_id!r}; it must be the name of a "
                f"folder below the sink's path, or '' for the path itself"
            )
        base = self._base_folder.rstrip("/")
        return f"{base}/{bucket_id}".rstrip("/")

    def _show_soon(self) -> None:
        """Flush files after the batch, as without checkpoints nothing else does; a remote file is seen when closed."""
        if self._files.can_append:
            self._has_more_to_show = True
            self._time.register_timer(self._now(), self._show)

    def _show(self, timestamp: int) -> None:
        self._has_more_to_show = False
        for bucket in self._buckets.values():
            bucket.show()

    def _check_later(self) -> None:
        """Set the next timer, only while a file is open: a sink that writes nothing does not wake the job."""
        if not self._has_timer:
            self._has_timer = True
            self._time.register_timer(self._now() + self._options.bucket_check_interval_ms, self._check)

    def _check(self, timestamp: int) -> None:
        self._has_timer = False
        for bucket in self._buckets.values():
            bucket.on_processing_time(self._now())
        if any(bucket.has_open_part for bucket in self._buckets.values()):
            self._check_later()
