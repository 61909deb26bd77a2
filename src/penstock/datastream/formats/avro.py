"""Avro schemas, and what is read and written by them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.io import InputFormat
from penstock.common.serialization import BulkWriterFactory, DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import RowTypeInfo, TypeInformation
from penstock.common.types import Row
from penstock.datastream.connectors.file_system.formats import BulkFormat, FileBatch, FileToRead
from penstock.datastream.connectors.file_system.source import FileSource
from penstock.datastream.formats.avro_files import (
    AvroFileWriter,
    avro_batches,
    check_codec,
    expanded,
    fastavro,
    write_record,
)
from penstock.datastream.formats.avro_rows import record_writer, row_reader, row_type_of
from penstock.datastream.utils import ResultTypeQueryable

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
    "AvroReaders",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]


@dataclass(frozen=True)
class AvroSchema:
    """An Avro schema; made by `AvroSchema.parse_string(json)` or `AvroSchema.parse_file(path)`."""

    json_text: str

    def __post_init__(self) -> None:
        try:
            parsed = json.loads(self.json_text)
        except ValueError as exc:
            raise ValueError(f"AvroSchema: not JSON: {exc}") from exc
        if isinstance(parsed, dict) and "type" not in parsed:
            raise ValueError("AvroSchema: the schema has no 'type'; write for instance {'type': 'record', ...}")
        # The shortest form, so that two ways to write a schema are equal.
        object.__setattr__(self, "json_text", json.dumps(parsed, separators=(",", ":")))

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema in a JSON text.

        >>> print(AvroSchema.parse_string('{"type": "map", "values": "long"}'))
        {"type":"map","values":"long"}
        """
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema in a file, usually called `*.avsc`."""
        return AvroSchema(Path(file_path).read_text(encoding="utf-8"))

    def to_object(self) -> Any:
        """The schema as dicts and lists."""
        return json.loads(self.json_text)

    def __str__(self) -> str:
        return self.json_text


class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of Avro records, which are dicts in Python.

    `AvroSchema` has an example.
    """

    def __init__(self, schema: AvroSchema) -> None:
        super().__init__()
        self._schema = _checked("GenericRecordAvroTypeInfo", schema)

    def get_schema(self) -> AvroSchema:
        """The schema of the records."""
        return self._schema

    def _parts(self) -> tuple[object, ...]:
        return (self._schema,)


@dataclass(frozen=True)
class AvroFormat(BulkFormat):
    """Avro files as dicts or rows of a schema; made by `AvroReaders`."""

    schema: AvroSchema
    as_rows: bool = False

    @property
    def can_start_anywhere(self) -> bool:
        return True

    def read_file(self, file: FileToRead, offset: int | None) -> Iterator[FileBatch]:
        batches = avro_batches(file, self.schema.to_object(), offset)
        if not self.as_rows:
            yield from batches
            return
        read = row_reader(expanded("AvroReaders", self.schema.to_object()))
        for batch in batches:
            yield FileBatch([read(record) for record in batch.records], batch.offset, batch.bad)

    def get_produced_type(self) -> TypeInformation:
        if self.as_rows:
            return row_type_of(expanded("AvroReaders", self.schema.to_object()))
        return GenericRecordAvroTypeInfo(self.schema)


