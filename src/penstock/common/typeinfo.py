"""Declared types of records and state: what `Types.*` makes.

Records travel as Python objects whatever their type; a declared type gives fields their names, lets printing look as
Flink's does, and converts to and from the internal (column) form that `to_internal_type` describes.
"""

from __future__ import annotations

import calendar
import datetime
import time
from collections.abc import Sequence
from enum import Enum
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.common.time import Instant
from penstock.common.types import Row, RowKind

__all__ = ["TypeInformation", "Types"]


class TypeInformation:
    """The type of a record or a state value. Types are equal if they describe the same thing, and hashable.

    `Types` has an example.
    """

    has_only_immutable_values = False
    """True if no value of the type can change, so that functions can share them."""

    def __init__(self) -> None:
        pass

    def need_conversion(self) -> bool:
        """True if the internal form differs from the Python object."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """The internal form of a Python object."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """The Python object of an internal form."""
        return obj

    def get_java_type_info(self) -> Any:
        """Refused with UnsupportedFeatureError: types have no Java side."""
        raise UnsupportedFeatureError(f"{self!r}.get_java_type_info(): there is no Java behind this API")

    def _parts(self) -> tuple[object, ...]:
        """What, besides the class, makes two types the same."""
        return ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeInformation) and type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._parts()))

    def __repr__(self) -> str:
        parts = ", ".join(map(str, self._parts()))
        return f"{type(self).__name__}<{parts}>" if parts else type(self).__name__


class BasicType(Enum):
    """The indivisible types, by their Java names."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


class BasicTypeInfo(TypeInformation):
    """An indivisible type: numbers, strings, booleans, decimals, instants."""

    def __init__(self, basic_type: BasicType) -> None:
        super().__init__()
        if not isinstance(basic_type, BasicType):
            raise TypeError(f"BasicTypeInfo takes a BasicType, got {basic_type!r}; use the factories of Types instead")
        self._basic_type = basic_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BasicTypeInfo) and self._basic_type is other._basic_type

    def __hash__(self) -> int:
        return hash(self._basic_type)

    def __repr__(self) -> str:
        return self._basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> BasicTypeInfo:
        return InstantTypeInfo(BasicType.INSTANT)


class InstantTypeInfo(BasicTypeInfo):
    """Points in time; internally microseconds since the epoch."""

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> Any:
        return None if obj is None else obj.to_epoch_milli() * 1000

    def from_internal_type(self, obj: Any) -> Any:
        return None if obj is None else Instant.of_epoch_milli(obj // 1000)


class SqlTimeTypeInfo(TypeInformation):
    """Dates, times and timestamps as `datetime` objects."""

    @staticmethod
    def DATE() -> TypeInformation:
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TypeInformation:
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TypeInformation:
        return TimestampTypeInfo()


class DateTypeInfo(TypeInformation):
    """`datetime.date`; internally days since the epoch."""

    EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, d: Any) -> Any:
        return None if d is None else d.toordinal() - self.EPOCH_ORDINAL

    def from_internal_type(self, v: Any) -> Any:
        return None if v is None else datetime.date.fromordinal(v + self.EPOCH_ORDINAL)


class TimeTypeInfo(TypeInformation):
    """`datetime.time`; internally microseconds of the day in UTC (a time without zone is local time)."""

    #: Microseconds by which local time is ahead of UTC at the epoch.
    EPOCH_ORDINAL = calendar.timegm(time.localtime(0)) * 10**6

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, t: Any) -> Any:
        if t is None:
            return None
        if t.tzinfo is None:
            ahead = self.EPOCH_ORDINAL
        else:
            ahead = (t.utcoffset() or datetime.timedelta()) // datetime.timedelta(microseconds=1)
        return ((t.hour * 60 + t.minute) * 60 + t.second) * 10**6 + t.microsecond - ahead

    def from_internal_type(self, t: Any) -> Any:
        if t is None:
            return None
        seconds, microseconds = divmod(t + self.EPOCH_ORDINAL, 10**6)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return datetime.time(hours, minutes, seconds, microseconds)


class TimestampTypeInfo(TypeInformation):
    """`datetime.datetime`; internally microseconds since the epoch (without zone it is local time)."""

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, dt: Any) -> Any:
        if dt is None:
            return None
        seconds = calendar.timegm(dt.utctimetuple()) if dt.tzinfo else int(time.mktime(dt.timetuple()))
        return seconds * 10**6 + dt.microsecond

    def from_internal_type(self, ts: Any) -> Any:
        if ts is None:
            return None
        seconds, microseconds = divmod(ts, 10**6)
        return datetime.datetime.fromtimestamp(seconds).replace(microsecond=microseconds)


class LocalTimeTypeInfo(TypeInformation):
    """Dates and times without a zone."""

    class TimeType(Enum):
        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: TimeType) -> None:
        super().__init__()
        self._time_type = time_type

    def _parts(self) -> tuple[object, ...]:
        return (self._time_type.name,)


