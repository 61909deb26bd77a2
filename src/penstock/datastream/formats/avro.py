"""Avro schemas, and what is read and written by them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.io import InputFormat
from penstock.common.serialization import BulkWriterFactory, DeserializationSchema, SerializationSchema
from penstock.common.typeinfo import TypeInformation
from penstock.datastream.utils import ResultTypeQueryable

__all__ = [
    "AvroBulkWriters",
    "AvroInputFormat",
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
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        return AvroSchema(Path(file_path).read_text(encoding="utf-8"))

    def to_object(self) -> Any:
        """The schema as dicts and lists."""
        return json.loads(self.json_text)

    def __str__(self) -> str:
        return self.json_text


class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of Avro records, which are dicts in Python."""

    def __init__(self, schema: AvroSchema) -> None:
        super().__init__()
        self._schema = _checked("GenericRecordAvroTypeInfo", schema)

    def get_schema(self) -> AvroSchema:
        return self._schema

    def _parts(self) -> tuple[object, ...]:
        return (self._schema,)


class AvroInputFormat(InputFormat, ResultTypeQueryable):
    """Reads an Avro file or a folder of them as dicts."""

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self.path = path
        self.schema = _checked("AvroInputFormat", schema)

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        return GenericRecordAvroTypeInfo(self.schema)


@dataclass(frozen=True)
class AvroWriterFactory(BulkWriterFactory):
    """Writes dicts as Avro files."""

    schema: AvroSchema


class AvroBulkWriters:
    """Makes writers for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        return AvroWriterFactory(_checked("AvroBulkWriters", schema))


class AvroRowDeserializationSchema(DeserializationSchema):
    """Reads rows from Avro messages of a schema."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__()
        self.schema = _schema_of("AvroRowDeserializationSchema", record_class, avro_schema_string)


class AvroRowSerializationSchema(SerializationSchema):
    """Writes rows as Avro messages of a schema."""

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__()
        self.schema = _schema_of("AvroRowSerializationSchema", record_class, avro_schema_string)


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
