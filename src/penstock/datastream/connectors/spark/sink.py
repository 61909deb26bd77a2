"""Writing with Spark's own writers, from `stream.sink_to_spark(...)`.

The subtasks stage the rows of every checkpoint as Parquet files. When the checkpoint is complete the driver reads
them as a DataFrame, the *batch*, and has Spark write it.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import logging
import posixpath
import urllib.parse
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common.configuration import Configuration
from penstock.common.redaction import redacted_repr
from penstock.common.serialization import BulkWriterFactory
from penstock.datastream.connectors.base import Sink
from penstock.datastream.connectors.file_system.bucketing import BucketAssigner
from penstock.datastream.connectors.file_system.committer import FileCommitter
from penstock.datastream.connectors.file_system.part_files import FileCommittable, PartFile
from penstock.datastream.connectors.file_system.sink import FileSinkOptions
from penstock.datastream.connectors.file_system.writer import FileWriter
from penstock.datastream.connectors.sink_v2 import (
    CommitRequest,
    Committer,
    CommitterInitContext,
    CommittingSinkWriter,
    SinkWriterContext,
    StatefulSinkWriter,
    SupportsCommitter,
    SupportsWriterState,
    WriterInitContext,
)
from penstock.files.locations import store_at

__all__ = ["SparkSink", "SparkTarget"]

FILE_FORMATS = frozenset({"parquet", "orc", "csv", "json", "text", "avro", "xml"})
"""What Spark writes as files below a path: those can be shown in one step each."""

_MOST_MARKS = 100
_KEYS_OF_PAGE = 10_000
_log = logging.getLogger(__name__)

BatchFunction = Callable[[Any, int], object]
"""Gets the DataFrame of a batch and its number."""


@dataclass(frozen=True)
class SparkTarget:
    """Where the rows go: a format of Spark's with its options, or a function that writes each batch."""

    format: str | BatchFunction
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    mode: str = "append"
    partition_by: tuple[str, ...] = ()

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        if self.mode not in ("append", "overwrite"):
            raise ValueError(
                f"sink_to_spark: mode must be 'append' or 'overwrite', because a job writes more than once, "
                f"got {self.mode!r}"
            )
        if callable(self.format):
            if self.options or self.partition_by or self.mode != "append":
                raise ValueError(
                    "sink_to_spark: a function decides itself how to write: it takes no options, mode or columns"
                )
        elif self.format in FILE_FORMATS and not self.options.get("path"):
            raise ValueError(f"sink_to_spark: files need a folder; give options={{'path': ...}} for {self.format!r}")

    @property
    def shows_files(self) -> bool:
        """True if the target is files that can be shown one by one, each once."""
        return self.format in FILE_FORMATS and self.mode == "append"


@dataclass(frozen=True)
class StagedFile:
    """Rows of a batch, in a file."""

    batch_id: int
    part: FileCommittable


class SparkSink(Sink, SupportsWriterState[int], SupportsCommitter[StagedFile]):
    """Made by `stream.sink_to_spark(...)`, which says what it guarantees.

    :param schema: The columns of the rows, as Spark's DDL.
    :param staging: A folder that the driver and all executors reach. It must stay as long as the job's checkpoints.
    :param session: The SparkSession to write with; the running one, unless given.
    """

    def __init__(
        self, target: SparkTarget, factory: BulkWriterFactory, schema: str, staging: str, session: Any = None
    ) -> None:
        self.target = target
        self.schema = schema
        self._session = session
        options = FileSinkOptions.for_bulk(staging, factory)
        self._staging = replace(options, bucket_assigner=BucketAssigner.base_path_bucket_assigner())

    def __repr__(self) -> str:
        return f"SparkSink({self.target!r}, schema={self.schema!r})"

    def __getstate__(self) -> dict[str, Any]:
        # A session cannot leave the driver, and subtasks need none.
        return {**self.__dict__, "_session": None}

    def create_writer(self, context: WriterInitContext) -> StagingWriter:
        return StagingWriter(FileWriter(self._staging, context, ()), context.get_restored_checkpoint_id() or 0)

    def restore_writer(self, context: WriterInitContext, recovered_state: list[int]) -> StagingWriter:
        return self.create_writer(context)

    def create_committer(self, context: CommitterInitContext) -> SparkCommitter:
        return SparkCommitter(self.target, self.schema, self._staging.base_path, self._running_session)

    def _running_session(self) -> Any:
        # Looked up by name: only the package `spark` knows PySpark.
        return self._session or importlib.import_module("penstock.spark.session").get_session(Configuration())


