"""Elements in the form of their declared type.

PyFlink passes elements from function to function as they are, and turns them into Java's values where Java takes over:
at an exchange, a key, a window or a sink. There FLOAT becomes single precision, DOUBLE a float, a number for INT a
whole one, and a number that does not fit is an error. The same happens here, in the same places. Between functions of
a chain, elements that are declared as rows become rows, with their fields as they are. A stream without declared types
is never touched.

Most elements fit already. So a type also gives an expression that is true for those: a loop with it is generated, and
only the others are converted one by one.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import chain
from typing import Any, SupportsFloat, SupportsInt

from penstock.common.exceptions import InvalidProgramError
from penstock.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from penstock.common.types import Row

Converter = Callable[[Any], Any]
Batches = Callable[[list[Any]], list[Any]]

_BITS = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_PYTHON_TYPES = {BasicType.DOUBLE: "float", BasicType.STRING: "str", BasicType.BOOLEAN: "bool"}
_SINGLE = struct.Struct("f")
_LARGEST_BYTE = 255
_QUICK_BOUND = 1 << 30
"""Python compares smaller integers much more quickly."""


def converter_of(type_info: TypeInformation | None) -> Converter | None:
    """A function that gives one element the form of its declared type; None if every element has it."""
    match type_info:
        case BasicTypeInfo():
            return _basic_converter(type_info._basic_type)
        case RowTypeInfo():
            return _row_converter(type_info)
        case TupleTypeInfo():
            fields_of = _fields_converter(type_info)
            return lambda value: tuple(fields_of(value)) if value is not None else None
        case PrimitiveArrayTypeInfo(_element_type=BasicTypeInfo(_basic_type=BasicType.BYTE)):
            return None  # It is bytes.
        case ListTypeInfo(elem_type=element_type):
            return _sequence_converter(element_type, type_info)
        case BasicArrayTypeInfo() | PrimitiveArrayTypeInfo() | ObjectArrayTypeInfo():
            return _sequence_converter(type_info._element_type, type_info)
        case MapTypeInfo():
            return _map_converter(type_info)
        case TimestampTypeInfo():
            return _in_milliseconds
    return None


def batches_of(type_info: TypeInformation | None) -> Batches | None:
    """The same for many elements at once; None if there is nothing to do."""
    convert = converter_of(type_info)
    if convert is None or type_info is None:
        return None
    scope: dict[str, Any] = {"pack": _SINGLE.pack, "unpack": _SINGLE.unpack}
    text = _converted(type_info, "v", scope)
    if isinstance(type_info, RowTypeInfo):
        scope |= {"Row": Row, "new": Row.__new__, "names": type_info.get_field_names()}
    parameters = "".join(f", {name}={name}" for name in scope)
    exec(f"def batches(values{parameters}):\n{_quick_check(type_info)}    return [{text} for v in values]", scope)
    made: Batches = scope["batches"]
    return made


def _quick_check(type_info: TypeInformation) -> str:
    """Statements that return what `values` are if they are tuples or rows that fit all; none for other types."""
    if not isinstance(type_info, (TupleTypeInfo, RowTypeInfo)):
        return ""
    types = type_info.get_field_types()
    names = [f"item{at}" for at in range(len(types))]
    fields = [_fits(each, name) for name, each in zip(names, types, strict=True) if converter_of(each)]
    if not types or None in fields:
        return ""
    quick = _QUICK_ROWS if isinstance(type_info, RowTypeInfo) else _QUICK_TUPLES
    fit = " and ".join(str(each) for each in fields) or "True"
    return quick.format(length=len(types), items=", ".join(names), fit=fit)


_QUICK_TUPLES = """\
    for v in values:
        if type(v) is tuple and len(v) == {length}:
            [{items}] = v
            if {fit}:
                continue
        break
    else:
        return values
"""
# Rows get the same list of names, which a pickle of many rows then holds once. One without names stays as it is, and
# the row that has them shares its values: somebody may have kept it.
_QUICK_ROWS = """\
    named = []
    for v in values:
        if type(v) is Row and (v._fields is None or v._fields == names) and len(v._values) == {length}:
            [{items}] = v._values
            if {fit}:
                if v._fields is None:
                    row = new(Row)
                    row._values, row._row_kind = v._values, v._row_kind
                    v = row
                v._fields = names
                named.append(v)
                continue
        break
    else:
        return named
