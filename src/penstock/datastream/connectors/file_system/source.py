"""Reading files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO, Literal

from penstock.common.time import Duration
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.bad_records import BadRecord, BadRecordHandler, BadRecords
from penstock.datastream.connectors.file_system.formats import (
    BulkFormat,
    FileBatch,
    FileFormat,
    FileToRead,
    StreamFormat,
    TextLineFormat,
    is_packed,
)
from penstock.datastream.connectors.file_system.input_files import (
    FoundFile,
    find_files,
    is_below,
    open_file,
    uri_of,
)
from penstock.datastream.connectors.source_v2 import (
    Boundedness,
    ReaderOutput,
    Source,
    SourceReader,
    SourceReaderContext,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from penstock.datastream.connectors.support.split_dealing import DealtSplits, SplitsEnumerator
from penstock.datastream.connectors.support.split_reading import OffsetSplit, ReadBatch, SplitsReader
from penstock.files.locations import is_local

__all__ = [
    "BulkFormat",
    "FileEnumeratorProvider",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "StreamFormat",
    "TextLineFormat",
]

_READ_AT_ONCE = 1 << 16
PART_BYTES = 64 * 1024 * 1024
"""Large files are read in parts of this size, where their format allows it."""


@dataclass(frozen=True)
class FileEnumeratorProvider:
    """How files are found and cut into splits.

    `FileSource` has an example.
    """

    is_splittable: bool

    @staticmethod
    def default_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Large files may be read by several subtasks, if their format allows it."""
        return FileEnumeratorProvider(True)

    @staticmethod
    def default_non_splittable_file_enumerator() -> FileEnumeratorProvider:
        """Each file is read by one subtask."""
        return FileEnumeratorProvider(False)


@dataclass(frozen=True)
class FileSplitAssignerProvider:
    """Which subtask reads which split. Accepted as in Flink, without effect: subtasks take splits as they are free.

    `FileSource` has an example.
    """

    strategy: Literal["locality-aware"]

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Flink's default: splits go to where their data is."""
        return FileSplitAssignerProvider("locality-aware")


class FileSourceBuilder:
    """Collects which files to read. The source ends with the files it finds, unless it monitors for new ones.

    `FileSource` has an example.
    """

    def __init__(self, file_format: StreamFormat | BulkFormat, paths: tuple[str, ...]) -> None:
        self._format = file_format
        self._paths = paths
        self._discovery_interval_ms: int | None = None
        self._file_enumerator = FileEnumeratorProvider.default_splittable_file_enumerator()
        self._split_assigner = FileSplitAssignerProvider.locality_aware_split_assigner()
        self._bad_records = BadRecords.fail()

    def monitor_continuously(self, discovery_interval: Duration) -> FileSourceBuilder:
        """Look for new files every `discovery_interval` and never end."""
        if discovery_interval.to_millis() <= 0:
            raise ValueError(f"FileSource: discovery_interval must be positive, got {discovery_interval}")
        self._discovery_interval_ms = discovery_interval.to_millis()
        return self

    def process_static_file_set(self) -> FileSourceBuilder:
        """Read the files there are at the start, then end."""
        self._discovery_interval_ms = None
        return self

    def set_file_enumerator(self, file_enumerator: FileEnumeratorProvider) -> FileSourceBuilder:
        """Choose whether several subtasks may read one large file; they may, unless set."""
        self._file_enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        """Accepted as in Flink, without effect: subtasks take splits as they are free."""
        self._split_assigner = split_assigner
        return self

    def set_bad_records(self, bad_records: BadRecords) -> FileSourceBuilder:
        """What to do with records that the format cannot read; they fail the job, unless set."""
        self._bad_records = bad_records
        return self

    def build(self) -> FileSource:
        """The finished source."""
        return FileSource(
            self._format,
            self._paths,
            self._discovery_interval_ms,
            self._file_enumerator,
            self._split_assigner,
            self._bad_records,
        )


