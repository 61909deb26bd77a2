"""Rows as Arrow columns: what Parquet and ORC files are written from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.serialization import BulkWriter
from penstock.common.time import Instant
from penstock.common.typeinfo import (
    ExternalTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
    element_type_of,
)
from penstock.common.types import Row
from penstock.datastream.formats import exact_values
from penstock.datastream.formats.exact_values import WHOLE_TYPES

ROWS_AT_ONCE = 8_192

Converter = Callable[[Any], Any]


class ArrowRowWriter(BulkWriter, ABC):
    """Gathers rows and hands them on as Arrow tables of `ROWS_AT_ONCE` rows."""

    def __init__(self, row_type: RowTypeInfo, is_utc_timestamp: bool = True) -> None:
        self._row_type = row_type
        self.schema = arrow_schema(row_type)
        self._columns: list[list[Any]] = [[] for _ in row_type.get_field_types()]
        self._converters = [_converter(each, is_utc_timestamp) for each in row_type.get_field_types()]

    @abstractmethod
    def write_table(self, table: Any) -> None:
        """Add a table to the file."""

    @abstractmethod
    def end_file(self) -> None:
        """Write the end of the file."""

    def add_element(self, element: Any) -> None:
        fields = self._row_type._values_of(element)
        if len(fields) != len(self._columns):
            raise ValueError(f"{element!r} has {len(fields)} fields, but the file has {self.schema.names}")
        for column, field in zip(self._columns, fields, strict=True):
            column.append(field)
        if len(self._columns[0]) >= ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if any(self._columns):
            import pyarrow as pa

            arrays = [self._array(at) for at in range(len(self._columns))]
            self.write_table(pa.Table.from_arrays(arrays, schema=self.schema))
            self._columns = [[] for _ in self._columns]

    def finish(self) -> None:
        self.flush()
        self.end_file()

    def _array(self, at: int) -> Any:
        import pyarrow as pa

        def made_of(items: list[Any]) -> Any:
            return pa.array([None if item is None else convert(item) for item in items], field.type)

        field, convert = self.schema.field(at), self._converters[at]
        refusals = (pa.ArrowException, TypeError, ValueError, AttributeError, ArithmeticError)
        try:
            return made_of(self._columns[at])
        except refusals:
            for fields in zip(*self._columns, strict=True):
                # Called `value`, because errors name it.
                value = Row(**dict(zip(self.schema.names, fields, strict=True)))
                try:
                    made_of([value[at]])
                except refusals as failure:
                    raise ValueError(
                        f"column {field.name!r} is declared as {self._row_type.get_field_types()[at]}, but holds "
                        f"{value[at]!r}: {failure}"
                    ) from None
            raise


def arrow_schema(row_type: RowTypeInfo) -> Any:
    """The Arrow schema of rows of a type; every column may hold None."""
    import pyarrow as pa

    return pa.schema(_fields(row_type.get_field_names(), row_type.get_field_types()))


def _fields(names: list[str], types: list[TypeInformation]) -> list[Any]:
    import pyarrow as pa

    return [pa.field(name, _arrow_type(each)) for name, each in zip(names, types, strict=True)]


def _arrow_type(type_info: TypeInformation) -> Any:
    import pyarrow as pa

    match type_info:
        case ExternalTypeInfo():
            return _arrow_type(type_info._type_info)
        case RowTypeInfo():
            return pa.struct(_fields(type_info.get_field_names(), type_info.get_field_types()))
        case TupleTypeInfo():
            return pa.struct(_fields(_tuple_names(type_info), type_info.get_field_types()))
        case MapTypeInfo():
            return pa.map_(_arrow_type(type_info._key_type_info), _arrow_type(type_info._value_type_info))
        case PrimitiveArrayTypeInfo() if type_info._element_type == Types.BYTE():
            return pa.binary()
    if (element := element_type_of(type_info)) is not None:
        return pa.list_(_arrow_type(element))
    plain = {
        Types.STRING(): pa.string(),
        Types.CHAR(): pa.string(),
        Types.BOOLEAN(): pa.bool_(),
        Types.BYTE(): pa.int8(),
        Types.SHORT(): pa.int16(),
        Types.INT(): pa.int32(),
        Types.LONG(): pa.int64(),
        Types.FLOAT(): pa.float32(),
        Types.DOUBLE(): pa.float64(),
        Types.BIG_INT(): pa.decimal128(38, 0),
        Types.BIG_DEC(): pa.decimal128(38, 18),
        Types.SQL_DATE(): pa.date32(),
        Types.SQL_TIME(): pa.time32("ms"),
        Types.SQL_TIMESTAMP(): pa.timestamp("us"),
        Types.INSTANT(): pa.timestamp("ns", tz="UTC"),
    }
    if type_info not in plain:
        raise UnsupportedFeatureError(
            f"a {type_info} cannot be a column of a Parquet or ORC file; use basic types, arrays, maps and rows"
        )
    return plain[type_info]


def _converter(type_info: TypeInformation, is_utc_timestamp: bool) -> Converter:
    """A function that turns a value of the type into one that Arrow takes."""
    match type_info:
        case ExternalTypeInfo():
            return _converter(type_info._type_info, is_utc_timestamp)
        case RowTypeInfo():
            return _struct_converter(type_info.get_field_names(), type_info, is_utc_timestamp, type_info._values_of)
        case TupleTypeInfo():
            return _struct_converter(_tuple_names(type_info), type_info, is_utc_timestamp, list)
        case MapTypeInfo():
            key = _optional(_converter(type_info._key_type_info, is_utc_timestamp))
            item = _optional(_converter(type_info._value_type_info, is_utc_timestamp))
            return lambda entries: [(key(k), item(v)) for k, v in entries.items()]
        case PrimitiveArrayTypeInfo() if type_info._element_type == Types.BYTE():
            return exact_values.raw_bytes
    if (element := element_type_of(type_info)) is not None:
        each = _optional(_converter(element, is_utc_timestamp))
        return lambda items: [each(item) for item in items]
    if type_info == Types.SQL_TIMESTAMP():
        return lambda moment: wall_time(moment, is_utc_timestamp)
    return _EXACT.get(type_info, _same)


def _same(item: Any) -> Any:
    return item


def _struct_converter(
    names: list[str], type_info: RowTypeInfo | TupleTypeInfo, is_utc_timestamp: bool, fields_of: Converter
) -> Converter:
    converters = [_optional(_converter(each, is_utc_timestamp)) for each in type_info.get_field_types()]
    return lambda row: {n: c(field) for n, c, field in zip(names, converters, fields_of(row), strict=True)}


def _optional(convert: Converter) -> Converter:
    return lambda item: None if item is None else convert(item)


def _tuple_names(type_info: TupleTypeInfo) -> list[str]:
    return [f"f{at}" for at in range(len(type_info.get_field_types()))]


def wall_time(moment: datetime, is_utc: bool) -> datetime:
    """A time without a zone as it is; another one as a clock showed it then, in UTC or on this machine."""
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(timezone.utc if is_utc else None).replace(tzinfo=None)


def _instant_ns(instant: Instant) -> int:
    nanos = instant.seconds * 1_000_000_000 + instant.nanos
    if not -(1 << 63) <= nanos < 1 << 63:
        raise ValueError(f"{instant!r} is not between the years 1677 and 2262, as nanoseconds must be")
    return nanos


# Where Arrow itself would round or cut off.
_EXACT: dict[TypeInformation, Converter] = {
    **{each: exact_values.whole_number(each) for each in WHOLE_TYPES},
    Types.FLOAT(): exact_values.real_number(Types.FLOAT()),
    Types.STRING(): exact_values.text,
    Types.CHAR(): exact_values.text,
    Types.SQL_DATE(): exact_values.calendar_day,
    Types.SQL_TIME(): lambda value: exact_values.clock_time(value, least_micros=1000),
    Types.INSTANT(): _instant_ns,
}