class AvroReaders:
    """Makes formats for `FileSource.for_bulk_file_format`.

    Files are read as the schema says, by Avro's rules: fields that a file lacks have the schema's defaults, and what
    the schema does not name is left out.

    `AvroSchema` has an example.
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkFormat:
        """Records as dicts; timestamps are datetimes in UTC."""
        expanded("AvroReaders.for_generic_record", _checked("AvroReaders", schema).to_object())
        return AvroFormat(schema)

    @staticmethod
    def for_rows(schema: AvroSchema) -> BulkFormat:
        """Records as rows with the names of the fields; timestamps are datetimes without a zone, in UTC."""
        record_schema("AvroReaders.for_rows", _checked("AvroReaders", schema))
        return AvroFormat(schema, as_rows=True)


class AvroInputFormat(InputFormat, ResultTypeQueryable):
    """Reads an Avro file or a folder of them as dicts; given to `env.create_input(...)`.

    `AvroSchema` has an example.
    """

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self.path = path
        self.schema = _checked("AvroInputFormat", schema)

    def __repr__(self) -> str:
        return f"AvroInputFormat({self.path!r}, {self.schema!r})"

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        return GenericRecordAvroTypeInfo(self.schema)

    def to_source(self) -> FileSource:
        """The source that reads these files."""
        return FileSource.for_bulk_file_format(AvroReaders.for_generic_record(self.schema), self.path).build()


@dataclass(frozen=True)
class AvroWriterFactory(BulkWriterFactory):
    """Writes dicts and rows as Avro files."""

    schema: AvroSchema
    codec: str = "null"

    def __post_init__(self) -> None:
        expanded("AvroBulkWriters", self.schema.to_object())
        check_codec(self.codec)

    def create(self, stream: BinaryIO) -> AvroFileWriter:
        return AvroFileWriter(stream, self.schema.to_object(), self.codec)


class AvroBulkWriters:
    """Makes writers for `FileSink.for_bulk_format`.

    `AvroSchema` has an example.
    """

    @staticmethod
    def for_generic_record(schema: AvroSchema, codec: str = "null") -> BulkWriterFactory:
        """Elements that fit the schema: dicts, or rows with its fields.

        :param codec: How blocks are packed: `null` (not at all), `deflate`, `snappy`, `bzip2`, `xz`, `zstandard`.
        """
        return AvroWriterFactory(_checked("AvroBulkWriters", schema), codec)


class AvroRowDeserializationSchema(DeserializationSchema):
    """Reads rows from Avro messages of a schema: records alone, without a container or a registry's prefix.

    `AvroRowSerializationSchema` has an example.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__()
        self.schema = _schema_of("AvroRowDeserializationSchema", record_class, avro_schema_string)
        self._library, self._parsed, full = _parsed("AvroRowDeserializationSchema", self.schema)
        self._row_type = row_type_of(full)
        self._read = row_reader(full)

    def __repr__(self) -> str:
        return f"AvroRowDeserializationSchema({self.schema!r})"

    def deserialize(self, message: bytes) -> Row:
        try:
            row: Row = self._read(self._library.schemaless_reader(BytesIO(message), self._parsed, None))
        except Exception as failure:  # Bytes of another schema may lead to anything.
            raise ValueError(
                f"AvroRowDeserializationSchema: {bytes(message)!r} is not a record of {self._parsed['name']!r}: "
                f"{type(failure).__name__}: {failure}"
            ) from failure
        return row

    def get_produced_type(self) -> RowTypeInfo:
        return self._row_type

    def __reduce__(self) -> tuple[Any, ...]:
        # Readers are made of closures, which do not pickle; they are built again instead.
        return type(self), (None, self.schema.json_text)


class AvroRowSerializationSchema(SerializationSchema):
    """Writes rows as Avro messages of a schema: records alone, without a container or a registry's prefix.

    >>> from penstock.common import Row
    >>> people = '{"type": "record", "name": "p", "fields": [{"name": "name", "type": "string"}]}'
    >>> written = AvroRowSerializationSchema(avro_schema_string=people).serialize(Row(name="Alice"))
    >>> AvroRowDeserializationSchema(avro_schema_string=people).deserialize(written)
    Row(name='Alice')
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__()
        self.schema = _schema_of("AvroRowSerializationSchema", record_class, avro_schema_string)
        self._library, self._parsed, full = _parsed("AvroRowSerializationSchema", self.schema)
        self._record = record_writer(full)

    def __repr__(self) -> str:
        return f"AvroRowSerializationSchema({self.schema!r})"

    def serialize(self, element: Any) -> bytes:
        message, library, schema = BytesIO(), self._library, self._parsed
        write = partial(library.schemaless_writer, message, schema)
        write_record(library, "AvroRowSerializationSchema", schema, self._record, element, write)
        return message.getvalue()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, self.schema.json_text)


def _parsed(user: str, schema: AvroSchema) -> tuple[Any, Any, Any]:
    """The library, the schema in its form, and the schema with definitions in place of names."""
    library = fastavro(user)
    full = record_schema(user, schema)
    return library, library.parse_schema(schema.to_object()), full


def record_schema(user: str, schema: AvroSchema) -> Any:
    """The schema of records that can be rows, with definitions in place of names; ValueError for others."""
    full = expanded(user, schema.to_object())
    if not isinstance(full, dict) or full.get("type") != "record":
        raise ValueError(f"{user}: rows need the schema of a record, {{'type': 'record', ...}}, got {schema}")
    row_type_of(full)  # So that a schema that cannot be a row is refused here.
    return full


def _schema_of(where: str, record_class: str | None, avro_schema_string: str | None) -> AvroSchema:
    if record_class is not None:
        raise UnsupportedFeatureError(
            f"{where}: the Java class {record_class!r} cannot be used here; give its schema as avro_schema_string"
        )
    if avro_schema_string is None:
        raise TypeError(f"{where}: avro_schema_string is missing")
    return AvroSchema.parse_string(avro_schema_string)


def _checked(where: str, schema: AvroSchema) -> AvroSchema:
    if not isinstance(schema, AvroSchema):
        raise TypeError(f"{where}: expected an AvroSchema, got {schema!r}; make one with AvroSchema.parse_string(...)")
    return schema
