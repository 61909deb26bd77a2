"""ORC files."""

from __future__ import annotations

from typing import Any, BinaryIO

from penstock.common.configuration import Configuration
from penstock.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from penstock.common.typeinfo import RowTypeInfo
from penstock.datastream.formats.arrow_rows import ArrowRowWriter, arrow_schema
from penstock.datastream.formats.row_types import check_row_type

__all__ = ["OrcBulkWriters"]


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
    """Writes rows as ORC files. Of the properties only `orc.compress` counts; it is ZLIB."""

    def __init__(self, row_type: RowTypeInfo, writer_properties: dict[str, str], hadoop_config: dict[str, str]) -> None:
        super().__init__(row_type)
        self.writer_properties = writer_properties
        self.hadoop_config = hadoop_config
        arrow_schema(row_type)  # So that a type that cannot be written is told here.

    def create(self, stream: BinaryIO) -> OrcRowWriter:
        compression = self.writer_properties.get("orc.compress", "ZLIB").upper()
        return OrcRowWriter(stream, self.get_row_type(), "UNCOMPRESSED" if compression == "NONE" else compression)


class OrcBulkWriters:
    """Makes writers for `FileSink.for_bulk_format`."""

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
