"""Between DataStreams and tables: types, and the functions that convert elements to rows and rows to elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.common import typeinfo as ti
from penstock.common.types import Row, RowKind
from penstock.datastream.functions import FlatMapFunction, MapFunction, ProcessFunction, RuntimeContext
from penstock.table import types as t
from penstock.table.logical_types import NANOS_PER_MILLI, external_converter, internal_converter
from penstock.table.types import DataType, DataTypes, RowField, RowType

_BASIC: dict[ti.BasicType, Callable[[], DataType]] = {
    ti.BasicType.STRING: DataTypes.STRING,
    ti.BasicType.BYTE: DataTypes.TINYINT,
    ti.BasicType.BOOLEAN: DataTypes.BOOLEAN,
    ti.BasicType.SHORT: DataTypes.SMALLINT,
    ti.BasicType.INT: DataTypes.INT,
    ti.BasicType.LONG: DataTypes.BIGINT,
    ti.BasicType.FLOAT: DataTypes.FLOAT,
    ti.BasicType.DOUBLE: DataTypes.DOUBLE,
    ti.BasicType.CHAR: DataTypes.STRING,
    ti.BasicType.BIG_INT: lambda: DataTypes.DECIMAL(38, 0),
    ti.BasicType.BIG_DEC: lambda: DataTypes.DECIMAL(38, 18),
    ti.BasicType.INSTANT: lambda: DataTypes.TIMESTAMP_LTZ(9),
}
_KINDS = (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)


def row_type_of_stream(type_info: ti.TypeInformation | None) -> RowType:
    """The columns of a stream: the fields of its rows or tuples, else one column f0."""
    if type_info is None:
        return RowType([RowField("f0", t.RawType())])
    found = type_of_stream(type_info)
    return found if isinstance(found, RowType) else RowType([RowField("f0", found)])


def type_of_stream(type_info: ti.TypeInformation) -> DataType:
    """The type of a column whose values a stream's type describes."""
    match type_info:
        case ti.BasicTypeInfo():
            return _BASIC[type_info._basic_type]()
        case ti.DateTypeInfo():
            return DataTypes.DATE()
        case ti.TimeTypeInfo():
            return DataTypes.TIME()
        case ti.TimestampTypeInfo():
            return DataTypes.TIMESTAMP(3)
        case ti.LocalTimeTypeInfo():
            return _of_local_time(type_info)
        case ti.RowTypeInfo():
            pairs = zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
            return RowType([RowField(name, type_of_stream(of)) for name, of in pairs])
        case ti.TupleTypeInfo():
            types = type_info.get_field_types()
            return RowType([RowField(f"f{at}", type_of_stream(of)) for at, of in enumerate(types)])
        case ti.PrimitiveArrayTypeInfo(_element_type=ti.BasicTypeInfo(_basic_type=ti.BasicType.BYTE)):
            return DataTypes.BYTES()
        case ti.MapTypeInfo():
            return DataTypes.MAP(type_of_stream(type_info._key_type_info), type_of_stream(type_info._value_type_info))
        case ti.ExternalTypeInfo():
            return type_of_stream(type_info._type_info)
    element = ti.element_type_of(type_info)
    return t.RawType() if element is None else DataTypes.ARRAY(type_of_stream(element))


def _of_local_time(type_info: Any) -> DataType:
    match type_info._time_type.name:
        case "LOCAL_DATE":
            return DataTypes.DATE()
        case "LOCAL_TIME":
            return DataTypes.TIME()
    return DataTypes.TIMESTAMP(3)


@dataclass
class ToRows(ProcessFunction):
    """Elements of a stream as rows of a table; with the timestamp behind them if the table reads it."""

    row_type: RowType
    zone: str
    is_single: bool
    """True if an element is the value of the only column, and not a row."""
    columns: tuple[int, ...] | None = None
    """Which fields of an element, in which order; None for all."""
    with_rowtime: bool = False
    with_kind: bool = False

    def open(self, runtime_context: RuntimeContext) -> None:
        self._convert = internal_converter(self.row_type, self.zone)

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[tuple[Any, ...]]:
        fields = (value,) if self.is_single else value
        if self.columns is not None:
            items = list(fields)
            fields = tuple(items[at] for at in self.columns)
        row = tuple(fields) if self._convert is None else self._convert(fields)
        if self.with_rowtime:
            timestamp = ctx.timestamp()
            row = (*row, None if timestamp is None else timestamp * NANOS_PER_MILLI)
        if self.with_kind:
            kind = value.get_row_kind().value if isinstance(value, Row) else 0
            row = (*row, kind)
        yield row


@dataclass
class FromRows(MapFunction):
    """Rows of a table as elements of a stream: rows with the names of the columns, and their kind of change."""

    row_type: RowType
    zone: str
    is_changelog: bool

    def open(self, runtime_context: RuntimeContext) -> None:
        self._convert = external_converter(self.row_type, self.zone)
        self._names = self.row_type.field_names()

    def map(self, value: tuple[Any, ...]) -> Row:
        kind, values = (value[-1], value[:-1]) if self.is_changelog else (0, value)
        row = Row(*values) if self._convert is None else self._convert(values)
        row.set_field_names(self._names)
        if kind:
            row.set_row_kind(_KINDS[kind])
        return row


@dataclass
class Retractions(FlatMapFunction):
    """Rows as pairs, as to_retract_stream has them: True to add the row, False to remove it."""

    def flat_map(self, value: Row) -> Iterator[tuple[bool, Row]]:
        kind = value.get_row_kind()
        value.set_row_kind(RowKind.INSERT)
        yield kind in (RowKind.INSERT, RowKind.UPDATE_AFTER), value
