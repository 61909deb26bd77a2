"""ORC files."""

from __future__ import annotations

from penstock.common.configuration import Configuration
from penstock.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from penstock.common.typeinfo import RowTypeInfo
from penstock.datastream.formats.row_types import check_row_type

__all__ = ["OrcBulkWriters"]


class OrcWriterFactory(RowDataBulkWriterFactory):
    """Writes rows as ORC files."""

    def __init__(self, row_type: RowTypeInfo, writer_properties: dict[str, str], hadoop_config: dict[str, str]) -> None:
        super().__init__(row_type)
        self.writer_properties = writer_properties
        self.hadoop_config = hadoop_config


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
