"""Types as plans and DDL write them, and values between users' programs and rows.

Inside, a value is as plain as can be: NULL is None; whole numbers are int; FLOAT and DOUBLE are float (a FLOAT already
rounded to 32 bits); DECIMAL is Decimal with the type's scale; texts are str, binaries bytes; DATE is days since 1970;
TIME the millisecond of the day; timestamps are nanoseconds since 1970 (without a time zone, of the local time read as
UTC); intervals are months or milliseconds; ARRAY is a list, MAP a dict, MULTISET a dict of counts, ROW a tuple.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn
from zoneinfo import ZoneInfo

from penstock.common.types import Row
from penstock.table import types as t
from penstock.table.types import DataType, RowField, RowType
from penstock.table.values.numbers import decimal_of_type, to_float32, wrap

LogicalType = DataType
Converter = Callable[[Any], Any]

NANOS_PER_MICRO = 1_000
NANOS_PER_MILLI = 1_000_000
NANOS_PER_SECOND = 1_000_000_000
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()
_UTC = datetime.timezone.utc
_MICROSECOND = datetime.timedelta(microseconds=1)

_SIMPLE: dict[str, Callable[[], DataType]] = {
    "NULL": t.NullType,
    "BOOLEAN": t.BooleanType,
    "TINYINT": t.TinyIntType,
    "SMALLINT": t.SmallIntType,
    "INT": t.IntType,
    "INTEGER": t.IntType,
    "BIGINT": t.BigIntType,
    "FLOAT": t.FloatType,
    "DATE": t.DateType,
    "STRING": t.DataTypes.STRING,
    "BYTES": t.DataTypes.BYTES,
}
_SIZED: dict[str, Callable[[int], DataType]] = {
    "CHAR": t.CharType,
    "CHARACTER": t.CharType,
    "VARCHAR": t.VarCharType,
    "BINARY": t.BinaryType,
    "VARBINARY": t.VarBinaryType,
}
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^']|'')*'|[A-Za-z_$][\w$]*|\d+|[<>(),.?])")


def parse_type(description: str | Mapping[str, Any] | DataType) -> DataType:
    """The type that a plan or DDL describes: a text, or an object if there is a time attribute in it.

    >>> parse_type("ROW<`a` INT NOT NULL, `b` TIMESTAMP(3) WITH LOCAL TIME ZONE>").field_names()
    ['a', 'b']
    """
    if isinstance(description, DataType):
        return description
    if isinstance(description, str):
        return _Parser(description).whole()
    return _type_of_object(description)


def _type_of_object(description: Mapping[str, Any]) -> DataType:
    name = description["type"]
    nullable = description.get("nullable", True)
    made: DataType
    match name:
        case "TIMESTAMP_WITHOUT_TIME_ZONE":
            made = t.TimestampType(description["precision"], kind=description.get("kind", "REGULAR"))
        case "TIMESTAMP_WITH_LOCAL_TIME_ZONE":
            made = t.LocalZonedTimestampType(description["precision"], kind=description.get("kind", "REGULAR"))
        case "ROW":
            fields = description["fields"]
            made = RowType([RowField(field["name"], parse_type(field["fieldType"])) for field in fields])
        case "ARRAY":
            made = t.ArrayType(parse_type(description["elementType"]))
        case "MULTISET":
            made = t.MultisetType(parse_type(description["elementType"]))
        case "MAP":
            made = t.MapType(parse_type(description["keyType"]), parse_type(description["valueType"]))
        case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":  # An object only if the length is zero.
            made = _SIZED[name](description.get("length", 0))
        case "RAW" | "SYMBOL" | "DISTINCT_TYPE" | "STRUCTURED_TYPE":
            made = t.RawType(text=name)
        case _:
            raise ValueError(f"a plan has a type that is not known: {dict(description)}")
    return made if nullable else made.not_null()


class _Parser:
    """Reads one type from a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.at = 0

    def _tokens(self) -> list[str]:
        found, position = [], 0
        while self.text[position:].strip():
            match = _TOKEN.match(self.text, position)
            if match is None:
                self.fail(f"unexpected {self.text[position:].strip()[:10]!r}")
            found.append(match[1])
            position = match.end()
        return found

    def fail(self, why: str) -> NoReturn:
        raise ValueError(f"{self.text!r} is not a type: {why}")

    def whole(self) -> DataType:
        found = self.type()
        if self.at < len(self.tokens):
            self.fail(f"unexpected {self.tokens[self.at]!r}")
        return found

    def peek(self, *words: str) -> bool:
        return [token.upper() for token in self.tokens[self.at : self.at + len(words)]] == list(words)

    def skip(self, *words: str) -> bool:
        """True if these words came next; then they are behind us."""
        found = self.peek(*words)
        self.at += len(words) if found else 0
        return found

    def expect(self, word: str) -> None:
        if not self.skip(word):
            self.fail(f"{word!r} is missing")

    def next(self) -> str:
        if self.at == len(self.tokens):
            self.fail("it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def numbers(self) -> list[int]:
        """What is in parentheses, if there are any."""
        found: list[int] = []
        if self.skip("("):
            found.append(int(self.next()))
            while self.skip(","):
                found.append(int(self.next()))
            self.expect(")")
        return found

    def type(self) -> DataType:
        found = self.bare_type()
        while self.peek("ARRAY") or self.peek("MULTISET"):
            found = (t.ArrayType if self.next().upper() == "ARRAY" else t.MultisetType)(self._nullability(found))
        return self._nullability(found)

    def _nullability(self, found: DataType) -> DataType:
        if self.skip("NOT", "NULL"):
            return found.not_null()
        self.skip("NULL")
        return found

    def bare_type(self) -> DataType:
        name = self.next().upper()
        match name:
            case _ if name in _SIMPLE:
                return _SIMPLE[name]()
            case _ if name in _SIZED:
                if name in ("CHAR", "CHARACTER") and self.skip("VARYING"):
                    name = "VARCHAR"
                return _SIZED[name]((self.numbers() or [1])[0])
            case "DOUBLE":
                self.skip("PRECISION")
                return t.DoubleType()
            case "DECIMAL" | "DEC" | "NUMERIC":
                precision, scale = (*self.numbers(), 10, 0)[:2] if not self.peek("(") else (*self.numbers(), 0)[:2]
                return t.DecimalType(precision, scale)
            case "TIME":
                digits = self.numbers()
                self.skip("WITHOUT", "TIME", "ZONE")
                return t.TimeType((digits or [0])[0])
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return self.timestamp(name)
            case "INTERVAL":
                return self.interval()
            case "ARRAY" | "MULTISET" | "MAP":
                return self.collection(name)
            case "ROW":
                return self.row()
            case "RAW":
                return self.raw()
        self.fail(f"{name} is not known")

    def timestamp(self, name: str) -> DataType:
        digits = (self.numbers() or [6])[0]
        if name == "TIMESTAMP_LTZ" or self.skip("WITH", "LOCAL", "TIME", "ZONE"):
            return t.LocalZonedTimestampType(digits)
        if self.skip("WITH", "TIME", "ZONE"):
            return t.ZonedTimestampType(digits)
        self.skip("WITHOUT", "TIME", "ZONE")
        return t.TimestampType(digits)

    def interval(self) -> DataType:
        ends = [(self.next().upper(), (self.numbers() or [-1])[-1])]
        if self.skip("TO"):
            ends.append((self.next().upper(), (self.numbers() or [-1])[-1]))
        return t.interval_type(ends)

    def collection(self, name: str) -> DataType:
        self.expect("<")
        first = self.type()
        if name != "MAP":
            self.expect(">")
            return t.ArrayType(first) if name == "ARRAY" else t.MultisetType(first)
        self.expect(",")
        value = self.type()
        self.expect(">")
        return t.MapType(first, value)

    def row(self) -> DataType:
        closing = ")" if self.skip("(") else ">"
        if closing == ">":
            self.expect("<")
        fields: list[RowField] = []
        while not self.skip(closing):
            if fields:
                self.expect(",")
            name = self.next()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            data_type = self.type()
            description = self.next()[1:-1] if self.at < len(self.tokens) and self.tokens[self.at][0] == "'" else None
            fields.append(RowField(name, data_type, description))
        return RowType(fields)

    def raw(self) -> DataType:
        begin, depth = self.at, 0
        while self.at < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.tokens[self.at], 0)
            self.at += 1
            if depth == 0:
                break
        return t.RawType(text="RAW" + "".join(self.tokens[begin : self.at]))


