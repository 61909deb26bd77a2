"""ORC files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from penstock.common.configuration import Configuration
from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.datastream.connectors.file_system.formats import BulkFormat, FileBatch, FileToRead
from penstock.datastream.formats.arrow_reading import ArrowRowReader, NamingTheFile, orc_batches
from penstock.datastream.formats.arrow_rows import ArrowRowWriter, arrow_schema
from penstock.datastream.formats.row_types import check_row_type

__all__ = ["OrcBulkWriters", "OrcColumnarRowInputFormat"]


class OrcColumnarRowInputFormat(BulkFormat):
    """Reads ORC files as rows, only the columns that the row type names.

    :param batch_size: Rows read at a time.
    :param is_case_sensitive: Whether column names must match exactly.

    `ParquetColumnarRowInputFormat` has an example with Parquet.
    """

    def __init__(self, row_type: RowTypeInfo, batch_size: int = 2048, is_case_sensitive: bool = True) -> None:
        if batch_size <= 0:
            raise ValueError(f"OrcColumnarRowInputFormat: batch_size must be positive, got {batch_size}")
        self.row_type = check_row_type("OrcColumnarRowInputFormat", row_type)
        self.batch_size = batch_size
        self.is_case_sensitive = is_case_sensitive

    def __repr__(self) -> str:
        return f"OrcColumnarRowInputFormat({self.row_type!r})"

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        reader = ArrowRowReader(self.row_type, is_case_sensitive=self.is_case_sensitive)
        with NamingTheFile(file.path), file.open_raw() as stream:
            yield from orc_batches(stream, offset or 0, self.batch_size, reader.columns_in, reader.rows)

    def get_produced_type(self) -> TypeInformation:
        return self.row_type


class OrcRowWriter(ArrowRowWriter):
    """Writes the rows of one ORC file."""

    def __init__(self, stream: BinaryIO, row_type: RowTypeInfo, compression: str) -> None:
        from pyarrow import PythonFile
        from pyarrow.orc import ORCWriter

        super().__init__(row_type)
        self._writer = ORCWriter(PythonFile(stream, mode="w"), compression=compression)

    def write_table(self, table: Any) -> None:
        self._writer.write(table)

    def end_file(self) -> None:
        self._writer.close()


class OrcWriterFactory(RowDataBulkWriterFactory):
    """Writes rows as ORC files. Of the properties only `orc.compress` counts; it is ZLIB unless set."""

    def __init__(self, row_type: RowTypeInfo, writer_properties: dict[str, str], hadoop_config: dict[str, str]) -> None:
        super().__init__(row_type)
        self.writer_properties = writer_properties
        self.hadoop_config = hadoop_config
        _check_columns(arrow_schema(row_type))

    def create(self, stream: BinaryIO) -> OrcRowWriter:
        compression = self.writer_properties.get("orc.compress", "ZLIB").upper()
        return OrcRowWriter(stream, self.get_row_type(), "UNCOMPRESSED" if compression == "NONE" else compression)


def _check_columns(schema: Any) -> None:
    """Refuse a type that cannot be written here, not with the first row."""
    from pyarrow import types

    left = list(schema)
    while left:
        field = left.pop()
        if types.is_time(field.type):
            raise UnsupportedFeatureError(
                f"OrcBulkWriters: column {field.name!r} is a time of day, which ORC has no type for; write it as text, "
                f"as a number or as a SQL_TIMESTAMP"
            )
        left.extend(field.type.field(at) for at in range(field.type.num_fields))


class OrcBulkWriters:
    """Makes writers for `FileSink.for_bulk_format`.

    `ParquetColumnarRowInputFormat` has an example with Parquet.
    """

    @staticmethod
    def for_row_type(
        row_type: RowTypeInfo,
        writer_properties: Configuration | None = None,
        hadoop_config: Configuration | None = None,
    ) -> BulkWriterFactory:
        """Rows of a type such as `Types.ROW_NAMED([...], [...])`."""
        return OrcWriterFactory(
            check_row_type("OrcBulkWriters.for_row_type", row_type),
            writer_properties.to_dict() if writer_properties is not None else {},
            hadoop_config.to_dict() if hadoop_config is not None else {},
        )