class _ArrayTypeInfo(TypeInformation):
    """What the three array types share: an element type out of those the array may hold."""

    _allowed: tuple[BasicType, ...] | None = None

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__()
        if self._allowed is not None and not (
            isinstance(element_type, BasicTypeInfo) and element_type._basic_type in self._allowed
        ):
            names = ", ".join(basic.name for basic in self._allowed)
            raise TypeError(
                f"{type(self).__name__} cannot hold {element_type!r}, only {names}; use Types.OBJECT_ARRAY instead"
            )
        self._element_type = element_type

    def _parts(self) -> tuple[object, ...]:
        return (self._element_type,)


_PRIMITIVES = (
    BasicType.BOOLEAN,
    BasicType.BYTE,
    BasicType.SHORT,
    BasicType.INT,
    BasicType.LONG,
    BasicType.FLOAT,
    BasicType.DOUBLE,
    BasicType.CHAR,
)


class PrimitiveArrayTypeInfo(_ArrayTypeInfo):
    """Arrays of numbers, booleans or characters without None; an array of BYTE is Python's `bytes`."""

    _allowed = _PRIMITIVES


class BasicArrayTypeInfo(_ArrayTypeInfo):
    """Arrays of numbers, booleans, characters or strings whose elements may be None."""

    _allowed = (*_PRIMITIVES, BasicType.STRING)


class ObjectArrayTypeInfo(_ArrayTypeInfo):
    """Arrays of any type."""


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object: the type of a stream whose type was not declared."""

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class _CompositeTypeInfo(TypeInformation):
    """What rows and tuples share: field types, some of which have an internal form of their own."""

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        super().__init__()
        for position, field_type in enumerate(field_types):
            if not isinstance(field_type, TypeInformation):
                raise TypeError(
                    f"field {position} of {type(self).__name__} must have a type such as Types.STRING(), "
                    f"got {field_type!r}"
                )
        self._field_types = list(field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """The types of the fields, in order."""
        return self._field_types

    def need_conversion(self) -> bool:
        return True

    def _parts(self) -> tuple[object, ...]:
        return tuple(self._field_types)

    def _fields_to_internal(self, values: Sequence[Any] | Row) -> tuple[Any, ...]:
        if len(values) != len(self._field_types):
            raise ValueError(f"{values!r} has {len(values)} fields, but {self!r} declares {len(self._field_types)}")
        return tuple(t.to_internal_type(v) for t, v in zip(self._field_types, values, strict=True))

    def from_internal_type(self, obj: Any) -> Any:
        # As in PyFlink, a tuple or list has been converted field by field already.
        if obj is None or isinstance(obj, (tuple, list)):
            return obj
        return tuple(t.from_internal_type(v) for t, v in zip(self._field_types, obj, strict=True))


class RowTypeInfo(_CompositeTypeInfo):
    """Rows with fields of these types, named f0, f1, ... unless names are given. Names do not count for equality."""

    def __init__(self, field_types: list[TypeInformation], field_names: list[str] | None = None) -> None:
        super().__init__(field_types)
        if field_names is not None and len(field_names) != len(field_types):
            raise ValueError(
                f"a row type needs one name for each field, got {len(field_names)} names {list(field_names)} "
                f"for {len(field_types)} types"
            )
        self._field_names = None if field_names is None else list(field_names)

    def get_field_names(self) -> list[str]:
        """The names of the fields, in order."""
        return self._field_names or [f"f{position}" for position in range(len(self._field_types))]

    def get_field_index(self, field_name: str) -> int:
        """The place of a field, counted from 0; ValueError if there is no field of that name."""
        try:
            return self.get_field_names().index(field_name)
        except ValueError:
            raise ValueError(f"{self!r} has no field {field_name!r}") from None

    def to_internal_type(self, obj: Any) -> Any:
        """The number of the row's kind followed by the fields; takes rows, tuples, lists, dicts and plain objects."""
        if obj is None:
            return None
        kind = obj.get_row_kind() if isinstance(obj, Row) else RowKind.INSERT
        return (kind.value, *self._fields_to_internal(self._values_of(obj)))

    def _values_of(self, obj: Any) -> Sequence[Any] | Row:
        """The fields in this type's order. A row's are matched by position, as in Flink; by name if it has them all."""
        match obj:
            case Row():
                names = self.get_field_names()
                if obj._fields is None or obj._fields == names or not set(names) <= set(obj._fields):
                    return obj
                return [obj[name] for name in names]
            case tuple() | list():
                return obj
            case dict():
                return [obj.get(name) for name in self.get_field_names()]
        if hasattr(obj, "__dict__"):
            return [vars(obj).get(name) for name in self.get_field_names()]
        raise ValueError(f"{obj!r} does not fit {self!r}; give a Row, tuple, list, dict or object with attributes")

    def __repr__(self) -> str:
        names = [f"{name}: " for name in self._field_names] if self._field_names else [""] * len(self._field_types)
        return f"RowTypeInfo({', '.join(f'{n}{t}' for n, t in zip(names, self._field_types, strict=True))})"


