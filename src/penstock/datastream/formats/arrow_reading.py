"""Rows from Arrow columns: how Parquet and ORC files are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, BinaryIO

from penstock.common.time import Instant
from penstock.common.typeinfo import (
    ExternalTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from penstock.common.types import Row
from penstock.datastream.connectors.file_formats import FileBatch
from penstock.datastream.formats.csv_values import make_row
from penstock.datastream.formats.json_values import element_type_of

Converter = Callable[[Any], Any]
ColumnsIn = Callable[[list[str]], "list[str | None]"]
"""From the columns of a file to those that are read, one for each field."""
Read = Callable[[Any, "list[str | None]"], "list[Any]"]
"""From a batch of those columns to records."""
Batches = Iterator[FileBatch]


class ArrowRowReader:
    """Turns batches of Arrow columns into rows of a type. Columns that a file lacks are None."""

    def __init__(self, row_type: RowTypeInfo, is_utc_timestamp: bool = True, is_case_sensitive: bool = True) -> None:
        self._names = row_type.get_field_names()
        self._types = row_type.get_field_types()
        self._converters = [_converter(each, is_utc_timestamp) for each in self._types]
        self._is_case_sensitive = is_case_sensitive

    def columns_in(self, file_columns: list[str]) -> list[str | None]:
        """For each field, what its column is called in a file."""
        if self._is_case_sensitive:
            return [name if name in file_columns else None for name in self._names]
        by_lower = {name.lower(): name for name in file_columns}
        return [by_lower.get(name.lower()) for name in self._names]

    def rows(self, batch: Any, columns: list[str | None]) -> list[Row]:
        return [make_row(self._names, list(values)) for values in zip(*self.fields(batch, columns), strict=True)]

    def fields(self, batch: Any, columns: list[str | None]) -> list[list[Any]]:
        """The values of each field, one list for each."""
        return [
            [None] * batch.num_rows if column is None else self._values(batch.column(column), at)
            for at, column in enumerate(columns)
        ]

    def _values(self, column: Any, at: int) -> list[Any]:
        convert = self._converters[at]
        if convert is _same:
            return _python_values(column)
        return [None if item is None else convert(item) for item in _python_values(column)]


def _python_values(column: Any) -> list[Any]:
    """Nanoseconds, for which Python has no time, stay numbers."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        values: list[Any] = column.cast(pa.int64()).to_pylist()
        return values
    values = column.to_pylist()
    return values


def _converter(type_info: TypeInformation, is_utc_timestamp: bool) -> Converter:
    """What makes a value that Arrow gives one of the type."""
    match type_info:
        case ExternalTypeInfo():
            return _converter(type_info._type_info, is_utc_timestamp)
        case RowTypeInfo():
            names = type_info.get_field_names()
            fields = _optional_converters(type_info.get_field_types(), is_utc_timestamp)
            return lambda row: make_row(names, [c(row.get(n)) for n, c in zip(names, fields, strict=True)])
        case TupleTypeInfo():
            fields = _optional_converters(type_info.get_field_types(), is_utc_timestamp)
            return lambda row: tuple(c(item) for c, item in zip(fields, row.values(), strict=True))
        case MapTypeInfo():
            inner = [type_info._key_type_info, type_info._value_type_info]
            key, value = _optional_converters(inner, is_utc_timestamp)
            return lambda entries: {key(k): value(v) for k, v in entries}
        case PrimitiveArrayTypeInfo() if type_info._element_type == Types.BYTE():
            return bytes
    if (element := element_type_of(type_info)) is not None:
        (each,) = _optional_converters([element], is_utc_timestamp)
        return lambda items: [each(item) for item in items]
    if type_info == Types.SQL_TIMESTAMP():
        return lambda moment: _wall_time(moment, is_utc_timestamp)
    if type_info == Types.INSTANT():
        return _instant
    return int if type_info == Types.BIG_INT() else _same


def _same(item: Any) -> Any:
    return item


def _optional_converters(types: list[TypeInformation], is_utc_timestamp: bool) -> list[Converter]:
    return [_optional(_converter(each, is_utc_timestamp)) for each in types]


def _optional(convert: Converter) -> Converter:
    return lambda item: None if item is None else convert(item)


def _wall_time(moment: datetime | int, is_utc: bool) -> datetime:
    """What the clock showed, in UTC or on this machine, where the file knows the instant."""
    if isinstance(moment, int):
        seconds, nanos = divmod(moment, 1_000_000_000)
        return datetime.fromtimestamp(seconds, timezone.utc).replace(microsecond=nanos // 1000, tzinfo=None)
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(timezone.utc if is_utc else None).replace(tzinfo=None)


def _instant(moment: datetime | int) -> Instant:
    if isinstance(moment, int):
        return Instant(*divmod(moment, 1_000_000_000))
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    seconds = int(aware.replace(microsecond=0).timestamp())
    return Instant(seconds, aware.microsecond * 1000)


# --- files -----------------------------------------------------------------------------------------------------------


def parquet_batches(stream: BinaryIO, offset: int, batch_size: int, columns_in: ColumnsIn, read: Read) -> Batches:
    """The rows of a Parquet file behind the first `offset`; row groups before that are not read."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    columns = columns_in(file.schema_arrow.names)
    wanted = [column for column in columns if column is not None]
    number, groups = 0, list(range(file.num_row_groups))
    while groups and number + file.metadata.row_group(groups[0]).num_rows <= offset:
        number += file.metadata.row_group(groups.pop(0)).num_rows
    for batch in file.iter_batches(batch_size, row_groups=groups, columns=wanted) if groups else ():
        yield from _behind(batch, number, offset, columns, read)
        number += batch.num_rows


def orc_batches(stream: BinaryIO, offset: int, batch_size: int, columns_in: ColumnsIn, read: Read) -> Batches:
    """The rows of an ORC file behind the first `offset`."""
    from pyarrow import PythonFile, Table
    from pyarrow.orc import ORCFile

    file = ORCFile(PythonFile(stream, mode="r"))
    columns = columns_in(file.schema.names)
    number = 0
    for stripe in range(file.nstripes):
        table = Table.from_batches([file.read_stripe(stripe, [column for column in columns if column is not None])])
        for batch in table.to_batches(max_chunksize=batch_size):
            yield from _behind(batch, number, offset, columns, read)
            number += batch.num_rows


def _behind(batch: Any, number: int, offset: int, columns: list[str | None], read: Read) -> Batches:
    """The part of a batch, whose first row has this number, that is behind `offset`."""
    if number + batch.num_rows > offset:
        rest = batch.slice(max(0, offset - number))
        yield FileBatch(read(rest, columns), number + batch.num_rows)

