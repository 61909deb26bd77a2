"""JSON text to typed values and back. Readers and writers are built once per type, then called per value."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.formatting import format_value
from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TypeInformation,
    Types,
)
from penstock.common.types import Row
from penstock.datastream.formats.iso_times import format_timestamp, parse_time, parse_timestamp

Reader = Callable[[Any], Any]
Writer = Callable[[Any], str]

BYTES = PrimitiveArrayTypeInfo(Types.BYTE())
_WHOLE_TYPES = (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT())
_ARRAYS = (ObjectArrayTypeInfo, BasicArrayTypeInfo, PrimitiveArrayTypeInfo)


def element_type_of(type_info: TypeInformation) -> TypeInformation | None:
    """The type of a list's or array's elements; None for other types."""
    if isinstance(type_info, ListTypeInfo):
        return type_info.elem_type
    return type_info._element_type if isinstance(type_info, _ARRAYS) else None


def json_reader(type_info: TypeInformation, fail_on_missing: bool, is_lenient: bool) -> Reader:
    """Turns what `json.loads(..., parse_float=Decimal)` gives into a value of the type.

    A lenient reader gives None for a field it cannot read instead of raising ValueError.
    """

    def build(inner: TypeInformation) -> Reader:
        return _lenient(plain(inner)) if is_lenient else plain(inner)

    def plain(inner: TypeInformation) -> Reader:
        if inner in _SIMPLE_READERS:
            return _none_safe(_SIMPLE_READERS[inner])
        if isinstance(inner, RowTypeInfo):
            return _row_reader(inner, [build(field) for field in inner.get_field_types()], fail_on_missing)
        if isinstance(inner, MapTypeInfo):
            return _map_reader(build(inner._value_type_info))
        if (element := element_type_of(inner)) is not None:
            return _list_reader(build(element))
        raise UnsupportedFeatureError(f"JSON cannot be read as {inner}; use rows, arrays, maps and basic types")

    return plain(type_info)


def json_writer(type_info: TypeInformation) -> Writer:
    """Turns a value of the type into JSON text."""
    if type_info in _SIMPLE_WRITERS:
        return _null_safe(_SIMPLE_WRITERS[type_info])
    if isinstance(type_info, RowTypeInfo):
        return _null_safe(_row_writer(type_info))
    if isinstance(type_info, MapTypeInfo):
        write = json_writer(type_info._value_type_info)
        return _null_safe(lambda value: "{" + ",".join(f"{_text(str(k))}:{write(v)}" for k, v in value.items()) + "}")
    if (element := element_type_of(type_info)) is not None:
        write_element = json_writer(element)
        return _null_safe(lambda value: "[" + ",".join(map(write_element, value)) + "]")
    raise UnsupportedFeatureError(f"{type_info} cannot be written as JSON; use rows, arrays, maps and basic types")


def _row_reader(type_info: RowTypeInfo, readers: list[Reader], fail_on_missing: bool) -> Reader:
    names = type_info.get_field_names()
    fields = list(zip(names, readers, strict=True))

    def read(value: Any) -> Row | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"expected an object with {', '.join(names)}, got {value!r}")
        if fail_on_missing and (missing := [name for name in names if name not in value]):
            raise ValueError(f"field {missing[0]!r} is missing")
        row = Row(*[reader(value.get(name)) for name, reader in fields])
        row.set_field_names(names)
        return row

    return read


def _map_reader(read_value: Reader) -> Reader:
    def read(value: Any) -> dict[str, Any] | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"expected an object, got {value!r}")
        return {key: read_value(item) for key, item in value.items()}

    return read


def _list_reader(read_element: Reader) -> Reader:
    def read(value: Any) -> list[Any] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            raise ValueError(f"expected an array, got {value!r}")
        return [read_element(item) for item in value]

    return read


def _row_writer(type_info: RowTypeInfo) -> Writer:
    names = type_info.get_field_names()
    fields = [(f"{_text(n)}:", json_writer(t)) for n, t in zip(names, type_info.get_field_types(), strict=True)]

    def write(value: Any) -> str:
        values = type_info._values_of(value)
        if len(values) != len(fields):
            raise ValueError(f"{value!r} has {len(values)} fields, but the type has {len(fields)}: {', '.join(names)}")
        return "{" + ",".join([name + write(item) for (name, write), item in zip(fields, values, strict=True)]) + "}"

    return write


def _none_safe(read: Reader) -> Reader:
    return lambda value: None if value is None else read(value)


def _null_safe(write: Writer) -> Writer:
    return lambda value: "null" if value is None else write(value)


def _lenient(read: Reader) -> Reader:
    def attempt(value: Any) -> Any:
        try:
            return read(value)
        except (ValueError, TypeError, ArithmeticError):
            return None

    return attempt


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float)


def _read_text(value: Any) -> str:
    return value if isinstance(value, str) else _dump(value)


def _read_bool(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() == "true"


def _read_whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
        raise ValueError(f"expected a whole number, got {value!r}")
    return int(value)


def _read_decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
        raise ValueError(f"expected a number, got {value!r}")
    return Decimal(value)


_SIMPLE_READERS: dict[TypeInformation, Reader] = {
    Types.STRING(): _read_text,
    Types.CHAR(): _read_text,
    Types.BOOLEAN(): _read_bool,
    Types.FLOAT(): lambda value: float(_read_decimal(value)),
    Types.DOUBLE(): lambda value: float(_read_decimal(value)),
    Types.BIG_DEC(): _read_decimal,
    Types.SQL_DATE(): lambda value: date.fromisoformat(value),
    Types.SQL_TIME(): lambda value: parse_time(value),
    Types.SQL_TIMESTAMP(): lambda value: parse_timestamp(value),
    Types.PICKLED_BYTE_ARRAY(): lambda value: json.loads(_dump(value)),
    BYTES: lambda value: base64.b64decode(value, validate=True),
    **dict.fromkeys(_WHOLE_TYPES, _read_whole),
}
_SIMPLE_WRITERS: dict[TypeInformation, Writer] = {
    Types.STRING(): lambda value: _text(str(value)),
    Types.CHAR(): lambda value: _text(str(value)),
    Types.BOOLEAN(): lambda value: "true" if value else "false",
    Types.FLOAT(): lambda value: format_value(float(value), Types.FLOAT()),
    Types.DOUBLE(): lambda value: format_value(float(value), Types.DOUBLE()),
    Types.BIG_DEC(): lambda value: format(value, "f"),
    Types.SQL_DATE(): lambda value: f'"{value.isoformat()}"',
    Types.SQL_TIME(): lambda value: f'"{value:%H:%M:%S}Z"',
    Types.SQL_TIMESTAMP(): lambda value: f'"{format_timestamp(value, "T").removesuffix(".0")}Z"',
    Types.PICKLED_BYTE_ARRAY(): _dump,
    BYTES: lambda value: _text(base64.b64encode(value).decode("ascii")),
    **dict.fromkeys(_WHOLE_TYPES, lambda value: str(int(value))),
}