class TupleTypeInfo(_CompositeTypeInfo):
    """Tuples with fields of these types."""

    def __init__(self, field_types: list[TypeInformation]) -> None:
        super().__init__(field_types)

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        if not isinstance(obj, (tuple, list, Row)):
            raise ValueError(f"{obj!r} does not fit {self!r}; give a tuple, list or Row")
        return self._fields_to_internal(obj)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self._field_types))})"


class ListTypeInfo(TypeInformation):
    """Lists with elements of one type."""

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__()
        self.elem_type = element_type

    def _parts(self) -> tuple[object, ...]:
        return (self.elem_type,)


def element_type_of(type_info: TypeInformation) -> TypeInformation | None:
    """The type of a list's or array's elements; None for other types."""
    if isinstance(type_info, ListTypeInfo):
        return type_info.elem_type
    return type_info._element_type if isinstance(type_info, _ArrayTypeInfo) else None


class MapTypeInfo(TypeInformation):
    """Dicts with keys of one type and values of one type."""

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        super().__init__()
        self._key_type_info = key_type_info
        self._value_type_info = value_type_info

    def _parts(self) -> tuple[object, ...]:
        return (self._key_type_info, self._value_type_info)


class ExternalTypeInfo(TypeInformation):
    """A type that comes from a table or DataFrame; behaves as the type it wraps."""

    def __init__(self, type_info: TypeInformation) -> None:
        super().__init__()
        self._type_info = type_info

    def need_conversion(self) -> bool:
        return self._type_info.need_conversion()

    def to_internal_type(self, obj: Any) -> Any:
        return self._type_info.to_internal_type(obj)

    def from_internal_type(self, obj: Any) -> Any:
        return self._type_info.from_internal_type(obj)

    def _parts(self) -> tuple[object, ...]:
        return (self._type_info,)


class Types:
    """The types users declare, for instance as `output_type` of a map.

    >>> Types.TUPLE([Types.STRING(), Types.INT()])
    TupleTypeInfo(String, Integer)
    """

    @staticmethod
    def STRING() -> TypeInformation:
        """Text."""
        return BasicTypeInfo.STRING_TYPE_INFO()

    @staticmethod
    def BYTE() -> TypeInformation:
        """A whole number of 8 bits."""
        return BasicTypeInfo.BYTE_TYPE_INFO()

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """True or false."""
        return BasicTypeInfo.BOOLEAN_TYPE_INFO()

    @staticmethod
    def SHORT() -> TypeInformation:
        """A whole number of 16 bits."""
        return BasicTypeInfo.SHORT_TYPE_INFO()

    @staticmethod
    def INT() -> TypeInformation:
        """A whole number of 32 bits."""
        return BasicTypeInfo.INT_TYPE_INFO()

    @staticmethod
    def LONG() -> TypeInformation:
        """A whole number of 64 bits."""
        return BasicTypeInfo.LONG_TYPE_INFO()

    @staticmethod
    def FLOAT() -> TypeInformation:
        """Single precision: prints with the digits a 32-bit float has."""
        return BasicTypeInfo.FLOAT_TYPE_INFO()

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """A float, as Python has it."""
        return BasicTypeInfo.DOUBLE_TYPE_INFO()

    @staticmethod
    def CHAR() -> TypeInformation:
        """One character."""
        return BasicTypeInfo.CHAR_TYPE_INFO()

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """A whole number of any size."""
        return BasicTypeInfo.BIG_INT_TYPE_INFO()

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """A `decimal.Decimal`."""
        return BasicTypeInfo.BIG_DEC_TYPE_INFO()

    @staticmethod
    def INSTANT() -> TypeInformation:
        """An `Instant`."""
        return BasicTypeInfo.INSTANT_TYPE_INFO()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """A `datetime.date`."""
        return SqlTimeTypeInfo.DATE()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """A `datetime.time`."""
        return SqlTimeTypeInfo.TIME()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """A `datetime.datetime`."""
        return SqlTimeTypeInfo.TIMESTAMP()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python object; the default where no type is declared."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: list[TypeInformation]) -> RowTypeInfo:
        """A `Row` with fields of these types, called f0, f1 and so on."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: list[str], field_types: list[TypeInformation]) -> RowTypeInfo:
        """A `Row` with these fields.

        >>> Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]).get_field_names()
        ['name', 'age']
        """
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: list[TypeInformation]) -> TupleTypeInfo:
        """A tuple with fields of these types."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of numbers or booleans, none of them None."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of numbers, booleans or strings, any of which may be None."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of elements of any type."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """A dict with keys of one type and values of one type."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """A list with elements of one type."""
        return ListTypeInfo(element_type_info)
