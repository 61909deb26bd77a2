"""Types of Python values, for tables that are made of them."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.common.types import Row
from penstock.table import types as t
from penstock.table.types import DataType, DataTypes, RowField, RowType

_SIMPLE: tuple[tuple[type, DataType], ...] = (
    (bool, DataTypes.BOOLEAN()),
    (int, DataTypes.BIGINT()),
    (float, DataTypes.DOUBLE()),
    (str, DataTypes.STRING()),
    (bytearray, DataTypes.BYTES()),
    (bytes, DataTypes.BYTES()),
    (decimal.Decimal, DataTypes.DECIMAL(38, 18)),
    (datetime.datetime, DataTypes.TIMESTAMP_LTZ(6)),
    (datetime.date, DataTypes.DATE()),
    (datetime.time, DataTypes.TIME()),
)


def row_type_of_elements(elements: Sequence[Any], names: Sequence[str] | None = None) -> RowType:
    """The type that fits all elements, with PyFlink's names for columns that have none: _1, _2 and so on."""
    if not elements:
        raise ValueError("there are no elements to tell the types of columns by; give a schema with types")
    found: DataType = t.NullType()
    for element in elements:
        found = _merged(found, _row_of(element, names))
    assert isinstance(found, RowType)
    _check_known(found, "")
    return found


def _row_of(element: Any, names: Sequence[str] | None) -> RowType:
    if isinstance(element, Row):
        own = element._fields
        values = list(element)
    elif isinstance(element, Mapping):
        own, values = sorted(element), [element[name] for name in sorted(element)]
    elif isinstance(element, (tuple, list)):
        own, values = getattr(element, "_fields", None), list(element)
    else:
        own, values = None, [element]
    used = list(names or own or ())
    used += [f"_{position}" for position in range(len(used) + 1, len(values) + 1)]
    if len(used) != len(values):
        raise ValueError(f"the element {element!r} has {len(values)} values, but there are {len(used)} names")
    return RowType([RowField(name, _type_of(value)) for name, value in zip(used, values, strict=True)])


def _type_of(value: Any) -> DataType:
    if value is None:
        return t.NullType()
    for python, data_type in _SIMPLE:
        if isinstance(value, python):
            return data_type
    if isinstance(value, (Row, tuple)):
        return _row_of(value, None)
    if isinstance(value, Mapping):
        return t.MapType(_merged_all(list(value)), _merged_all(list(value.values())))
    if isinstance(value, list):
        return t.ArrayType(_merged_all(value))
    raise TypeError(f"a value of {type(value).__name__} has no type in tables: {value!r}; give a schema with types")


def _merged_all(values: Sequence[Any]) -> DataType:
    found: DataType = t.NullType()
    for value in values:
        found = _merged(found, _type_of(value))
    return found


def _merged(a: DataType, b: DataType) -> DataType:
    match a, b:
        case t.NullType(), _:
            return b
        case _, t.NullType():
            return a
        case RowType(), RowType() if len(a) == len(b):
            pairs = zip(a, b, strict=True)
            return RowType([RowField(x.name, _merged(x.data_type, y.data_type)) for x, y in pairs])
        case t.ArrayType(), t.ArrayType():
            return t.ArrayType(_merged(a.element_type, b.element_type))
        case t.MapType(), t.MapType():
            return t.MapType(_merged(a.key_type, b.key_type), _merged(a.value_type, b.value_type))
        case _ if a == b:
            return a
    raise TypeError(f"elements have different types: {a.as_sql()} and {b.as_sql()}; give a schema with types")


def _check_known(found: DataType, where: str) -> None:
    match found:
        case t.NullType():
            raise ValueError(
                f"the type of column {where} is not known, because all of its values are None; give a schema"
            )
        case RowType():
            for field in found:
                _check_known(field.data_type, f"{where}.{field.name}" if where else field.name)
        case t.ArrayType():
            _check_known(found.element_type, where)
        case t.MapType():
            _check_known(found.key_type, where)
            _check_known(found.value_type, where)


def row_type_of_arrow(schema: Any) -> RowType:
    """The types of the columns of Arrow data, as from a pandas DataFrame."""
    return RowType([RowField(field.name, _type_of_arrow(field.type, field.name)) for field in schema])


def _type_of_arrow(of: Any, name: str) -> DataType:
    import pyarrow.types as pat

    for is_kind, make in _ARROW:
        if getattr(pat, is_kind)(of):
            return make()
    if pat.is_decimal(of):
        return DataTypes.DECIMAL(of.precision, of.scale)
    if pat.is_timestamp(of):
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[of.unit]
        return DataTypes.TIMESTAMP(digits) if of.tz is None else DataTypes.TIMESTAMP_LTZ(digits)
    if pat.is_list(of) or pat.is_large_list(of):
        return DataTypes.ARRAY(_type_of_arrow(of.value_type, name))
    if pat.is_struct(of):
        return row_type_of_arrow(list(of))
    raise TypeError(f"column {name!r} is of type {of}, which has no counterpart in tables; give a schema")


_ARROW = (
    ("is_boolean", DataTypes.BOOLEAN),
    ("is_int8", DataTypes.TINYINT),
    ("is_int16", DataTypes.SMALLINT),
    ("is_int32", DataTypes.INT),
    ("is_integer", DataTypes.BIGINT),
    ("is_float32", DataTypes.FLOAT),
    ("is_floating", DataTypes.DOUBLE),
    ("is_string", DataTypes.STRING),
    ("is_large_string", DataTypes.STRING),
    ("is_binary", DataTypes.BYTES),
    ("is_large_binary", DataTypes.BYTES),
    ("is_date", DataTypes.DATE),
    ("is_time", DataTypes.TIME),
)
