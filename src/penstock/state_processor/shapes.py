"""The shape of Python values as a column: which Spark type shows them, and how each becomes a value of that type.

Numbers, strings, bytes, dates, lists, dictionaries, tuples, rows and dataclasses have types of their own. Values that
have no type in common are shown as JSON, and objects that have no form in JSON either as their pickled bytes.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.checkpoint.json_text import json_of
from penstock.common.types import Row
from penstock.runtime.state.codec import encode_state


@dataclass(frozen=True)
class Scalar:
    """One value. `convert` makes what Arrow takes for its type."""

    ddl: str
    arrow: Any
    convert: Callable[[Any], Any]

    def converted(self, value: Any) -> Any:
        return None if value is None else self.convert(value)


@dataclass(frozen=True)
class ListOf:
    item: Shape

    @property
    def ddl(self) -> str:
        return f"array<{self.item.ddl}>"

    @property
    def arrow(self) -> Any:
        return pa.list_(self.item.arrow)

    def converted(self, value: Any) -> Any:
        return None if value is None else [self.item.converted(each) for each in value]


@dataclass(frozen=True)
class MapOf:
    key: Shape
    value: Shape

    @property
    def ddl(self) -> str:
        return f"map<{self.key.ddl},{self.value.ddl}>"

    @property
    def arrow(self) -> Any:
        return pa.map_(self.key.arrow, self.value.arrow)

    def converted(self, value: Any) -> Any:
        if value is None:
            return None
        return [(self.key.converted(key), self.value.converted(each)) for key, each in value.items()]


@dataclass(frozen=True)
class Fields:
    """A struct: of a tuple (`_1`, `_2` ...), or of something with names."""

    fields: tuple[tuple[str, Shape], ...]
    is_tuple: bool = False

    @property
    def ddl(self) -> str:
        return f"struct<{','.join(f'{quoted(name)}:{shape.ddl}' for name, shape in self.fields)}>"

    @property
    def arrow(self) -> Any:
        return pa.struct([(name, shape.arrow) for name, shape in self.fields])

    def converted(self, value: Any) -> Any:
        if value is None:
            return None
        named = named_fields(value)
        if named is None:
            return {name: shape.converted(each) for (name, shape), each in zip(self.fields, value, strict=True)}
        return {name: shape.converted(named.get(name)) for name, shape in self.fields}


Shape = Scalar | ListOf | MapOf | Fields


def quoted(name: str) -> str:
    """A column's name as Spark's DDL takes it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def _same(value: Any) -> Any:
    return value


