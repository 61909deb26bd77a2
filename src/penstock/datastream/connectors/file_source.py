"""Reading files."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Literal

from penstock.common.time import Duration
from penstock.datastream.connectors.base import Source


@dataclass(frozen=True)
class FileEnumeratorProvider:
    """How files are found and cut into splits."""

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
    """Which subtask reads which split."""

    strategy: Literal["locality-aware"]

    @staticmethod
    def locality_aware_split_assigner() -> FileSplitAssignerProvider:
        """Splits go where their data is, if Spark knows."""
        return FileSplitAssignerProvider("locality-aware")


class StreamFormat:
    """A format that is read record by record."""

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is an element, without its line break."""
        return TextLineFormat(charset_name)


@dataclass(frozen=True)
class TextLineFormat(StreamFormat):
    """Lines of text; made by `StreamFormat.text_line_format()`."""

    charset_name: str = "UTF-8"

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.charset_name)
        except LookupError:
            raise ValueError(
                f"text_line_format: unknown character set {self.charset_name!r}; use a name such as 'UTF-8'"
            ) from None


class BulkFormat:
    """A format that is read batch by batch, such as Parquet."""


class FileSourceBuilder:
    """Collects what files to read. Reads the files there are and ends, unless told to look for new ones."""

    def __init__(self, file_format: StreamFormat | BulkFormat, paths: tuple[str, ...]) -> None:
        self._format = file_format
        self._paths = paths
        self._discovery_interval_ms: int | None = None
        self._file_enumerator = FileEnumeratorProvider.default_splittable_file_enumerator()
        self._split_assigner = FileSplitAssignerProvider.locality_aware_split_assigner()

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
        self._file_enumerator = file_enumerator
        return self

    def set_split_assigner(self, split_assigner: FileSplitAssignerProvider) -> FileSourceBuilder:
        self._split_assigner = split_assigner
        return self

    def build(self) -> FileSource:
        return FileSource(
            self._format, self._paths, self._discovery_interval_ms, self._file_enumerator, self._split_assigner
        )


@dataclass(frozen=True)
class FileSource(Source):
    """Elements from files; made by `FileSource.for_record_stream_format(...)` or `for_bulk_file_format(...)`.

    Paths are files or folders; folders are read with everything in them, except names that begin with `.` or `_`.
    """

    format: StreamFormat | BulkFormat
    paths: tuple[str, ...]
    discovery_interval_ms: int | None
    file_enumerator: FileEnumeratorProvider
    split_assigner: FileSplitAssignerProvider

    @staticmethod
    def for_record_stream_format(stream_format: StreamFormat, *paths: str) -> FileSourceBuilder:
        _check("for_record_stream_format", stream_format, StreamFormat, paths)
        return FileSourceBuilder(stream_format, paths)

    @staticmethod
    def for_bulk_file_format(bulk_format: BulkFormat, *paths: str) -> FileSourceBuilder:
        _check("for_bulk_file_format", bulk_format, BulkFormat, paths)
        return FileSourceBuilder(bulk_format, paths)

    @property
    def is_bounded(self) -> bool:
        return self.discovery_interval_ms is None


def _check(method: str, file_format: object, kind: type, paths: tuple[str, ...]) -> None:
    if not isinstance(file_format, kind):
        raise TypeError(f"FileSource.{method}: the format must be a {kind.__name__}, got {file_format!r}")
    if not paths or not all(isinstance(path, str) and path for path in paths):
        raise ValueError(f"FileSource.{method}: give one or more paths, got {paths!r}")
