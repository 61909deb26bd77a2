"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.common.configuration import Configuration
from penstock.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.datastream.connectors.file_system.formats import BulkFormat, FileBatch, FileToRead, StreamFormat
from penstock.datastream.formats.arrow_reading import ArrowDictReader, ArrowRowReader, NamingTheFile, parquet_batches
from penstock.datastream.formats.arrow_rows import ROWS_AT_ONCE, ArrowRowWriter, arrow_schema
from penstock.datastream.formats.avro import AvroSchema, record_schema
from penstock.datastream.formats.avro_rows import row_type_of
from penstock.datastream.formats.row_types import check_row_type

__all__ = ["AvroParquetReaders", "AvroParquetWriters", "ParquetBulkWriters", "ParquetColumnarRowInputFormat"]


@dataclass(frozen=True)
class AvroParquetFormat(StreamFormat):
    """Reads Parquet files as the dicts of an Avro schema, with times as Arrow has them. Missing columns are None."""

    schema: AvroSchema

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        reader = ArrowDictReader(row_type_of(record_schema("AvroParquetReaders", self.schema)))
        with NamingTheFile(file.path), file.open_raw() as stream:
            yield from parquet_batches(stream, offset or 0, ROWS_AT_ONCE, reader.columns_in, reader.dicts)


class AvroParquetReaders:
    """Makes formats for `FileSource.for_record_stream_format`.

    `AvroSchema` has an example.
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Records as dicts with the fields of the schema."""
        return AvroParquetFormat(schema)


@dataclass(frozen=True)
class AvroParquetWriterFactory(BulkWriterFactory):
    """Writes the dicts or rows of an Avro schema as Parquet files. Timestamps are in UTC."""

    schema: AvroSchema

    def __post_init__(self) -> None:
        arrow_schema(self._row_type())  # So that a type that cannot be written is refused here.

    def create(self, stream: BinaryIO) -> ParquetRowWriter:
        return ParquetRowWriter(stream, self._row_type(), True, "snappy")

    def _row_type(self) -> RowTypeInfo:
        return row_type_of(record_schema("AvroParquetWriters", self.schema))


class AvroParquetWriters:
    """Makes writers for `FileSink.for_bulk_format`.

    `AvroSchema` has an example.
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Elements that fit the schema: dicts, or rows with its fields."""
        return AvroParquetWriterFactory(schema)


class ParquetColumnarRowInputFormat(BulkFormat):
    """Reads Parquet files as rows, only the columns that the row type names.

    :param batch_size: Rows read at a time.
    :param is_utc_timestamp: Whether timestamps are in UTC or in the machine's time zone.
    :param is_case_sensitive: Whether column names must match exactly.

    >>> import tempfile
    >>> from penstock.common import Row, Types, WatermarkStrategy
    >>> from penstock.datastream.connectors.file_system import FileSink, FileSource
    >>> people = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sink = FileSink.for_bulk_format(folder, ParquetBulkWriters.for_row_type(people)).build()
    ...     _ = env.from_collection([Row("Alice", 11)], people).sink_to(sink)
    ...     _ = env.execute("write")
    ...     source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(people), folder).build()
    ...     list(env.from_source(source, WatermarkStrategy.no_watermarks(), "read").execute_and_collect())
    [Row(name='Alice', age=11)]
    """

    def __init__(
        self,
        row_type: RowTypeInfo,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        if batch_size <= 0:
            raise ValueError(f"ParquetColumnarRowInputFormat: batch_size must be positive, got {batch_size}")
        self.row_type = check_row_type("ParquetColumnarRowInputFormat", row_type)
        self.hadoop_config = hadoop_config.to_dict() if hadoop_config is not None else {}
        self.batch_size = batch_size
        self.is_utc_timestamp = is_utc_timestamp
        self.is_case_sensitive = is_case_sensitive

    def __repr__(self) -> str:
        return f"ParquetColumnarRowInputFormat({self.row_type!r})"

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        reader = ArrowRowReader(self.row_type, self.is_utc_timestamp, self.is_case_sensitive)
        with NamingTheFile(file.path), file.open_raw() as stream:
            yield from parquet_batches(stream, offset or 0, self.batch_size, reader.columns_in, reader.rows)

    def get_produced_type(self) -> TypeInformation:
        return self.row_type


class ParquetRowWriter(ArrowRowWriter):
    """Writes the rows of one Parquet file."""

    def __init__(self, stream: BinaryIO, row_type: RowTypeInfo, is_utc_timestamp: bool, compression: str) -> None:
        from pyarrow.parquet import ParquetWriter

        super().__init__(row_type, is_utc_timestamp)
        self._writer = ParquetWriter(stream, self.schema, compression=compression)

    def write_table(self, table: Any) -> None:
        self._writer.write_table(table)

    def end_file(self) -> None:
        self._writer.close()


class ParquetWriterFactory(RowDataBulkWriterFactory):
    """Writes rows as Parquet files. Of the Hadoop settings only `parquet.compression` counts; SNAPPY unless set."""

    def __init__(self, row_type: RowTypeInfo, hadoop_config: dict[str, str], is_utc_timestamp: bool) -> None:
        super().__init__(row_type)
        self.hadoop_config = hadoop_config
        self.is_utc_timestamp = is_utc_timestamp
        arrow_schema(row_type)  # So that a type that cannot be written is refused here.

    def create(self, stream: BinaryIO) -> ParquetRowWriter:
        compression = self.hadoop_config.get("parquet.compression", "SNAPPY").lower()
        compression = "none" if compression == "uncompressed" else compression
        return ParquetRowWriter(stream, self.get_row_type(), self.is_utc_timestamp, compression)


class ParquetBulkWriters:
    """Makes writers for `FileSink.for_bulk_format`.

    `ParquetColumnarRowInputFormat` has an example.
    """

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Rows of a type such as `Types.ROW_NAMED([...], [...])`."""
        return ParquetWriterFactory(
            check_row_type("ParquetBulkWriters.for_row_type", row_type),
            hadoop_config.to_dict() if hadoop_config is not None else {},
            utc_timestamp,
        )
