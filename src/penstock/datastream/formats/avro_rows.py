"""Rows and Avro's values: the type that rows of a schema have, and how one becomes the other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

from penstock.common.time import Instant
from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.common.types import make_row
from penstock.datastream.formats import exact_values

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
    """A function that makes a row of a record in fastavro's form, a dict."""
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
    if schema.get("logicalType") == "uuid" and schema["type"] == "string":
        return str  # As the type of the row says, and as in Flink; fastavro makes it a UUID.
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
    """What a clock in UTC showed, as in Flink."""
    return moment.replace(tzinfo=None)


# --- writing ---------------------------------------------------------------------------------------------------------


def record_writer(schema: Any) -> Converter:
    """A function that turns a value that fits an expanded schema into one that fastavro writes: rows become dicts.

    Fastavro itself would cut off or round some values. Those raise ValueError, and so do others that do not fit.
    """
    return _writer(schema) or _as_it_is


def _writer(schema: Any) -> Converter | None:
    """None where fastavro is exact itself; also for records that hold themselves, and unions of several types."""
    if isinstance(schema, list):
        held = _held(schema)
        return None if held is None else _optional(_writer(held))
    if not isinstance(schema, dict):
        return _EXACT.get(schema)
    if schema.get("logicalType") in _EXACT_TIMES:
        return _EXACT_TIMES[schema["logicalType"]]
    match schema["type"]:
        case "record":
            return _record_writer(schema)
        case "array" if (item := _writer(schema["items"])) is not None:
            return lambda items: [item(each) for each in items]
        case "map" if (value := _writer(schema["values"])) is not None:
            return lambda entries: {key: value(each) for key, each in entries.items()}
    return _EXACT.get(schema["type"])


def _record_writer(schema: Any) -> Converter:
    writers = {field["name"]: _writer(field["type"]) or _as_it_is for field in schema["fields"]}
    names = list(writers)
    row_type: RowTypeInfo | None = None

    def record(row: Any) -> dict[str, Any]:
        nonlocal row_type
        if isinstance(row, dict):  # What is missing has the schema's default.
            given = row
        else:
            row_type = row_type or row_type_of(schema)  # Only now: not every schema of dicts fits rows.
            values = list(row_type._values_of(row))
            if len(values) != len(names):
                raise ValueError(f"{row!r} has {len(values)} fields, but the schema has {names}")
            given = dict(zip(names, values, strict=True))
        name, written = "", {}
        try:
            for name, value in given.items():
                written[name] = writers.get(name, _as_it_is)(value)
        except (ValueError, TypeError, AttributeError, ArithmeticError) as failure:
            raise ValueError(f"field {name!r}: {failure}") from failure
        return written

    return record


def _as_it_is(value: Any) -> Any:
    return value


def _moment(value: Any, least_micros: int, is_local: bool) -> Any:
    """Times without a zone are in UTC, as in what is read."""
    if isinstance(value, Instant):
        micros, rest = divmod(value.nanos, 1000)
        if rest:
            raise ValueError(f"{value!r} has nanoseconds, which are lost in microseconds")
        value = _EPOCH + timedelta(seconds=value.seconds, microseconds=micros)
    elif not isinstance(value, datetime):
        return _number_of_time(value)
    elif is_local and value.tzinfo is not None:
        raise ValueError(f"{value!r} has a zone, which a local time does not have")
    if value.microsecond % least_micros:
        raise ValueError(f"{value!r} has microseconds, which are lost in milliseconds")
    return value.replace(tzinfo=None) if is_local else value if value.tzinfo else value.replace(tzinfo=timezone.utc)


def _time(value: Any, least_micros: int) -> Any:
    return exact_values.clock_time(value, least_micros) if isinstance(value, time) else _number_of_time(value)


def _number_of_time(value: Any) -> int:
    """Dates and times may also be the numbers that are written for them."""
    return exact_values.whole_number(Types.LONG())(value)


def _date(value: Any) -> Any:
    return exact_values.calendar_day(value) if isinstance(value, date) else _number_of_time(value)


def _nothing(value: Any) -> None:
    if value is not None:
        raise ValueError(f"{value!r} is not None")


_EXACT: dict[str, Converter] = {
    "null": _nothing,
    "boolean": exact_values.boolean,
    "int": exact_values.whole_number(Types.INT()),
    "long": exact_values.whole_number(Types.LONG()),
    "float": exact_values.real_number(Types.FLOAT()),
    "double": exact_values.real_number(Types.DOUBLE()),
}
_EXACT_TIMES: dict[str, Converter] = {
    "date": _date,
    "time-millis": lambda value: _time(value, 1000),
    "time-micros": lambda value: _time(value, 1),
    "timestamp-millis": lambda value: _moment(value, 1000, is_local=False),
    "timestamp-micros": lambda value: _moment(value, 1, is_local=False),
    "local-timestamp-millis": lambda value: _moment(value, 1000, is_local=True),
    "local-timestamp-micros": lambda value: _moment(value, 1, is_local=True),
}


def _each(converters: list[Converter | None], values: list[Any]) -> list[Any]:
    return [
        value if convert is None or value is None else convert(value)
        for convert, value in zip(converters, values, strict=True)
    ]


def _optional(convert: Converter | None) -> Converter | None:
    return None if convert is None else lambda value: None if value is None else convert(value)
