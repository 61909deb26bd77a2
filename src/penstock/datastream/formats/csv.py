"""CSV files and messages."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.common.serialization import BulkWriterFactory, RowDataBulkWriterFactory
from penstock.datastream.connectors.file_source import StreamFormat
from penstock.datastream.formats.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from penstock.datastream.formats.csv_schema import CsvSchema, CsvSchemaBuilder

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


@dataclass(frozen=True)
class CsvReaderFormat(StreamFormat):
    """Reads CSV files as rows; made by `CsvReaderFormat.for_schema(schema)`."""

    schema: CsvSchema

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        return CsvReaderFormat(_checked("CsvReaderFormat", schema))


class CsvWriterFactory(RowDataBulkWriterFactory):
    """Writes rows as CSV files."""

    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type)
        self.schema = schema


class CsvBulkWriters:
    """Makes writers for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        return CsvWriterFactory(_checked("CsvBulkWriters", schema))


def _checked(where: str, schema: CsvSchema) -> CsvSchema:
    if not isinstance(schema, CsvSchema):
        raise TypeError(f"{where}.for_schema: expected a CsvSchema, got {schema!r}; make one with CsvSchema.builder()")
    return schema
