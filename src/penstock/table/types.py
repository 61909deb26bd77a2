"""The types of tables: `DataTypes` makes them, with PyFlink's names; they are values and never change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from penstock.common.types import Row, RowKind

if TYPE_CHECKING:
    from penstock.common.typeinfo import TypeInformation

__all__ = ["DataType", "DataTypes", "Resolution", "Row", "RowField", "RowKind", "RowType", "UserDefinedType"]

MAX_LENGTH = 0x7FFFFFFF
"""The length of STRING and BYTES."""

D = TypeVar("D", bound="DataType")


class DataType:
    """The type of a column or of a value inside one.

    >>> DataTypes.INT().not_null().as_sql()
    'INT NOT NULL'
    """

    _parts: tuple[str, ...] = ()
    """The attributes that make a type of this class what it is, besides whether it may be NULL."""

    def __init__(self, nullable: bool = True) -> None:
        self._nullable = nullable
        self._conversion_cls = ""

    @property
    def is_nullable(self) -> bool:
        """True if values of this type may be NULL."""
        return self._nullable

    def not_null(self: D) -> D:
        """The same type without NULL."""
        return self._with_nullability(False)

    def nullable(self: D) -> D:
        """The same type, with NULL."""
        return self._with_nullability(True)

    def _with_nullability(self: D, nullable: bool) -> D:
        if self._nullable == nullable:
            return self
        changed = copy(self)
        changed._nullable = nullable
        return changed

    def bridged_to(self: D, conversion_cls: str) -> D:
        """The type itself: a Java class for its values has no meaning in Python."""
        return self

    @classmethod
    def type_name(cls) -> str:
        """The name of the class in capitals, without `Type`."""
        return cls.__name__[:-4].upper()

    def as_sql(self) -> str:
        """The type as SQL writes it, such as `DECIMAL(10, 2) NOT NULL`."""
        return self._sql() if self._nullable else f"{self._sql()} NOT NULL"

    as_serializable_string = as_sql

    def type_info(self) -> TypeInformation:
        """What streams and formats of files declare values of this type as."""
        from penstock.table.type_infos import type_info_of

        return type_info_of(self)

    def _sql(self) -> str:
        return self.type_name()

    def _identity(self) -> tuple[object, ...]:
        return (type(self), self._nullable, *(getattr(self, part) for part in self._parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __str__(self) -> str:
        return self.type_name()

    def __repr__(self) -> str:
        return "{}({})".format(
            type(self).__name__, ", ".join([*(repr(getattr(self, part)) for part in self._parts), self._flag()])
        )

    def _flag(self) -> str:
        return str(self._nullable).lower()


class AtomicType(DataType):
    """A type without types inside."""


class NullType(AtomicType):
    """The type of a bare NULL."""


class NumericType(AtomicType):
    """Numbers."""


class IntegralType(NumericType):
    """Whole numbers of a fixed number of bits, which wrap around when a result has more."""

    bits: int


class FractionalType(NumericType):
    """Numbers with a fraction."""


class _TextOrBytesType(AtomicType):
    _parts = ("length",)

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        self.length = length
        super().__init__(nullable)

    def _sql(self) -> str:
        return f"{self.type_name()}({self.length})"


class CharType(_TextOrBytesType):
    """Texts of exactly `length` characters."""


class VarCharType(_TextOrBytesType):
    """Texts of at most `length` characters."""


class BinaryType(_TextOrBytesType):
    """Exactly `length` bytes."""


class VarBinaryType(_TextOrBytesType):
    """At most `length` bytes."""


class BooleanType(AtomicType):
    """TRUE, FALSE, or with NULL also UNKNOWN."""


class TinyIntType(IntegralType):
    """8 bits."""

    bits = 8


class SmallIntType(IntegralType):
    """16 bits."""

    bits = 16


class IntType(IntegralType):
    """32 bits."""

    bits = 32


class BigIntType(IntegralType):
    """64 bits."""

    bits = 64


class FloatType(FractionalType):
    """Floating point numbers of 32 bits."""


class DoubleType(FractionalType):
    """Floating point numbers of 64 bits."""


class DecimalType(FractionalType):
    """Exact numbers of at most `precision` digits, `scale` of them after the point."""

    _parts = ("precision", "scale")

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise ValueError(
                f"DECIMAL({precision}, {scale}) does not exist: the precision is from 1 to 38, the scale from 0 to it"
            )
        self.precision = precision
        self.scale = scale
        self.has_precision_info = True
        super().__init__(nullable)

    def _sql(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


class DateType(AtomicType):
    """A day without a time zone."""


class TimeType(AtomicType):
    """A time of day, kept in milliseconds."""

    _parts = ("precision",)

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        _check_fraction("TIME", precision)
        self.precision = precision
        super().__init__(nullable)

    def _sql(self) -> str:
        return f"TIME({self.precision})"


class _AnyTimestampType(AtomicType):
    _parts = ("precision", "kind")
    _suffix = ""

    def __init__(self, precision: int = 6, nullable: bool = True, kind: str = "REGULAR") -> None:
        _check_fraction("TIMESTAMP", precision)
        self.precision = precision
        self.kind = kind
        super().__init__(nullable)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.precision}, {self._flag()})"

    def _sql(self) -> str:
        return f"TIMESTAMP({self.precision}){self._suffix}"


class TimestampType(_AnyTimestampType):
    """A date and time without a time zone. `kind` is ROWTIME for a time attribute."""


class LocalZonedTimestampType(_AnyTimestampType):
    """A point in time, shown in the session's time zone. `kind` is ROWTIME or PROCTIME for a time attribute."""

    _suffix = " WITH LOCAL TIME ZONE"

    @classmethod
    def type_name(cls) -> str:
        return "LOCALZONEDTIMESTAMP"