def _name_or_same(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return value.name
    return value if isinstance(value, str) else to_json(value)


def _bytes_or_pickled(value: Any) -> bytes:
    return bytes(value) if isinstance(value, (bytes, bytearray)) else encode_state(value)


def to_json(value: Any) -> str:
    text = json_of(value, math.inf)
    if text is None:
        raise TypeError(f"a {type(value).__name__} has no form in JSON")
    return text


UNKNOWN = Scalar("string", pa.string(), _same)
"""Only None was seen."""
BOOLEAN = Scalar("boolean", pa.bool_(), _same)
LONG = Scalar("bigint", pa.int64(), _same)
DOUBLE = Scalar("double", pa.float64(), float)
TEXT = Scalar("string", pa.string(), _name_or_same)
BYTES = Scalar("binary", pa.binary(), _bytes_or_pickled)
DATE = Scalar("date", pa.date32(), _same)
INSTANT = Scalar("timestamp", pa.timestamp("us", "UTC"), _same)
LOCAL_TIME = Scalar("timestamp_ntz", pa.timestamp("us"), _same)
DECIMAL = Scalar("decimal(38,18)", pa.decimal128(38, 18), _same)
JSON = Scalar("string", pa.string(), to_json)
PICKLED = Scalar("binary", pa.binary(), encode_state)

_BY_TYPE: dict[type, Shape] = {
    type(None): UNKNOWN,
    bool: BOOLEAN,
    float: DOUBLE,
    str: TEXT,
    bytes: BYTES,
    bytearray: BYTES,
    datetime.date: DATE,
}


def shape_of(value: Any) -> Shape:
    """The shape of one value."""
    kind = type(value)
    if kind is int:
        return LONG if -(1 << 63) <= value < 1 << 63 else JSON
    shape = _BY_TYPE.get(kind)
    return _shape_of_other(value) if shape is None else shape


def _shape_of_other(value: Any) -> Shape:
    match value:
        case enum.Enum() | str():
            return TEXT
        case datetime.datetime():
            return LOCAL_TIME if value.tzinfo is None else INSTANT
        case decimal.Decimal():
            return DECIMAL if _fits(value) else JSON
        case dict():
            return _shape_of_map(value)
        case list() | set() | frozenset() | deque():
            return ListOf(merged(map(shape_of, value)))
        case tuple() | Row():
            return _shape_of_fields(value)
    return _shape_of_fields(value) if _is_dataclass(value) else _shape_of_object(value)


def _shape_of_map(value: dict[Any, Any]) -> Shape:
    if None in value:  # Spark's maps have no such key.
        return _shape_of_object(value)
    return MapOf(merged(map(shape_of, value)), merged(map(shape_of, value.values())))


def _shape_of_fields(value: Any) -> Shape:
    named = named_fields(value)
    fields = {f"_{at}": each for at, each in enumerate(value, 1)} if named is None else named
    if not fields:
        return _shape_of_object(value)
    return Fields(tuple((name, shape_of(each)) for name, each in fields.items()), is_tuple=named is None)


def _shape_of_object(value: Any) -> Shape:
    return PICKLED if json_of(value, math.inf) is None else JSON


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fits(value: decimal.Decimal) -> bool:
    """True if the value has at most 20 digits before the point, and 18 behind it."""
    if not value.is_finite() or value.copy_abs() >= 10**20:
        return False
    # By digits: arithmetic would round to the precision of the decimal context, which is 28.
    _, digits, exponent = value.as_tuple()
    too_small = -18 - int(exponent)
    return too_small <= 0 or not any(digits[-too_small:])


def named_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a row, a named tuple, a dictionary or an object by name; None if they have no names."""
    if isinstance(value, Row):
        return None if value._fields is None else value.as_dict()
    if isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None)
        return None if names is None else dict(zip(names, value, strict=True))
    if isinstance(value, dict):
        return value
    if _is_dataclass(value):
        # A field that was added to the class later is missing in objects that were saved before.
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    return dict(vars(value))


def merged(shapes: Iterable[Shape]) -> Shape:
    """The shape that can show the values of all these shapes."""
    found: Shape = UNKNOWN
    for shape in shapes:
        found = merge(found, shape)
    return found


def merge(one: Shape, other: Shape) -> Shape:
    # By value: shapes come from other processes.
    if one is other or other == UNKNOWN or one == other:
        return one
    if one == UNKNOWN:
        return other
    match one, other:
        case ListOf(), ListOf():
            return ListOf(merge(one.item, other.item))
        case MapOf(), MapOf():
            return MapOf(merge(one.key, other.key), merge(one.value, other.value))
        case Fields(), Fields() if one.is_tuple == other.is_tuple:
            if not one.is_tuple or len(one.fields) == len(other.fields):
                return _merge_fields(one, other)
    if (one, other) in ((LONG, DOUBLE), (DOUBLE, LONG)):
        return DOUBLE
    return PICKLED if _has_pickled(one) or _has_pickled(other) else JSON


def _merge_fields(one: Fields, other: Fields) -> Fields:
    fields = dict(one.fields)
    for name, shape in other.fields:
        fields[name] = merge(fields.get(name, UNKNOWN), shape)
    return Fields(tuple(fields.items()), one.is_tuple)


def _has_pickled(shape: Shape) -> bool:
    match shape:
        case ListOf():
            return _has_pickled(shape.item)
        case MapOf():
            return _has_pickled(shape.key) or _has_pickled(shape.value)
        case Fields():
            return any(_has_pickled(each) for _, each in shape.fields)
    return shape == PICKLED


_BY_SPARK_TYPE: dict[str, Shape] = {
    "boolean": BOOLEAN,
    "byte": Scalar("tinyint", pa.int8(), int),
    "short": Scalar("smallint", pa.int16(), int),
    "integer": Scalar("int", pa.int32(), int),
    "long": Scalar("bigint", pa.int64(), int),
    "float": Scalar("float", pa.float32(), float),
    "double": DOUBLE,
    "string": TEXT,
    "binary": BYTES,
    "date": DATE,
    "timestamp": INSTANT,
    "timestamp_ntz": LOCAL_TIME,
}


def shape_of_type(data_type: Any) -> Shape:
    """The shape that a Spark type asks for. ValueError if there is none."""
    kind = data_type.typeName()
    if kind in _BY_SPARK_TYPE:
        return _BY_SPARK_TYPE[kind]
    if kind == "array":
        return ListOf(shape_of_type(data_type.elementType))
    if kind == "map":
        return MapOf(shape_of_type(data_type.keyType), shape_of_type(data_type.valueType))
    if kind == "struct":
        return Fields(tuple((field.name, shape_of_type(field.dataType)) for field in data_type.fields))
    if kind == "decimal":
        return Scalar(data_type.simpleString(), pa.decimal128(data_type.precision, data_type.scale), decimal.Decimal)
    raise ValueError(f"{data_type.simpleString()} is not a type for state")