class StagingWriter(CommittingSinkWriter[Any, StagedFile], StatefulSinkWriter[Any, int]):
    """Stages the rows of one subtask. A batch has the number of the checkpoint before it, plus one.

    So all subtasks agree on it, also after a restart, when a batch is begun again.
    """

    def __init__(self, files: FileWriter, last_checkpoint_id: int) -> None:
        self._files = files
        self._batch_id = last_checkpoint_id + 1

    def write(self, element: Any, context: SinkWriterContext) -> None:
        self._files.write(element, context)

    def flush(self, end_of_input: bool) -> None:
        self._files.flush(end_of_input)

    def prepare_commit(self) -> list[StagedFile]:
        return [StagedFile(self._batch_id, part) for part in self._files.prepare_commit()]

    def snapshot_state(self, checkpoint_id: int) -> list[int]:
        self._files.snapshot_state(checkpoint_id)
        self._batch_id = checkpoint_id + 1
        return []

    def close(self) -> None:
        self._files.close()


class SparkCommitter(Committer[StagedFile]):
    """Has Spark write every batch once, as far as the target makes that possible; see `stream.sink_to_spark`."""

    def __init__(self, target: SparkTarget, schema: str, staging: str, session: Callable[[], Any]) -> None:
        self._target = target
        self._schema = schema
        self._staging = staging
        self._session = session
        self._files, _ = store_at(staging)
        self._done: deque[str] = deque()

    def commit(self, requests: list[CommitRequest[StagedFile]]) -> None:
        batches: dict[int, list[PartFile]] = {}
        for request in requests:
            staged = request.get_committable()
            assert isinstance(staged.part, PartFile), "staged files are finished with every checkpoint"
            batches.setdefault(staged.batch_id, []).append(staged.part)
        for batch_id in sorted(batches):
            self._commit_batch(_Batch(batch_id, batches[batch_id]))

    def _commit_batch(self, batch: _Batch) -> None:
        if self._files.size_of(batch.done) is None:
            try:
                self._show(batch)
            except FileNotFoundError:
                if batch.key in self._register(batch).all_keys():
                    return  # The batch of an old savepoint, which was written long ago.
                raise
            self._write(batch)
            self._mark(batch.done)
        if self._target.shows_files:
            _file_batches().forget_batch(self._session(), self._target.options["path"], batch.key)
        for path in (*batch.paths, batch.begun):
            if self._files.size_of(path) is not None:
                self._files.delete(path)
        self._file_old_marks(batch)

    def _show(self, batch: _Batch) -> None:
        """Give the staged files the names under which Spark reads them."""
        shown = [_Shown(part) for part in batch.parts]
        FileCommitter(self._staging).commit(list(shown))
        for each in shown:
            if each.failure is not None:
                raise each.failure

    def _write(self, batch: _Batch) -> None:
        target, session = self._target, self._session()
        frame = session.read.schema(self._schema).parquet(*(_for_spark(self._staging, path) for path in batch.paths))
        if target.shows_files:
            _file_batches().write_batch(
                frame, str(target.format), dict(target.options), list(target.partition_by), batch.key
            )
            return
        self._begin(batch)
        if callable(target.format):
            target.format(frame, batch.batch_id)
            return
        writer = frame.write.format(target.format).options(**target.options).mode(target.mode)
        (writer.partitionBy(*target.partition_by) if target.partition_by else writer).save()

    def _begin(self, batch: _Batch) -> None:
        if self._files.size_of(batch.begun) is None:
            self._mark(batch.begun)
        elif self._target.mode != "overwrite":
            _log.warning(
                "sink_to_spark: batch %d was being written when the job failed, and is written again; rows may be "
                "there twice unless the target knows the batch",
                batch.batch_id,
            )

    def _mark(self, path: str) -> None:
        with self._files.create(path) as mark:
            self._files.sync(mark, path)

    def _file_old_marks(self, batch: _Batch) -> None:
        """Enter old batches into a register and remove their marks, of which there would be too many.

        A restart rarely asks for more than the last batch, but a savepoint may be restored at any time.
        """
        if batch.key not in self._done:
            self._done.append(batch.key)
        if len(self._done) > 2 * _MOST_MARKS:
            old = [self._done.popleft() for _ in range(_MOST_MARKS)]
            self._register(batch).add(old)
            for key in old:
                self._files.delete(batch.mark_of(key))

    def _register(self, batch: _Batch) -> _Register:
        return _Register(self._files, f"{batch.folder}/_done-register")