class ZonedTimestampType(_AnyTimestampType):
    """A date and time with a time zone of its own. No value of it can be made in Flink either."""

    _suffix = " WITH TIME ZONE"


class Resolution:
    """A unit of an interval, such as `DataTypes.SECOND(3)`."""

    class IntervalUnit(Enum):
        """The units that intervals are written in."""

        SECOND = 0
        MINUTE = 1
        HOUR = 2
        DAY = 3
        MONTH = 4
        YEAR = 5

    def __init__(self, unit: IntervalUnit, precision: int = -1) -> None:
        self._unit = unit
        self._precision = precision

    @property
    def unit(self) -> IntervalUnit:
        return self._unit

    @property
    def precision(self) -> int:
        return self._precision

    def __str__(self) -> str:
        return f"{self._unit.name}({self._precision})" if self._precision != -1 else self._unit.name


class YearMonthIntervalType(AtomicType):
    """A number of months."""

    class YearMonthResolution:
        """In which units the interval is written."""

        YEAR = 1
        MONTH = 2
        YEAR_TO_MONTH = 3

    DEFAULT_PRECISION = 2
    _parts = ("resolution", "precision")

    def __init__(self, resolution: int, precision: int = DEFAULT_PRECISION, nullable: bool = True) -> None:
        self.resolution = resolution
        self.precision = precision
        super().__init__(nullable)

    def _sql(self) -> str:
        year = f"YEAR({self.precision})"
        return {1: f"INTERVAL {year}", 2: "INTERVAL MONTH", 3: f"INTERVAL {year} TO MONTH"}[self.resolution]


class DayTimeIntervalType(AtomicType):
    """A number of milliseconds."""

    class DayTimeResolution(Enum):
        """In which units the interval is written."""

        DAY = 1
        DAY_TO_HOUR = 2
        DAY_TO_MINUTE = 3
        DAY_TO_SECOND = 4
        HOUR = 5
        HOUR_TO_MINUTE = 6
        HOUR_TO_SECOND = 7
        MINUTE = 8
        MINUTE_TO_SECOND = 9
        SECOND = 10

    DEFAULT_DAY_PRECISION = 2
    DEFAULT_FRACTIONAL_PRECISION = 6
    _parts = ("resolution", "day_precision", "fractional_precision")

    def __init__(
        self,
        resolution: DayTimeResolution,
        day_precision: int = DEFAULT_DAY_PRECISION,
        fractional_precision: int = DEFAULT_FRACTIONAL_PRECISION,
        nullable: bool = True,
    ) -> None:
        self.resolution = resolution
        self.day_precision = day_precision
        self.fractional_precision = fractional_precision
        super().__init__(nullable)

    def _sql(self) -> str:
        units = self.resolution.name.split("_TO_")
        digits = {"DAY": f"({self.day_precision})", "SECOND": f"({self.fractional_precision})"}
        return "INTERVAL " + " TO ".join(unit + digits.get(unit, "") for unit in units)