"""


def _converted(type_info: TypeInformation, variable: str, scope: dict[str, Any]) -> str:
    """An expression for `variable` in the form of its type; `scope` takes the names that it refers to.

    A number too large for single precision raises: then it is for the converter, one by one.
    """
    fits = _fits(type_info, variable)
    convert = f"convert{len(scope)}"
    scope[convert] = converter_of(type_info) or _as_is
    if fits is not None:
        return f"{variable} if {fits} else {convert}({variable})"
    if is_single_precision(type_info):
        return f"unpack(pack({variable}))[0] if type({variable}) is float else {convert}({variable})"
    if isinstance(type_info, TupleTypeInfo):
        types = type_info.get_field_types()
        fields = [f"({_converted(each, f'{variable}[{at}]', scope)})" for at, each in enumerate(types)]
        is_tuple = f"type({variable}) is tuple and len({variable}) == {len(types)}"
        return f"({', '.join(fields)},) if {is_tuple} else {convert}({variable})"
    return f"{convert}({variable})"


def _as_is(value: Any) -> Any:
    return value


def row_shape_of(type_info: TypeInformation | None) -> RowTypeInfo | None:
    """The type that only makes rows of elements, and of fields that are rows; None if no row type is declared.

    Functions get rows within a chain, too. All other values are as the function before has returned them.
    """
    return _shape(type_info) if isinstance(type_info, RowTypeInfo) else None


def _shape(type_info: RowTypeInfo) -> RowTypeInfo:
    return RowTypeInfo([_shape_of_part(each) for each in type_info.get_field_types()], type_info.get_field_names())


def _shape_of_part(type_info: TypeInformation) -> TypeInformation:
    match type_info:
        case RowTypeInfo():
            return _shape(type_info)
        case TupleTypeInfo() if any(map(_has_rows, type_info.get_field_types())):
            return TupleTypeInfo([_shape_of_part(each) for each in type_info.get_field_types()])
        case ListTypeInfo(elem_type=element_type) if _has_rows(element_type):
            return ListTypeInfo(_shape_of_part(element_type))
        case ObjectArrayTypeInfo() if _has_rows(type_info._element_type):
            return ObjectArrayTypeInfo(_shape_of_part(type_info._element_type))
        case MapTypeInfo() if _has_rows(type_info._key_type_info) or _has_rows(type_info._value_type_info):
            return MapTypeInfo(_shape_of_part(type_info._key_type_info), _shape_of_part(type_info._value_type_info))
    return PickledBytesTypeInfo()


def _has_rows(type_info: TypeInformation) -> bool:
    return not isinstance(_shape_of_part(type_info), PickledBytesTypeInfo)


def as_declared(value: Any, type_info: TypeInformation | None) -> Any:
    convert = converter_of(type_info)
    return value if convert is None else convert(value)


def collected_as(value: Any, type_info: TypeInformation | None) -> Any:
    """An element of a collection, as Java reads it: whole numbers that are too large wrap around, fields' as well."""
    return as_declared(_with_wrapped_numbers(value, type_info), type_info)


def _with_wrapped_numbers(value: Any, type_info: TypeInformation | None) -> Any:
    """`value` with its whole numbers wrapped. What does not have the shape of its type stays as it is."""
    match type_info, value:
        case BasicTypeInfo(_basic_type=basic), int() | float() if basic in _BITS and math.isfinite(value):
            return _wrapped(_integer(value, basic), _BITS[basic])
        case RowTypeInfo(), _ if value is not None:
            row = in_row_shape(value, type_info)
            row[:] = map(_with_wrapped_numbers, row, type_info.get_field_types())
            return row
        case TupleTypeInfo(), _ if value is not None:
            return tuple(map(_with_wrapped_numbers, _checked_values(value, type_info, []), type_info.get_field_types()))
        case ListTypeInfo(elem_type=element_type), list() | tuple():
            return [_with_wrapped_numbers(each, element_type) for each in value]
        case BasicArrayTypeInfo() | PrimitiveArrayTypeInfo() | ObjectArrayTypeInfo(), list() | tuple():
            return [_with_wrapped_numbers(each, type_info._element_type) for each in value]
        case MapTypeInfo(), dict():
            types = type_info._key_type_info, type_info._value_type_info
            return dict(tuple(map(_with_wrapped_numbers, entry, types)) for entry in value.items())
    return value


def collection_as(collection: Iterable[Any], type_info: TypeInformation | None) -> list[Any]:
    """The elements of a collection; an element that does not fit is named by its place."""
    return _each_converted(list(collection), lambda value: collected_as(value, type_info))