class _Batch:
    """The staged files of a batch: known by their names, which no other attempt has."""

    def __init__(self, batch_id: int, parts: list[PartFile]) -> None:
        self.batch_id = batch_id
        self.parts = parts
        self.paths = sorted(part.path for part in parts)
        digest = hashlib.sha256("\n".join(self.paths).encode()).hexdigest()
        self.key = f"{batch_id}-{digest[:16]}"
        self.folder = posixpath.dirname(self.paths[0])
        self.begun = f"{self.folder}/_begun-{self.key}"
        self.done = self.mark_of(self.key)

    def mark_of(self, key: str) -> str:
        """The file that says that a batch is done."""
        return f"{self.folder}/_done-{key}"


class _Register:
    """The keys of batches that are done and whose marks were removed: in pages, of which only the last one grows."""

    def __init__(self, files: Any, path: str) -> None:
        self._files = files
        self._path = path

    def all_keys(self) -> set[str]:
        return {key for page in self._pages() for key in page}

    def add(self, keys: list[str]) -> None:
        pages = list(self._pages())
        if pages and len(pages[-1]) < _KEYS_OF_PAGE:
            number, held = len(pages) - 1, pages[-1]
        else:
            number, held = len(pages), []
        with self._files.create_whole(self._page(number)) as page:
            page.write("\n".join([*held, *keys]).encode())

    def _pages(self) -> Iterator[list[str]]:
        for number in itertools.count():
            if self._files.size_of(self._page(number)) is None:
                return
            with self._files.open(self._page(number)) as page:
                yield page.read().decode().split()

    def _page(self, number: int) -> str:
        return f"{self._path}-{number}"


class _Shown(CommitRequest[FileCommittable]):
    """A staged file that the commit makes visible."""

    def __init__(self, part: PartFile) -> None:
        self._part = part
        self.failure: BaseException | None = None

    def get_committable(self) -> FileCommittable:
        return self._part

    def get_number_of_retries(self) -> int:
        return 0

    def signal_failed_with_known_reason(self, reason: BaseException) -> None:
        self.failure = reason

    def signal_failed_with_unknown_reason(self, reason: BaseException) -> None:
        self.failure = reason

    def retry_later(self) -> None:
        """Does nothing: files are renamed at once, or not at all."""

    def update_and_retry_later(self, committable: FileCommittable) -> None:
        """Does nothing, for the same reason."""

    def signal_already_committed(self) -> None:
        """Does nothing: the file is shown."""


def _file_batches() -> Any:
    return importlib.import_module("penstock.spark.file_batches")


def _for_spark(staging: str, path: str) -> str:
    """A staged file's path as Spark has it, whatever its default file system is."""
    scheme, netloc, *_ = urllib.parse.urlsplit(staging)
    match scheme:
        case "" | "file":
            return f"file://{path}"
        case "s3":
            return f"s3a://{path}"
        case _:  # Arrow's paths in a store begin with the bucket, others with a slash.
            return f"{scheme}://{netloc}{path}" if path.startswith("/") else f"{scheme}://{path}"