class ArrayType(DataType):
    """Values of one type, in an order."""

    _parts = ("element_type",)

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        self.element_type = _checked(element_type, "element_type")
        super().__init__(nullable)

    def _sql(self) -> str:
        return f"ARRAY<{self.element_type.as_sql()}>"


class MultisetType(DataType):
    """Values of one type with the number of times each occurs."""

    _parts = ("element_type",)

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        self.element_type = _checked(element_type, "element_type")
        super().__init__(nullable)

    def _sql(self) -> str:
        return f"MULTISET<{self.element_type.as_sql()}>"


class MapType(DataType):
    """Values by keys."""

    _parts = ("key_type", "value_type")

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        self.key_type = _checked(key_type, "key_type")
        self.value_type = _checked(value_type, "value_type")
        super().__init__(nullable)

    def _sql(self) -> str:
        return f"MAP<{self.key_type.as_sql()}, {self.value_type.as_sql()}>"


class ListViewType(DataType):
    """A list in an accumulator whose elements are kept in state."""

    _parts = ("element_type",)

    def __init__(self, element_type: DataType) -> None:
        self.element_type = _checked(element_type, "element_type")
        super().__init__()


class MapViewType(DataType):
    """A map in an accumulator whose entries are kept in state."""

    _parts = ("key_type", "value_type")

    def __init__(self, key_type: DataType, value_type: DataType) -> None:
        self.key_type = _checked(key_type, "key_type")
        self.value_type = _checked(value_type, "value_type")
        super().__init__()


class RowField:
    """A named field of a row type.

    >>> DataTypes.FIELD("a", DataTypes.INT())
    RowField(a, IntType(true))
    """

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        self.name = name
        self.data_type = _checked(data_type, "data_type")
        self.description = "" if description is None else description

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type!r})"

    def __str__(self) -> str:
        return f"RowField({self.name}, {self.data_type})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowField) and (self.name, self.data_type) == (other.name, other.data_type)

    def __hash__(self) -> int:
        return hash((self.name, self.data_type))


class RowType(DataType):
    """Named fields, each with a type.

    >>> row_type = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])
    >>> row_type.field_names(), row_type["b"].data_type.as_sql()
    (['a', 'b'], 'VARCHAR(2147483647)')
    """

    def __init__(self, fields: Sequence[RowField] | None = None, nullable: bool = True) -> None:
        self.fields: list[RowField] = list(fields or ())
        if not all(isinstance(field, RowField) for field in self.fields):
            raise TypeError(f"the fields of a ROW must be made with DataTypes.FIELD(name, type), got {self.fields}")
        self.names = [field.name for field in self.fields]
        super().__init__(nullable)

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """Adds a field to this type, and returns it."""
        if not isinstance(field, RowField):
            if data_type is None:
                raise ValueError(f"RowType.add({field!r}) needs the type of the field as its second argument")
            field = RowField(field, data_type)
        self.fields.append(field)
        self.names.append(field.name)
        return self

    def field_names(self) -> list[str]:
        return list(self.names)

    def field_types(self) -> list[DataType]:
        return [field.data_type for field in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, key: str | int | slice) -> RowField | RowType:
        if isinstance(key, str):
            for field in self.fields:
                if field.name == key:
                    return field
            raise KeyError(f"no field named {key!r}; the fields are {self.names}")
        if isinstance(key, slice):
            return RowType(self.fields[key])
        return self.fields[key]

    def _identity(self) -> tuple[object, ...]:
        return (RowType, self._nullable, tuple(self.fields))

    def _sql(self) -> str:
        fields = (f"{quoted(field.name)} {field.data_type.as_sql()}" for field in self.fields)
        return f"ROW<{', '.join(fields)}>"

    def __repr__(self) -> str:
        return f"RowType({','.join(str(field) for field in self)})"


class RawType(DataType):
    """Any Python object, which SQL can only pass on."""

    def __init__(self, nullable: bool = True, text: str = "RAW") -> None:
        super().__init__(nullable)
        self.text = text

    _parts = ("text",)

    def _sql(self) -> str:
        return self.text


