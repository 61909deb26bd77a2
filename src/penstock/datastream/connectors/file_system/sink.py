"""Writing files."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TypeVar

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.serialization import BulkWriterFactory, Encoder
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.base import DescribedSinkFunction, Sink, StreamTransformer, SupportsPreprocessing
from penstock.datastream.connectors.file_system.bucketing import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
)
from penstock.datastream.connectors.file_system.committer import FileCommitter
from penstock.datastream.connectors.file_system.compaction import Compaction
from penstock.datastream.connectors.file_system.part_files import FileCommittable
from penstock.datastream.connectors.file_system.writer import FileWriter, FileWriterState
from penstock.datastream.connectors.sink_v2 import (
    CommitterInitContext,
    SupportsCommitter,
    SupportsWriterState,
    WriterInitContext,
)
from penstock.files.locations import absolute_location

B = TypeVar("B", bound="_FileBuilder")


@dataclass(frozen=True)
class FileSinkOptions:
    """All settings of a file sink. Exactly one of `encoder` and `writer_factory` is set."""

    base_path: str
    encoder: Encoder | None = None
    writer_factory: BulkWriterFactory | None = None
    rolling_policy: RollingPolicy = field(default_factory=RollingPolicy.default_rolling_policy)
    bucket_assigner: BucketAssigner = field(default_factory=BucketAssigner.date_time_bucket_assigner)
    bucket_check_interval_ms: int = 60_000
    output_file_config: OutputFileConfig = field(default_factory=lambda: OutputFileConfig("part", ""))
    compaction: Compaction | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.base_path, str) or not self.base_path:
            raise ValueError(f"FileSink: base_path must be a folder or a URI, got {self.base_path!r}")
        object.__setattr__(self, "base_path", absolute_location(self.base_path))

    @staticmethod
    def for_rows(base_path: str, encoder: Encoder) -> FileSinkOptions:
        if not isinstance(encoder, Encoder):
            raise TypeError(
                f"for_row_format: encoder must be an Encoder such as Encoder.simple_string_encoder(), got {encoder!r}"
            )
        return FileSinkOptions(base_path, encoder=encoder)

    @staticmethod
    def for_bulk(base_path: str, writer_factory: BulkWriterFactory) -> FileSinkOptions:
        if not isinstance(writer_factory, BulkWriterFactory):
            raise TypeError(f"for_bulk_format: writer_factory must be a BulkWriterFactory, got {writer_factory!r}")
        if type(writer_factory).create is BulkWriterFactory.create:
            raise UnsupportedFeatureError(
                f"for_bulk_format: {type(writer_factory).__name__} has no create(stream), so nothing can be "
                f"written; use ParquetBulkWriters, OrcBulkWriters, AvroBulkWriters or CsvBulkWriters, or override it"
            )
        # A bulk file has a footer, so it cannot be left open over a checkpoint.
        policy = RollingPolicy.on_checkpoint_rolling_policy()
        return FileSinkOptions(base_path, writer_factory=writer_factory, rolling_policy=policy)


class _FileBuilder:
    """The settings that both file sinks have."""

    def __init__(self, options: FileSinkOptions) -> None:
        self._options = options

    def with_bucket_check_interval(self: B, interval: int) -> B:
        """Look for files that are old enough every `interval` milliseconds."""
        if interval <= 0:
            raise ValueError(f"FileSink: bucket check interval must be positive, got {interval} ms")
        return self._with(bucket_check_interval_ms=interval)

    def with_bucket_assigner(self: B, bucket_assigner: BucketAssigner) -> B:
        """Choose the folders; one per hour of writing, unless set."""
        return self._with(bucket_assigner=bucket_assigner)

    def with_output_file_config(self: B, output_file_config: OutputFileConfig) -> B:
        """Choose how files are named."""
        return self._with(output_file_config=output_file_config)

    def _with(self: B, **changes: object) -> B:
        self._options = replace(self._options, **changes)  # type: ignore[arg-type]  # checked by each caller
        return self

    def _roll_by(self: B, policy: RollingPolicy) -> B:
        if self._options.writer_factory is not None and not isinstance(policy, OnCheckpointRollingPolicy):
            raise ValueError(
                f"FileSink: a bulk format can only roll on checkpoints, got {policy!r}; "
                "use RollingPolicy.on_checkpoint_rolling_policy()"
            )
        return self._with(rolling_policy=policy)


class FileSinkBuilder(_FileBuilder, ABC):
    """Collects how a FileSink writes."""

    def enable_compact(self: C, strategy: FileCompactStrategy, compactor: FileCompactor) -> C:
        """Merge small files of a bucket before they are shown.

        Each subtask merges its own files. `concat_file_compactor` is for formats whose files can simply be joined, such
        as lines of text.
        """
        if not isinstance(strategy, FileCompactStrategy) or not isinstance(compactor, FileCompactor):
            raise TypeError(
                "enable_compact needs a FileCompactStrategy and a FileCompactor such as "
                f"FileCompactor.concat_file_compactor(), got {strategy!r} and {compactor!r}"
            )
        if compactor.kind == "concat" and self._options.writer_factory is not None:
            raise ValueError(
                "FileSink: files of a bulk format cannot be read one behind the other: a concat_file_compactor would "
                "spoil them; use FileCompactor.identical_file_compactor(), or a longer checkpoint interval"
            )
        return self._with(compaction=Compaction(strategy, compactor))

    def disable_compact(self: C) -> C:
        """Show files as they are written, also those that an earlier run left to be merged."""
        return self._with(compaction=None)

    @abstractmethod
    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSinkBuilder:
        """Choose when a file is finished."""

    def build(self) -> FileSink:
        """The finished sink."""
        return FileSink(self._options)


C = TypeVar("C", bound=FileSinkBuilder)


class FileRowSinkBuilder(FileSinkBuilder):
    """Collects how a FileSink writes element by element."""

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileRowSinkBuilder:
        return self._roll_by(rolling_policy)


class FileBulkSinkBuilder(FileSinkBuilder):
    """Collects how a FileSink writes whole files."""

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileBulkSinkBuilder:
        return self._roll_by(rolling_policy)


@dataclass(frozen=True)
class FileSink(Sink, SupportsWriterState[FileWriterState], SupportsCommitter[FileCommittable], SupportsPreprocessing):
    """Writes elements to files exactly once: a file shows up when its checkpoint is complete.

    >>> lines = FileSink.for_row_format("/data/words", Encoder.simple_string_encoder()).build()
    >>> sink = env.from_collection(["to", "be"]).sink_to(lines)

    Files are in folders, the *buckets*, below `base_path`: a local path, which the driver and all executors must reach,
    or a URI (`file://`, or what Arrow or fsspec knows, such as `s3://`, `gs://` or `hdfs://`). While a file is written
    its name begins with a dot, so most readers pass it over; it is finished when the rolling policy says so and gets
    its final name when the next checkpoint is complete. In a bounded job the last files show up at its end, also
    without checkpoints.

    A file of a row format may stay open over checkpoints; after a restart it is cut to what the checkpoint knows.
    Bulk formats, and all files outside of local file systems, are finished at every checkpoint.

    What a failed attempt wrote since its last snapshot is removed when the attempt is closed. After a crash, where
    nothing is closed, and where that snapshot's checkpoint failed elsewhere, such files stay, hidden, as in Flink.
    """

    BaseBuilder = FileSinkBuilder
    RowFormatBuilder = FileRowSinkBuilder
    BulkFormatBuilder = FileBulkSinkBuilder

    options: FileSinkOptions

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileRowSinkBuilder:
        """Write element by element, for instance as lines of text."""
        return FileRowSinkBuilder(FileSinkOptions.for_rows(base_path, encoder))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> FileBulkSinkBuilder:
        """Write whole files, for instance as Parquet."""
        return FileBulkSinkBuilder(FileSinkOptions.for_bulk(base_path, writer_factory))

    def get_transformer(self) -> StreamTransformer | None:
        """Always None: elements are written as they come."""
        return None

    def of_type(self, type_info: TypeInformation) -> FileSink:
        """The sink that writes values of this type as `print()` shows them, if it writes text."""
        encoder = self.options.encoder
        return self if encoder is None else FileSink(replace(self.options, encoder=encoder.of_type(type_info)))

    def create_writer(self, context: WriterInitContext) -> FileWriter:
        return FileWriter(self.options, context, ())

    def restore_writer(self, context: WriterInitContext, recovered_state: list[FileWriterState]) -> FileWriter:
        return FileWriter(self.options, context, recovered_state)

    def create_committer(self, context: CommitterInitContext) -> FileCommitter:
        return FileCommitter(self.options.base_path)


class StreamingFileSinkBuilder(_FileBuilder, ABC):
    """Collects how a StreamingFileSink writes."""

    @abstractmethod
    def with_rolling_policy(self, policy: RollingPolicy) -> StreamingFileSinkBuilder:
        """Choose when a file is finished."""

    def build(self) -> StreamingFileSink:
        """The finished sink."""
        return StreamingFileSink(self._options)


class StreamingRowSinkBuilder(StreamingFileSinkBuilder):
    """Collects how a StreamingFileSink writes element by element."""

    def with_rolling_policy(self, policy: RollingPolicy) -> StreamingRowSinkBuilder:
        return self._roll_by(policy)


class StreamingBulkSinkBuilder(StreamingFileSinkBuilder):
    """Collects how a StreamingFileSink writes whole files."""

    def with_rolling_policy(self, policy: RollingPolicy) -> StreamingBulkSinkBuilder:
        return self._roll_by(policy)


class StreamingFileSink(DescribedSinkFunction):
    """The old name of FileSink, for `add_sink`.

    `FileSink` has an example.
    """

    BaseBuilder = StreamingFileSinkBuilder
    DefaultRowFormatBuilder = StreamingRowSinkBuilder
    DefaultBulkFormatBuilder = StreamingBulkSinkBuilder

    def __init__(self, options: FileSinkOptions) -> None:
        warnings.warn("StreamingFileSink is deprecated; use FileSink", DeprecationWarning, stacklevel=3)
        self.options = options

    def __repr__(self) -> str:
        return f"StreamingFileSink({self.options!r})"

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> StreamingRowSinkBuilder:
        """Write element by element, for instance as lines of text."""
        return StreamingRowSinkBuilder(FileSinkOptions.for_rows(base_path, encoder))

    @staticmethod
    def for_bulk_format(base_path: str, writer_factory: BulkWriterFactory) -> StreamingBulkSinkBuilder:
        """Write whole files, for instance as Parquet."""
        return StreamingBulkSinkBuilder(FileSinkOptions.for_bulk(base_path, writer_factory))

    def to_sink(self) -> Sink:
        return FileSink(self.options)