def row_type_of(description: str | Mapping[str, Any] | DataType) -> RowType:
    """Like `parse_type`, for what must be a row."""
    found = parse_type(description)
    if not isinstance(found, RowType):
        raise ValueError(f"{found.as_sql()} is not the type of a row")
    return found


def to_external(value: Any, data_type: DataType, time_zone: str = "UTC") -> Any:
    """What a user's program sees of a value inside a row."""
    convert = external_converter(data_type, time_zone)
    return value if convert is None else convert(value)


def from_external(value: Any, data_type: DataType, time_zone: str = "UTC") -> Any:
    """The value inside a row for what a user's program gives."""
    convert = internal_converter(data_type, time_zone)
    return value if convert is None else convert(value)


def local_timestamp_from_datetime(value: datetime.datetime) -> int:
    """Nanoseconds of a date and time whose time zone, if any, does not matter."""
    return (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND * NANOS_PER_MICRO


def datetime_of_nanos(nanos: int) -> datetime.datetime:
    """The date and time without a zone; what is below a microsecond is lost."""
    return _EPOCH + datetime.timedelta(microseconds=nanos // NANOS_PER_MICRO)


def _null_safe(convert: Converter) -> Converter:
    return lambda value: None if value is None else convert(value)


def external_converter(data_type: DataType, time_zone: str = "UTC") -> Converter | None:
    """The function from values inside to those of users, or None if they are the same."""
    convert = _external(data_type, time_zone)
    return None if convert is None else _null_safe(convert)


def internal_converter(data_type: DataType, time_zone: str = "UTC") -> Converter | None:
    """The function from values of users to those inside, or None if they are the same."""
    convert = _internal(data_type, time_zone)
    return None if convert is None else _null_safe(convert)


def _external(data_type: DataType, zone: str) -> Converter | None:
    match data_type:
        case t.DateType():
            return lambda days: datetime.date.fromordinal(days + _EPOCH_DAY)
        case t.TimeType():
            return _time_of_millis
        case t.TimestampType():
            return datetime_of_nanos
        case t.LocalZonedTimestampType():
            tz = ZoneInfo(zone) if zone != "UTC" else _UTC
            return lambda nanos: datetime_of_nanos(nanos).replace(tzinfo=_UTC).astimezone(tz).replace(tzinfo=None)
        case t.DayTimeIntervalType():
            return lambda millis: datetime.timedelta(milliseconds=millis)
        case t.ArrayType(element_type=element):
            each = external_converter(element, zone)
            return list if each is None else lambda values: [each(value) for value in values]
        case t.MapType(key_type=key, value_type=value):
            return _map_converter(external_converter(key, zone), external_converter(value, zone))
        case t.MultisetType(element_type=element):
            return _map_converter(external_converter(element, zone), None)
        case RowType():
            return _row_to_external(data_type, zone)
        case t.UserDefinedType():
            return data_type.deserialize
    return None


def _internal(data_type: DataType, zone: str) -> Converter | None:
    match data_type:
        case t.BooleanType():
            return bool
        case t.IntegralType(bits=bits):
            return lambda number: wrap(int(number), bits)
        case t.FloatType():
            return to_float32
        case t.DoubleType():
            return float
        case t.DecimalType(precision=precision, scale=scale):
            return lambda number: decimal_of_type(_decimal(number), precision, scale)
        case t.CharType() | t.VarCharType():
            return str
        case t.BinaryType() | t.VarBinaryType():
            return bytes
        case t.DateType():
            return _days_of_date
        case t.TimeType():
            return _millis_of_time
        case t.TimestampType(precision=digits):
            return lambda value: cut_fraction(_nanos_of_datetime(value), digits)
        case t.LocalZonedTimestampType(precision=digits):
            return lambda value: cut_fraction(_nanos_of_instant(value, zone), digits)
        case t.DayTimeIntervalType():
            return lambda value: value if isinstance(value, int) else value // datetime.timedelta(milliseconds=1)
        case t.ArrayType(element_type=element):
            each = internal_converter(element, zone)
            return list if each is None else lambda values: [each(value) for value in values]
        case t.MapType(key_type=key, value_type=value):
            return _map_converter(internal_converter(key, zone), internal_converter(value, zone))
        case t.MultisetType(element_type=element):
            return _multiset_to_internal(internal_converter(element, zone))
        case RowType():
            return _row_to_internal(data_type, zone)
        case t.UserDefinedType():
            return data_type.serialize
    return None


def cut_fraction(nanos: int, precision: int) -> int:
    """A timestamp without the digits that a type of this precision does not keep."""
    unit = 10 ** (9 - precision)
    return nanos if unit == 1 else nanos - nanos % unit


def _decimal(number: Any) -> decimal.Decimal:
    return decimal.Decimal(repr(number) if isinstance(number, float) else number)


def _days_of_date(value: Any) -> int:
    return value if isinstance(value, int) else int(value.toordinal()) - _EPOCH_DAY


def _millis_of_time(value: Any) -> int:
    if isinstance(value, int):
        return value
    return int(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000 + value.microsecond // 1_000)


def _time_of_millis(millis: int) -> datetime.time:
    seconds, millis = divmod(millis, 1_000)
    return datetime.time(seconds // 3_600, seconds // 60 % 60, seconds % 60, millis * 1_000)


def _nanos_of_datetime(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return local_timestamp_from_datetime(value)
    raise TypeError(f"a TIMESTAMP needs a datetime, got {value!r}")


def _nanos_of_instant(value: Any, zone: str) -> int:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=ZoneInfo(zone))
        return local_timestamp_from_datetime(value.astimezone(_UTC))
    seconds, nanos = getattr(value, "seconds", None), getattr(value, "nanos", None)  # penstock.common.Instant
    if seconds is None or nanos is None:
        raise TypeError(f"a TIMESTAMP_LTZ needs a datetime or an Instant, got {value!r}")
    return int(seconds) * NANOS_PER_SECOND + int(nanos)


def _map_converter(key: Converter | None, value: Converter | None) -> Converter:
    if key is None and value is None:
        return dict
    key, value = key or _same, value or _same
    return lambda entries: {key(k): value(v) for k, v in entries.items()}


def _multiset_to_internal(each: Converter | None) -> Converter:
    def convert(values: Any) -> dict[Any, int]:
        counts: dict[Any, int] = {}
        entries = values.items() if isinstance(values, Mapping) else ((value, 1) for value in values)
        for value, count in entries:
            inside = value if each is None else each(value)
            counts[inside] = counts.get(inside, 0) + count
        return counts

    return convert


def _same(value: Any) -> Any:
    return value


def _row_to_external(row_type: RowType, zone: str) -> Converter:
    each = [external_converter(data_type, zone) or _same for data_type in row_type.field_types()]
    names = row_type.field_names()

    def convert(values: Any) -> Row:
        row = Row(*[convert_one(value) for convert_one, value in zip(each, values, strict=False)])
        row.set_field_names(names)
        return row

    return convert


def _row_to_internal(row_type: RowType, zone: str) -> Converter:
    each = [internal_converter(data_type, zone) or _same for data_type in row_type.field_types()]
    names = row_type.field_names()

    def convert(given: Any) -> tuple[Any, ...]:
        values = _fields_in_order(given, names)
        if len(values) != len(each):
            raise ValueError(f"a row of {len(names)} fields {names} is needed, got {len(values)} values: {given!r}")
        return tuple([convert_one(value) for convert_one, value in zip(each, values, strict=True)])

    return convert


def _fields_in_order(given: Any, names: list[str]) -> list[Any]:
    if isinstance(given, Mapping):
        return [given.get(name) for name in names]
    if isinstance(given, Row):
        by_name = getattr(given, "_fields", None)
        if by_name and set(by_name) == set(names):
            return [given[name] for name in names]
        return list(given)
    if hasattr(given, "__dict__") and not isinstance(given, (list, tuple)):
        return [getattr(given, name) for name in names]
    return list(given)