class UserDefinedType(DataType):
    """A type of one's own that is kept as another. Subclass it and define `sql_type`, `serialize` and `deserialize`."""

    @classmethod
    def sql_type(cls) -> DataType:
        """The type in which values are kept."""
        raise NotImplementedError(f"{cls.__name__} must define sql_type()")

    def serialize(self, obj: Any) -> Any:
        """The value to keep."""
        raise NotImplementedError(f"{type(self).__name__} must define serialize()")

    def deserialize(self, datum: Any) -> Any:
        """The object of a value that was kept."""
        raise NotImplementedError(f"{type(self).__name__} must define deserialize()")


def quoted(name: str) -> str:
    """An identifier in back quotes."""
    return "`" + name.replace("`", "``") + "`"


def _checked(data_type: object, what: str) -> DataType:
    if not isinstance(data_type, DataType):
        raise TypeError(f"{what} must be a type made with DataTypes, such as DataTypes.INT(), got {data_type!r}")
    return data_type


def _check_fraction(name: str, precision: int) -> None:
    if not 0 <= precision <= 9:
        raise ValueError(f"{name}({precision}) does not exist: the digits of the fraction are from 0 to 9")


class DataTypes:
    """Makes the types of tables.

    >>> DataTypes.DECIMAL(10, 2).as_sql(), DataTypes.ARRAY(DataTypes.INT().not_null()).as_sql()
    ('DECIMAL(10, 2)', 'ARRAY<INT NOT NULL>')
    """

    @staticmethod
    def NULL() -> NullType:
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        return CharType(length, nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        return VarCharType(length, nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        return VarCharType(MAX_LENGTH, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        return BooleanType(nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        return BinaryType(length, nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        return VarBinaryType(length, nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        return VarBinaryType(MAX_LENGTH, nullable)

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DecimalType:
        return DecimalType(precision, scale, nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        return TinyIntType(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        return SmallIntType(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        return IntType(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        return BigIntType(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        return FloatType(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        return DoubleType(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        return DateType(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        return TimeType(precision, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        return TimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        return LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        return LocalZonedTimestampType(precision, nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        return ArrayType(element_type, nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        return ListViewType(element_type)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        return MapViewType(key_type, value_type)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        return MultisetType(element_type, nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:
        return RowType(row_fields, nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = DayTimeIntervalType.DEFAULT_FRACTIONAL_PRECISION) -> Resolution:
        return Resolution(Resolution.IntervalUnit.SECOND, precision)

    @staticmethod
    def MINUTE() -> Resolution:
        return Resolution(Resolution.IntervalUnit.MINUTE)

    @staticmethod
    def HOUR() -> Resolution:
        return Resolution(Resolution.IntervalUnit.HOUR)

    @staticmethod
    def DAY(precision: int = DayTimeIntervalType.DEFAULT_DAY_PRECISION) -> Resolution:
        return Resolution(Resolution.IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:
        return Resolution(Resolution.IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = YearMonthIntervalType.DEFAULT_PRECISION) -> Resolution:
        return Resolution(Resolution.IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        ends = [upper_resolution] if lower_resolution is None else [upper_resolution, lower_resolution]
        return interval_type([(end.unit.name, end.precision) for end in ends])


def interval_type(ends: Sequence[tuple[str, int]]) -> DayTimeIntervalType | YearMonthIntervalType:
    """The type of an interval with these units, of which one may have a number of digits (or -1)."""
    name = "_TO_".join(unit for unit, _ in ends)
    digits = {unit: precision for unit, precision in ends if precision >= 0}
    if "YEAR" in name or "MONTH" in name:
        resolution = getattr(YearMonthIntervalType.YearMonthResolution, name, None)
        if resolution is None:
            raise ValueError(f"an interval cannot be {name.replace('_', ' ')}")
        return YearMonthIntervalType(cast(int, resolution), digits.get("YEAR", 2))
    try:
        day_time = DayTimeIntervalType.DayTimeResolution[name]
    except KeyError:
        raise ValueError(f"an interval cannot be {name.replace('_', ' ')}") from None
    return DayTimeIntervalType(day_time, digits.get("DAY", 2), digits.get("SECOND", 6))