def fits(type_info: TypeInformation, element: str | tuple[str, ...]) -> str | None:
    """An expression that is true for an element that needs no conversion; None if there is none that is simple.

    The element is a variable, or a tuple of which there are only the items: variables, and constants as their repr.
    Checks that constants are sure to pass are left out; the expression is empty if there are no others.
    """
    if isinstance(element, str):
        return _fits(type_info, element)
    if _fits(type_info, "v") is None or not isinstance(type_info, TupleTypeInfo):
        return None
    types = type_info.get_field_types()
    if len(types) != len(element):
        return "False"
    pairs = zip(types, element, strict=True)
    checks = [(item, str(_fits(each, item))) for each, item in pairs if converter_of(each) is not None]
    return " and ".join(check for item, check in checks if not (_is_constant(item) and eval(check)))


def _is_constant(item: str) -> bool:
    return not item.isidentifier() or item in ("True", "False")


def _fits(type_info: TypeInformation, variable: str) -> str | None:
    """An expression that is true for elements that need no conversion; None if there is none that is simple."""
    match type_info:
        case BasicTypeInfo(_basic_type=basic) if basic in _BITS:
            bound = 1 << (_BITS[basic] - 1)
            within = f"{-bound} <= {variable} < {bound}"
            if bound > _QUICK_BOUND:
                within = f"({-_QUICK_BOUND} < {variable} < {_QUICK_BOUND} or {within})"
            return f"type({variable}) is int and {within}"
        case BasicTypeInfo(_basic_type=basic) if basic in _PYTHON_TYPES:
            return f"type({variable}) is {_PYTHON_TYPES[basic]}"
        case TupleTypeInfo():
            types = type_info.get_field_types()
            fields = [_fits(each, f"{variable}[{at}]") for at, each in enumerate(types) if converter_of(each)]
            if None in fields:
                return None
            checks = [f"type({variable}) is tuple and len({variable}) == {len(types)}", *fields]
            return " and ".join(str(each) for each in checks)
    return None


def _basic_converter(basic: BasicType) -> Converter | None:
    if basic in _BITS:
        return lambda value: _whole(value, basic)
    match basic:
        case BasicType.FLOAT:
            return lambda value: None if value is None else _single(_number(value, basic))
        case BasicType.DOUBLE:
            return lambda value: None if value is None else _number(value, basic)
        case BasicType.STRING:
            return _text
        case BasicType.BIG_DEC:
            return lambda value: Decimal(value) if type(value) is int else value
        case BasicType.BOOLEAN:
            return _boolean
    return None


def _whole(value: Any, basic: BasicType) -> int | None:
    if value is None:
        return None
    number = _integer(value, basic)
    if number != _wrapped(number, _BITS[basic]):
        raise InvalidProgramError(
            f"{value!r} does not fit into {basic.name}, which has {_BITS[basic]} bits; declare a larger type, such as "
            f"LONG or BIG_INT"
        )
    return number


def _integer(value: Any, basic: BasicType) -> int:
    if not isinstance(value, (int, float, SupportsInt)):
        raise _misfit(value, basic.name)
    try:
        return int(value)
    except (OverflowError, ValueError, TypeError):  # Infinity, not a number, or an array
        raise _misfit(value, basic.name) from None


def _wrapped(number: int, bits: int) -> int:
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _number(value: Any, basic: BasicType) -> float:
    if not isinstance(value, (int, float, SupportsFloat)):
        raise _misfit(value, basic.name)
    try:
        return float(value)
    except (OverflowError, ValueError, TypeError):  # Beyond all floats, a signalling NaN, or an array
        raise _misfit(value, basic.name) from None


def _single(value: float) -> float:
    """The nearest number of single precision."""
    try:
        rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded


def _text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # Of a subclass, such as an enumeration, only the text is left.
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float, Decimal)):
        return str(value)
    raise _misfit(value, "STRING")


def _boolean(value: Any) -> bool | None:
    """A number is sent by PyFlink as one byte with its whole part, and every byte but 0 is true."""
    if value is None or isinstance(value, bool):
        return value
    whole = _integer(value, BasicType.BOOLEAN)
    if not 0 <= whole <= _LARGEST_BYTE:
        raise _misfit(value, "BOOLEAN")
    return whole != 0


def _in_milliseconds(value: Any) -> Any:
    if not isinstance(value, datetime.datetime):
        return value
    # PyFlink sends what the clock shows, so a time zone is lost and nothing is converted.
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=None)


def _misfit(value: Any, declared: str) -> InvalidProgramError:
    return InvalidProgramError(
        f"{value!r} of type {type(value).__name__} does not fit {declared}, the declared type; declare the type that "
        f"the function returns, or none"
    )


def _sequence_converter(element_type: TypeInformation, type_info: TypeInformation) -> Converter:
    convert = converter_of(element_type)

    def sequence(value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, Iterable):
            raise _misfit(value, str(type_info))
        items = list(value)
        return items if convert is None else _each_converted(items, convert)

    return sequence