@dataclass(frozen=True)
class FilePart:
    """What a split of a FileSource is: a file, or the part of it between two places."""

    root: str
    path: str
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class FileSource(Source[Any, OffsetSplit, DealtSplits]):
    """Elements from files; made by `FileSource.for_record_stream_format(...)` or `for_bulk_file_format(...)`.

    Paths are files or folders, local or URIs that Arrow or fsspec knows; folders are read with everything in them, also
    behind links, except names that begin with `.` or `_`. A file that was found is read once: what is added to it later
    is not seen.

    >>> from penstock.common import WatermarkStrategy
    >>> source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/data/words").build()
    >>> lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "words")
    """

    format: FileFormat
    paths: tuple[str, ...]
    discovery_interval_ms: int | None
    file_enumerator: FileEnumeratorProvider
    split_assigner: FileSplitAssignerProvider
    bad_records: BadRecords = field(default_factory=BadRecords.fail)

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        """Read files of a format that is read record by record, such as lines of text."""
        _check("for_record_stream_format", stream_format, StreamFormat, paths)
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        """Read files of a format that is read batch by batch, such as Parquet."""
        _check("for_bulk_file_format", bulk_format, BulkFormat, paths)
        return FileSourceBuilder(bulk_format, paths)

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.discovery_interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def get_produced_type(self) -> TypeInformation | None:
        return self.format.get_produced_type()

    def create_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit]
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        return self._enumerator(context, None)

    def restore_enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit], checkpoint: DealtSplits
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        return self._enumerator(context, replace(checkpoint, known=frozenset(map(self._as_uri, checkpoint.known))))

    def _enumerator(
        self, context: SplitEnumeratorContext[OffsetSplit], former: DealtSplits | None
    ) -> SplitEnumerator[OffsetSplit, DealtSplits]:
        return SplitsEnumerator(
            context,
            self._find,
            self.discovery_interval_ms,
            former=former,
            known_by=_uri_of,
            looks_again_after=(OSError,),
        )

    def _as_uri(self, known: str) -> str:
        """The name that a file is known by. Older checkpoints have the path alone, of the last file system with it."""
        if "://" not in known:
            for root in reversed(self.paths):
                if is_below(root, known):
                    return known if is_local(root) else uri_of(root, known)
        return known

    def _find(self) -> list[OffsetSplit]:
        parts = [part for file in find_files(self.paths) for part in self._parts_of(file)]
        return [OffsetSplit(f"{uri_of(part.root, part.path)}:{part.start}", part) for part in parts]

    def _parts_of(self, file: FoundFile) -> Iterator[FilePart]:
        allows_parts = self.file_enumerator.is_splittable and self.format.can_start_anywhere
        step = PART_BYTES if allows_parts and not is_packed(file.path) else file.size + 1
        starts = range(0, max(file.size, 1), step)
        for start in starts:
            # The last part ends with the file, even if that has grown by the time it is read.
            yield FilePart(file.root, file.path, start, None if start == starts[-1] else start + step)

    def create_reader(self, context: SourceReaderContext) -> SourceReader[Any, OffsetSplit]:
        handler = BadRecordHandler(self.bad_records, context)
        return SplitsReader(context, partial(self._read, handler))

    def _read(self, handler: BadRecordHandler, split: OffsetSplit, output: ReaderOutput) -> Iterator[ReadBatch]:
        part: FilePart = split.content
        file = FileToRead(part.path, partial(open_file, part.root, part.path), part.start, part.end)
        for batch in self.format.read_file(file, split.offset):
            _take_bad(batch, file, handler, output)
            yield ReadBatch(batch.records, batch.offset)


def _take_bad(batch: FileBatch, file: FileToRead, handler: BadRecordHandler, output: ReaderOutput) -> None:
    for raw, error in batch.bad:
        # To count lines, the file is read again up to there: worth it if the record fails the job.
        line = _line_of(raw, file, batch.offset) if handler.fails else None
        place = f"before offset {batch.offset}" if line is None else f"line {line}"
        handler.take(BadRecord(raw, error, f"file {file.path}, {place}"), output)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """A file's lines with their ends; not every store's files can be iterated over."""
    rest = b""
    while chunk := stream.read(_READ_AT_ONCE):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _line_of(raw: bytes, file: FileToRead, end: object) -> int | None:
    """The number of the first line before `end` that is the record's first line; None if there is none."""
    first = raw.partition(b"\n")[0].rstrip(b"\r")
    position = 0
    with file.open() as stream:
        for number, line in enumerate(_lines(stream), 1):
            if position >= file.start and line.rstrip(b"\r\n") == first:
                return number
            position += len(line)
            if isinstance(end, int) and position >= end:
                break
    return None


def _uri_of(split: OffsetSplit) -> str:
    """The URI or path that a file is known by: a file that grows stays the same."""
    return uri_of(split.content.root, split.content.path)


def _check(method: str, file_format: object, kind: type, paths: tuple[str, ...]) -> None:
    if not isinstance(file_format, kind):
        raise TypeError(f"FileSource.{method}: the format must be a {kind.__name__}, got {file_format!r}")
    if not paths or not all(isinstance(path, str) and path for path in paths):
        raise ValueError(f"FileSource.{method}: give one or more paths, got {paths!r}")
