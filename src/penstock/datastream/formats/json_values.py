"""JSON text to typed values and back. Readers and writers are built once per type, then called per value."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.formatting import format_value
from penstock.common.typeinfo import (
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TypeInformation,
    Types,
    element_type_of,
)
from penstock.common.types import Row
from penstock.datastream.formats import exact_values
from penstock.datastream.formats.exact_values import WHOLE_TYPES
from penstock.datastream.formats.iso_times import (
    format_instant,
    format_time,
    format_timestamp,
    parse_instant,
    parse_time,
    parse_timestamp,
)

Reader = Callable[[Any], Any]
Writer = Callable[[Any], str]

BYTES = PrimitiveArrayTypeInfo(Types.BYTE())


def load_json(message: bytes | str) -> Any:
    """What readers take. Numbers keep all their digits; NaN and Infinity are not JSON, but many programs write them."""
    return json.loads(message, parse_float=Decimal, parse_constant=Decimal)


def json_reader(type_info: TypeInformation, fail_on_missing: bool, is_lenient: bool) -> Reader:
    """Turns what `load_json` returns into a value of the type.

    A lenient reader returns None for a field it cannot read instead of raising ValueError.
    """

    def build(inner: TypeInformation) -> Reader:
        return _lenient(plain(inner)) if is_lenient else plain(inner)

    def plain(inner: TypeInformation) -> Reader:
        if inner in _SIMPLE_READERS:
            return _none_safe(_SIMPLE_READERS[inner])
        if isinstance(inner, RowTypeInfo):
            return _row_reader(inner, [build(field) for field in inner.get_field_types()], fail_on_missing)
        if isinstance(inner, MapTypeInfo):
            return _map_reader(_key_type(inner, "read"), build(inner._value_type_info))
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
        return _null_safe(_map_writer(type_info))
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


def _key_type(map_type: MapTypeInfo, done: str) -> TypeInformation:
    """The type of a map's keys: one whose values are text, or can be read from their text."""
    key_type = map_type._key_type_info
    if key_type not in _SIMPLE_READERS or key_type == Types.PICKLED_BYTE_ARRAY():
        raise UnsupportedFeatureError(
            f"{map_type} cannot be {done} as JSON, whose keys are text; use keys of a basic type such as Types.STRING()"
        )
    return key_type


def _map_writer(map_type: MapTypeInfo) -> Writer:
    write_key = _SIMPLE_WRITERS[_key_type(map_type, "written")]
    write_item = json_writer(map_type._value_type_info)

    def key_text(key: Any) -> str:
        if key is None:
            raise ValueError("a map has the key None, which cannot be written as JSON")
        written = write_key(key)
        return written if written.startswith('"') else f'"{written}"'

    return lambda value: "{" + ",".join(f"{key_text(k)}:{write_item(v)}" for k, v in value.items()) + "}"


def _map_reader(key_type: TypeInformation, read_value: Reader) -> Reader:
    read_key = _SIMPLE_READERS[key_type]

    def read(value: Any) -> dict[Any, Any] | None:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"expected an object, got {value!r}")
        return {read_key(key): read_value(item) for key, item in value.items()}

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
        try:
            return "{" + ",".join([name + put(item) for (name, put), item in zip(fields, values, strict=True)]) + "}"
        except (ValueError, TypeError, AttributeError, ArithmeticError) as failure:
            raise ValueError(f"{value!r} does not fit {type_info}: {failure}") from failure

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


def _text(value: Any) -> str:
    return json.dumps(exact_values.text(value), ensure_ascii=False)


def _dump(value: Any) -> str:
    """Any value as JSON; values without a form in JSON are refused, and decimals keep their digits."""
    match value:
        case dict():
            return "{" + ",".join(f"{_text(key)}:{_dump(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_dump, value)) + "]"
        case Decimal() if value.is_finite():
            return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:
        raise ValueError(f"{value!r} cannot be written as JSON without a type; declare one for the field") from None


def _read_text(value: Any) -> str:
    return value if isinstance(value, str) else _dump(value)


def _of_text(read: Callable[[str], Any]) -> Reader:
    def read_text(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError(f"expected text, got {value!r}")
        return read(value)

    return read_text


def _read_bool(value: Any) -> bool:
    return value if isinstance(value, bool) else exact_values.read_boolean(str(value))


def _whole_reader(type_info: TypeInformation) -> Reader:
    exact, read = exact_values.whole_number(type_info), exact_values.read_whole_number(type_info)

    def read_whole(value: Any) -> int:
        _check_number(value, "a whole number")
        return read(value) if isinstance(value, str) else exact(value)

    return read_whole


def _float_reader(type_info: TypeInformation) -> Reader:
    read = exact_values.read_real_number(type_info)

    def read_float(value: Any) -> float:
        _check_number(value, "a number")
        return read(value)

    return read_float


def _read_decimal(value: Any) -> Decimal:
    _check_number(value, "a number")
    if isinstance(value, str):
        return exact_values.read_decimal_number(value)
    return exact_values.decimal_number(value)


def _check_number(value: Any, expected: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
        raise ValueError(f"expected {expected}, got {value!r}")


def _whole_writer(type_info: TypeInformation) -> Writer:
    exact = exact_values.whole_number(type_info)
    return lambda value: str(exact(value))


def _float_writer(type_info: TypeInformation) -> Writer:
    exact = exact_values.real_number(type_info)

    def write(value: Any) -> str:
        number = exact(value)
        written = format_value(number, type_info)
        # JSON has no such numbers; in quotes they are what Flink writes and reads.
        return written if math.isfinite(number) else f'"{written}"'

    return write


_SIMPLE_READERS: dict[TypeInformation, Reader] = {
    Types.STRING(): _read_text,
    Types.CHAR(): _read_text,
    Types.BOOLEAN(): _read_bool,
    Types.FLOAT(): _float_reader(Types.FLOAT()),
    Types.DOUBLE(): _float_reader(Types.DOUBLE()),
    Types.BIG_DEC(): _read_decimal,
    Types.SQL_DATE(): _of_text(date.fromisoformat),
    Types.SQL_TIME(): _of_text(parse_time),
    Types.SQL_TIMESTAMP(): _of_text(parse_timestamp),
    Types.INSTANT(): _of_text(parse_instant),
    Types.PICKLED_BYTE_ARRAY(): lambda value: json.loads(_dump(value)),
    BYTES: lambda value: base64.b64decode(value, validate=True),
    **{each: _whole_reader(each) for each in WHOLE_TYPES},
}
_SIMPLE_WRITERS: dict[TypeInformation, Writer] = {
    Types.STRING(): _text,
    Types.CHAR(): _text,
    Types.BOOLEAN(): lambda value: "true" if exact_values.boolean(value) else "false",
    Types.FLOAT(): _float_writer(Types.FLOAT()),
    Types.DOUBLE(): _float_writer(Types.DOUBLE()),
    Types.BIG_DEC(): lambda value: format(exact_values.decimal_number(value), "f"),
    Types.SQL_DATE(): lambda value: f'"{exact_values.calendar_day(value).isoformat()}"',
    Types.SQL_TIME(): lambda value: f'"{format_time(value)}Z"',
    Types.SQL_TIMESTAMP(): lambda value: f'"{format_timestamp(value, "T").removesuffix(".0")}Z"',
    Types.INSTANT(): lambda value: f'"{format_instant(value)}"',
    Types.PICKLED_BYTE_ARRAY(): _dump,
    BYTES: lambda value: f'"{base64.b64encode(exact_values.raw_bytes(value)).decode("ascii")}"',
    **{each: _whole_writer(each) for each in WHOLE_TYPES},
}
