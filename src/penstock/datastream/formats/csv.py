"""CSV files and messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from penstock.common.serialization import BulkWriter, BulkWriterFactory, RowDataBulkWriterFactory
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.connectors.file_system.formats import FileBatch, FileToRead, StreamFormat
from penstock.datastream.formats.csv_files import CsvFile, column_dialect
from penstock.datastream.formats.csv_rows import CsvRowDeserializationSchema, CsvRowSerializationSchema
from penstock.datastream.formats.csv_schema import CsvSchema, CsvSchemaBuilder
from penstock.datastream.formats.csv_values import csv_writer

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
    """Reads CSV files as rows; made by `CsvReaderFormat.for_schema(schema)`.

    >>> schema = CsvSchema.builder().add_string_column("name").add_number_column("age").build()
    >>> CsvReaderFormat.for_schema(schema).get_produced_type()
    RowTypeInfo(name: String, age: Long)
    """

    schema: CsvSchema

    @staticmethod
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """A format for `FileSource.for_record_stream_format`."""
        return CsvReaderFormat(_checked("CsvReaderFormat", schema))

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        with file.open() as stream:
            yield from CsvFile(self.schema, stream).batches(offset)

    def get_produced_type(self) -> TypeInformation:
        return self.schema.row_type


class CsvRowWriter(BulkWriter):
    """Writes the rows of one CSV file, after a header if the schema has one."""

    def __init__(self, stream: BinaryIO, schema: CsvSchema) -> None:
        dialects = [column_dialect(schema, column) for column in schema.columns]
        self._stream = stream
        self._schema = schema
        self._line = dialects[0].line  # Columns differ only in how arrays look.
        self._writers = [csv_writer(c.type_info, each) for c, each in zip(schema.columns, dialects, strict=True)]
        if schema.uses_header:
            self._write_line([each.quote(c.name) for c, each in zip(schema.columns, dialects, strict=True)])

    def add_element(self, element: Any) -> None:
        fields = self._schema.row_type._values_of(element)
        if len(fields) != len(self._writers):
            raise ValueError(
                f"{element!r} has {len(fields)} fields, but the CSV schema has {len(self._writers)} columns"
            )
        texts: list[str] = []
        try:
            for write, field in zip(self._writers, fields, strict=True):
                texts.append(write(field))
        except (ValueError, TypeError, AttributeError, ArithmeticError) as failure:
            raise ValueError(f"column {self._schema.columns[len(texts)].name!r}: {failure}") from failure
        self._write_line(texts)

    def _write_line(self, texts: list[str]) -> None:
        self._stream.write(self._line(texts).encode())


class CsvWriterFactory(RowDataBulkWriterFactory):
    """Writes rows as CSV files."""

    def __init__(self, schema: CsvSchema) -> None:
        super().__init__(schema.row_type)
        self.schema = schema

    def create(self, stream: BinaryIO) -> CsvRowWriter:
        return CsvRowWriter(stream, self.schema)


class CsvBulkWriters:
    """Makes writers for `FileSink.for_bulk_format`.

    `CsvSchema` has an example.
    """

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Writes rows with the columns of the schema."""
        return CsvWriterFactory(_checked("CsvBulkWriters", schema))


def _checked(where: str, schema: CsvSchema) -> CsvSchema:
    if not isinstance(schema, CsvSchema):
        raise TypeError(f"{where}.for_schema: expected a CsvSchema, got {schema!r}; make one with CsvSchema.builder()")
    return schema