def _each_converted(items: list[Any], convert: Converter) -> list[Any]:
    try:
        return [convert(item) for item in items]
    except InvalidProgramError:
        raise _first_misfit((f"item {at}", item, convert) for at, item in enumerate(items)) from None


def _first_misfit(parts: Iterable[tuple[str, Any, Converter]]) -> InvalidProgramError:
    """The error for the first part of an element that does not fit; looked for only after a failure."""
    for name, part, convert in parts:
        try:
            convert(part)
        except InvalidProgramError as misfit:
            return InvalidProgramError(f"{name}: {misfit}")
    raise AssertionError("all parts fit")


def _map_converter(type_info: MapTypeInfo) -> Converter:
    keys = converter_of(type_info._key_type_info) or _as_is
    values = converter_of(type_info._value_type_info) or _as_is

    def mapping(value: Any) -> Any:
        if value is None:
            return None
        entries = value if isinstance(value, dict) else _attributes(value, "MAP")
        try:
            return {keys(key): values(item) for key, item in entries.items()}
        except InvalidProgramError:
            pairs = ((f"key {key!r}", key, keys) for key in entries)
            items = ((f"value of {key!r}", item, values) for key, item in entries.items())
            raise _first_misfit(chain(pairs, items)) from None

    return mapping


def _attributes(value: Any, declared: str) -> dict[str, Any]:
    if not hasattr(value, "__dict__"):
        raise _misfit(value, declared)
    attributes: dict[str, Any] = vars(value)
    return attributes


def in_row_shape(value: Any, type_info: RowTypeInfo) -> Row:
    """The row that a value is by its declared type, with its fields as they are."""
    names = type_info.get_field_names()
    return _row(value, _checked_values(value, type_info, names), names)


def is_single_precision(type_info: TypeInformation) -> bool:
    return isinstance(type_info, BasicTypeInfo) and type_info._basic_type is BasicType.FLOAT


def _row_converter(type_info: RowTypeInfo) -> Converter:
    # All rows have the same list of names, which a pickle of many rows then holds once.
    fields_of, names = _fields_converter(type_info), type_info.get_field_names()
    return lambda value: None if value is None else _row(value, fields_of(value), names)


def _row(value: Any, fields: list[Any], names: list[str]) -> Row:
    row = Row(*fields)
    if isinstance(value, Row):
        row.set_row_kind(value.get_row_kind())
    row.set_field_names(names)
    return row


def _fields_converter(type_info: RowTypeInfo | TupleTypeInfo) -> Callable[[Any], list[Any]]:
    """A function that gives the fields of one element the form of their types: made once, for there may be many."""
    converters = [converter_of(each) or _as_is for each in type_info.get_field_types()]
    scope: dict[str, Any] = {f"convert{at}": convert for at, convert in enumerate(converters)}
    fields = []
    for at, each in enumerate(type_info.get_field_types()):
        fits = _fits(each, f"v[{at}]")
        fields.append(f"v[{at}] if {fits} else convert{at}(v[{at}])" if fits else f"convert{at}(v[{at}])")
    parameters = "".join(f", {name}={name}" for name in scope)
    exec(f"def converted(v{parameters}):\n    return [{', '.join(fields)}]", scope)
    converted: Callable[[list[Any]], list[Any]] = scope["converted"]
    names = type_info.get_field_names() if isinstance(type_info, RowTypeInfo) else []
    shown = names or range(len(fields))

    def fields_of(value: Any) -> list[Any]:
        values = _checked_values(value, type_info, names)
        try:
            return converted(values)
        except InvalidProgramError:
            parts = zip(shown, values, converters, strict=True)
            raise _first_misfit((f"field {name!r}", part, convert) for name, part, convert in parts) from None

    return fields_of


def _checked_values(value: Any, type_info: RowTypeInfo | TupleTypeInfo, names: list[str]) -> list[Any]:
    types = type_info.get_field_types()
    values = _values(value, type_info, names)
    if len(values) != len(types):
        raise InvalidProgramError(
            f"{value!r} has {len(values)} fields, but {type_info} was declared with {len(types)}; declare the type "
            f"that the function returns"
        )
    return values


def _values(value: Any, type_info: RowTypeInfo | TupleTypeInfo, names: list[str]) -> list[Any]:
    if isinstance(type_info, TupleTypeInfo):
        if not isinstance(value, (tuple, list, Row)):
            raise _misfit(value, str(type_info))
        return list(value)
    if isinstance(value, Row):
        # A row made with names may have them in another order.
        return list(value.get_fields_by_names(names))
    if isinstance(value, (tuple, list)):
        return list(value)
    entries = value if isinstance(value, dict) else _attributes(value, str(type_info))
    return [entries.get(name) for name in names]
