"""Rows and Avro's values: the type that rows of a schema have, and how one becomes the other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.datastream.formats.csv_values import make_row

Converter = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PLAIN_TYPES = {
    "string": Types.STRING,
    "enum": Types.STRING,
    "boolean": Types.BOOLEAN,
    "int": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "bytes": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "fixed": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "null": Types.PICKLED_BYTE_ARRAY,
}
_LOGICAL_TYPES = {
    "decimal": Types.BIG_DEC,
    "date": Types.SQL_DATE,
    "time-millis": Types.SQL_TIME,
    "time-micros": Types.SQL_TIME,
    "timestamp-millis": Types.SQL_TIMESTAMP,
    "timestamp-micros": Types.SQL_TIMESTAMP,
    "local-timestamp-millis": Types.SQL_TIMESTAMP,
    "local-timestamp-micros": Types.SQL_TIMESTAMP,
}
_MOMENTS = ("timestamp-millis", "timestamp-micros")


def row_type_of(schema: Any) -> RowTypeInfo:
    """The type of the rows of an expanded record schema, by Flink's rules."""
    fields = schema["fields"]
    return Types.ROW_NAMED([each["name"] for each in fields], [type_of(each["type"]) for each in fields])


def type_of(schema: Any) -> TypeInformation:
    """Nullable unions have the type of what they hold; other unions may hold anything."""
    if isinstance(schema, list):
        held = _held(schema)
        return Types.PICKLED_BYTE_ARRAY() if held is None else type_of(held)
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[logical]()
    match kind:
        case "record":
            return row_type_of(schema)
        case "array":
            return Types.OBJECT_ARRAY(type_of(schema["items"]))
        case "map":
            return Types.MAP(Types.STRING(), type_of(schema["values"]))
    if kind not in _PLAIN_TYPES:
        raise ValueError(
            f"the Avro record {kind!r} holds itself, and a row cannot; read such records as dicts, with "
            f"AvroReaders.for_generic_record(schema)"
        )
    return _PLAIN_TYPES[kind]()


def _held(union: list[Any]) -> Any:
    """What a nullable union holds; None for any other union."""
    others = [branch for branch in union if branch != "null"]
    return others[0] if len(others) == 1 else None


# --- reading ---------------------------------------------------------------------------------------------------------


def row_reader(schema: Any) -> Converter:
    """What makes a row of a record as fastavro reads it, a dict."""
    return _reader(schema) or (lambda record: record)


def _reader(schema: Any) -> Converter | None:
    """None where values stay as they are."""
    if isinstance(schema, list):
        held = _held(schema)
        return None if held is None else _optional(_reader(held))
    if not isinstance(schema, dict):
        return None
    if schema.get("logicalType") in _MOMENTS:
        return _wall_time
    match schema["type"]:
        case "record":
            names = [field["name"] for field in schema["fields"]]
            readers = [_reader(field["type"]) for field in schema["fields"]]
            return lambda record: make_row(names, _each(readers, [record[name] for name in names]))
        case "array" if (item := _reader(schema["items"])) is not None:
            return lambda items: [item(each) for each in items]
        case "map" if (value := _reader(schema["values"])) is not None:
            return lambda entries: {key: value(each) for key, each in entries.items()}
    return None


def _wall_time(moment: datetime) -> datetime:
    """What the clock in UTC showed, as Flink has it."""
    return moment.replace(tzinfo=None)


# --- writing ---------------------------------------------------------------------------------------------------------


def row_writer(schema: Any) -> Converter:
    """What makes a dict that fastavro writes of a row; dicts may hold rows, too."""
    return _writer(schema) or (lambda row: row)


def _writer(schema: Any) -> Converter | None:
    if isinstance(schema, list):
        held = _held(schema)
        return None if held is None else _optional(_writer(held))
    if not isinstance(schema, dict):
        return None
    logical = schema.get("logicalType")
    if logical in _MOMENTS:
        return _moment
    match schema["type"]:
        case "record":
            return _record_writer(schema)
        case "array" if (item := _writer(schema["items"])) is not None:
            return lambda items: [item(each) for each in items]
        case "map" if (value := _writer(schema["values"])) is not None:
            return lambda entries: {key: value(each) for key, each in entries.items()}
    return None


def _record_writer(schema: Any) -> Converter:
    row_type = row_type_of(schema)
    names = row_type.get_field_names()
    writers = [_writer(field["type"]) for field in schema["fields"]]

    def record(row: Any) -> dict[str, Any]:
        values = list(row_type._values_of(row))
        if len(values) != len(names):
            raise ValueError(f"{row!r} has {len(values)} fields, but the schema has {names}")
        return dict(zip(names, _each(writers, values), strict=True))

    return record


def _moment(value: Any) -> Any:
    """Times without a zone are in UTC, as in what is read."""
    if isinstance(value, Instant):
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=timezone.utc)
    return value


def _each(converters: list[Converter | None], values: list[Any]) -> list[Any]:
    return [
        value if convert is None or value is None else convert(value)
        for convert, value in zip(converters, values, strict=True)
    ]


def _optional(convert: Converter | None) -> Converter | None:
    return None if convert is None else lambda value: None if value is None else convert(value)
