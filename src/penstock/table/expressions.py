"""Where expressions of the Table API begin: columns, values, and functions that belong to no value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import InvalidProgramError
from penstock.table.expression import (
    Aggregate,
    Column,
    Expression,
    FunctionCall,
    JsonOnNull,
    Literal,
    RowInterval,
    TimePointUnit,
    Verbatim,
    call_of,
)
from penstock.table.types import DataType, quoted

if TYPE_CHECKING:
    from penstock.table.udf import UserDefinedFunctionWrapper

__all__ = [
    "if_then_else",
    "lit",
    "col",
    "range_",
    "and_",
    "or_",
    "not_",
    "UNBOUNDED_ROW",
    "UNBOUNDED_RANGE",
    "CURRENT_ROW",
    "CURRENT_RANGE",
    "current_database",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_watermark",
    "local_time",
    "local_timestamp",
    "temporal_overlaps",
    "date_format",
    "timestamp_diff",
    "array",
    "row",
    "map_",
    "map_from_arrays",
    "row_interval",
    "pi",
    "e",
    "rand",
    "rand_integer",
    "atan2",
    "negative",
    "concat",
    "concat_ws",
    "uuid",
    "null_of",
    "log",
    "with_all_columns",
    "with_columns",
    "without_columns",
    "json",
    "json_string",
    "json_object",
    "json_object_agg",
    "json_array",
    "json_array_agg",
    "call",
    "call_sql",
    "source_watermark",
    "to_timestamp_ltz",
    "from_unixtime",
    "to_date",
    "to_timestamp",
    "convert_tz",
    "unix_timestamp",
    "coalesce",
    "lag",
    "lead",
    "descriptor",
]

UNBOUNDED_ROW: Expression[Any] = Verbatim("UNBOUNDED_ROW")
"""For over windows: all rows before."""
UNBOUNDED_RANGE: Expression[Any] = Verbatim("UNBOUNDED_RANGE")
"""For over windows: all rows with the same time or an earlier one."""
CURRENT_ROW: Expression[Any] = Verbatim("CURRENT_ROW")
"""For over windows: up to the row itself."""
CURRENT_RANGE: Expression[Any] = Verbatim("CURRENT_RANGE")
"""For over windows: up to all rows with the row's time."""


class ColumnSelection(Expression[Any]):
    """Several columns: all, or those in, or not in, a list. The table that it is used with knows which."""

    def __init__(self, parts: tuple[Any, ...], is_inverted: bool) -> None:
        super().__init__("")
        self.parts = parts
        self.is_inverted = is_inverted

    def columns(self, all_names: list[str]) -> list[str]:
        """The names that are meant, of those that a table has."""
        chosen = [name for part in self.parts for name in _names(part, all_names)]
        return [name for name in all_names if name not in chosen] if self.is_inverted else chosen


class _Range(Expression[Any]):
    def __init__(self, start: str | int, end: str | int) -> None:
        super().__init__("")
        self.start_at, self.end_at = start, end


def _names(part: Any, all_names: list[str]) -> list[str]:
    match part:
        case _Range():
            first, last = (_position(end, all_names) for end in (part.start_at, part.end_at))
            return all_names[first : last + 1]
        case ColumnSelection():
            return part.columns(all_names)
        case Column():
            return all_names if part.column == "*" else [part.column]
        case Literal() | int():
            return [all_names[_position(part if isinstance(part, int) else part.value, all_names)]]
        case str():
            return [part]
    raise InvalidProgramError(f"columns are chosen by col(...), a position or range_(...), got {part}")


def _position(end: str | int, all_names: list[str]) -> int:
    if isinstance(end, int):
        return end - 1
    if end not in all_names:
        raise InvalidProgramError(f"there is no column {end!r}; the columns are {', '.join(all_names)}")
    return all_names.index(end)


def col(name: str) -> Expression[Any]:
    """A column by its name; in windowed tables, a window by its alias.

    >>> print(col("price") > 3)
    (`price` > 3)
    """
    return Column(name)


def lit(v: Any, data_type: DataType | None = None) -> Expression[Any]:
    """A value; with a type, the value as this type.

    >>> print(lit("it's"))
    'it''s'
    """
    return Literal(v, data_type)


def range_(start: str | int, end: str | int) -> Expression[Any]:
    """All columns from one to another, by names or positions from 1: for `with_columns` and `without_columns`."""
    return _Range(start, end)


def and_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[bool]:
    """True if all are."""
    return _joined("AND", predicate0, predicate1, *predicates)


def or_(predicate0: Any, predicate1: Any, *predicates: Any) -> Expression[bool]:
    """True if one of them is."""
    return _joined("OR", predicate0, predicate1, *predicates)


def _joined(word: str, *predicates: Any) -> Expression[bool]:
    places = f" {word} ".join(f"{{{position}}}" for position in range(len(predicates)))
    return Expression(f"({places})", *predicates)


def not_(expression: Expression[bool]) -> Expression[bool]:
    """True if the condition is false."""
    return Expression("(NOT {0})", expression)


def current_database() -> Expression[str]:
    """The name of the current database."""
    return Expression("CURRENT_DATABASE()")


def current_date() -> Expression[Any]:
    """Today, in the time zone of the session."""
    return Expression("CURRENT_DATE")


def current_time() -> Expression[Any]:
    """The time of day, in the time zone of the session."""
    return Expression("CURRENT_TIME")


def current_timestamp() -> Expression[Any]:
    """Now, as TIMESTAMP_LTZ."""
    return Expression("CURRENT_TIMESTAMP")


def current_watermark(rowtimeAttribute: Any) -> Expression[Any]:
    """The watermark of an event-time column; NULL before the first one."""
    return call_of("CURRENT_WATERMARK", rowtimeAttribute)


def local_time() -> Expression[Any]:
    """The time of day, in the time zone of the session."""
    return Expression("LOCALTIME")


def local_timestamp() -> Expression[Any]:
    """Now, as TIMESTAMP in the time zone of the session."""
    return Expression("LOCALTIMESTAMP")


def to_date(date_str: Any, format: Any = None) -> Expression[Any]:
    """The date that a text stands for."""
    return call_of("TO_DATE", date_str, format)


def to_timestamp(timestamp_str: Any, format: Any = None) -> Expression[Any]:
    """The TIMESTAMP that a text stands for."""
    return call_of("TO_TIMESTAMP", timestamp_str, format)


def to_timestamp_ltz(*args: Any) -> Expression[Any]:
    """The TIMESTAMP_LTZ of seconds or milliseconds since 1970, or of a text."""
    return call_of("TO_TIMESTAMP_LTZ", *args)


def temporal_overlaps(
    left_time_point: Any, left_temporal: Any, right_time_point: Any, right_temporal: Any
) -> Expression[bool]:
    """True if two spans of time overlap; each is a begin, and an end or a length."""
    template = "(({0}, {1}) OVERLAPS ({2}, {3}))"
    return Expression(template, left_time_point, left_temporal, right_time_point, right_temporal)


def date_format(timestamp: Any, format: Any) -> Expression[str]:
    """A point in time as a text in this format."""
    return call_of("DATE_FORMAT", timestamp, format)


def timestamp_diff(time_point_unit: TimePointUnit, time_point1: Any, time_point2: Any) -> Expression[int]:
    """How many whole units the second point in time is after the first."""
    return Expression(f"TIMESTAMPDIFF({time_point_unit.name}, {{0}}, {{1}})", time_point1, time_point2)


def convert_tz(date_str: Any, tz_from: Any, tz_to: Any) -> Expression[str]:
    """A date and time, as a text, in another time zone."""
    return call_of("CONVERT_TZ", date_str, tz_from, tz_to)


def from_unixtime(unixtime: Any, format: Any = None) -> Expression[str]:
    """Seconds since 1970 as a text in this format."""
    return call_of("FROM_UNIXTIME", unixtime, format)


def unix_timestamp(date_str: Any = None, format: Any = None) -> Expression[int]:
    """The seconds since 1970: now, or of a text."""
    return call_of("UNIX_TIMESTAMP", date_str, format)


def array(head: Any, *tail: Any) -> Expression[Any]:
    """An array of these values."""
    return _bracketed("ARRAY[", "]", head, *tail)


def row(head: Any, *tail: Any) -> Expression[Any]:
    """A row of these values."""
    return _bracketed("ROW(", ")", head, *tail)


def map_(key: Any, value: Any, *tail: Any) -> Expression[Any]:
    """A map of these keys and values, in turn."""
    return _bracketed("MAP[", "]", key, value, *tail)


def _bracketed(opening: str, closing: str, *items: Any) -> Expression[Any]:
    places = ", ".join(f"{{{position}}}" for position in range(len(items)))
    return Expression(opening + places + closing, *items)


def map_from_arrays(key: Any, value: Any) -> Expression[Any]:
    """A map of keys and values that are in two arrays."""
    return call_of("MAP_FROM_ARRAYS", key, value)


def descriptor(*column_names: str) -> Expression[Any]:
    """Names of columns, as an argument of a table function."""
    return Verbatim(f"DESCRIPTOR({', '.join(map(quoted, column_names))})")


def row_interval(rows: int) -> Expression[Any]:
    """A number of rows, for windows."""
    return RowInterval(rows)


def pi() -> Expression[float]:
    """The number pi."""
    return Expression("PI()")


def e() -> Expression[float]:
    """The number e."""
    return Expression("E()")


def rand(seed: Any = None) -> Expression[float]:
    """A random number from 0 to 1."""
    return call_of("RAND", seed)


def rand_integer(bound: Any, seed: Any = None) -> Expression[int]:
    """A random whole number from 0 to below the bound."""
    return call_of("RAND_INTEGER", bound) if seed is None else call_of("RAND_INTEGER", seed, bound)


def atan2(y: Any, x: Any) -> Expression[float]:
    """The angle of a point, in radians."""
    return call_of("ATAN2", y, x)


def negative(v: Any) -> Expression[Any]:
    """The number with the other sign."""
    return Expression("(- {0})", v)


def concat(first: Any, *others: Any) -> Expression[str]:
    """All texts, one after the other; NULL if one is."""
    return _bracketed("CONCAT(", ")", first, *others)


def concat_ws(separator: Any, first: Any, *others: Any) -> Expression[str]:
    """All texts that are not NULL, with a separator in between."""
    return call_of("CONCAT_WS", separator, first, *others)


def uuid() -> Expression[str]:
    """A random UUID."""
    return Expression("UUID()")


def null_of(data_type: DataType) -> Expression[Any]:
    """NULL of a type."""
    return Literal(None, data_type)


def log(v: Any, base: Any = None) -> Expression[float]:
    """The logarithm to this base; the natural one if none is given."""
    return call_of("LN", v) if base is None else call_of("LOG", base, v)


def source_watermark() -> Expression[Any]:
    """For schemas: the watermarks that a stream has."""
    return Expression("SOURCE_WATERMARK()")


def if_then_else(condition: Any, if_true: Any, if_false: Any) -> Expression[Any]:
    """The first value if the condition is true, else the second one."""
    return Expression("(CASE WHEN {0} THEN {1} ELSE {2} END)", condition, if_true, if_false)


def coalesce(*args: Any) -> Expression[Any]:
    """The first value that is not NULL."""
    return call_of("COALESCE", *args)


def with_all_columns() -> Expression[Any]:
    """All columns, as `col("*")`."""
    return Column("*")


def with_columns(head: Any, *tails: Any) -> Expression[Any]:
    """These columns, in this order."""
    return ColumnSelection((head, *tails), is_inverted=False)


def without_columns(head: Any, *tails: Any) -> Expression[Any]:
    """All columns but these."""
    return ColumnSelection((head, *tails), is_inverted=True)


def json(value: Any) -> Expression[Any]:
    """A text that is JSON already, as a value for `json_object` and `json_array`."""
    return call_of("JSON", value)


def json_string(value: Any) -> Expression[str]:
    """A value as JSON."""
    return call_of("JSON_STRING", value)


def json_object(on_null: JsonOnNull = JsonOnNull.NULL, *args: Any) -> Expression[str]:
    """A JSON object of these keys and values, in turn."""
    pairs = ", ".join(f"KEY {{{at}}} VALUE {{{at + 1}}}" for at in range(0, len(args), 2))
    return Expression(f"JSON_OBJECT({pairs} {on_null.name} ON NULL)", *args)


def json_object_agg(on_null: JsonOnNull, key_expr: Any, value_expr: Any) -> Expression[str]:
    """A JSON object of the keys and values of a group."""
    return Expression(f"JSON_OBJECTAGG(KEY {{0}} VALUE {{1}} {on_null.name} ON NULL)", key_expr, value_expr)


def json_array(on_null: JsonOnNull = JsonOnNull.ABSENT, *args: Any) -> Expression[str]:
    """A JSON array of these values."""
    places = ", ".join(f"{{{position}}}" for position in range(len(args)))
    return Expression(f"JSON_ARRAY({places} {on_null.name} ON NULL)", *args)


def json_array_agg(on_null: JsonOnNull, item_expr: Any) -> Expression[str]:
    """A JSON array of the values of a group."""
    return Expression(f"JSON_ARRAYAGG({{0}} {on_null.name} ON NULL)", item_expr)


def lag(expr: Any, offset: int = 1, default: Any = None) -> Expression[Any]:
    """The value of a row before this one; for over windows."""
    return Aggregate("LAG", expr, offset) if default is None else Aggregate("LAG", expr, offset, default)


def lead(expr: Any, offset: int = 1, default: Any = None) -> Expression[Any]:
    """The value of a row after this one; for over windows."""
    return Aggregate("LEAD", expr, offset) if default is None else Aggregate("LEAD", expr, offset, default)


def call(f: str | UserDefinedFunctionWrapper, *args: Any) -> Expression[Any]:
    """A call of a function, by its name in the catalog or by the function itself."""
    if isinstance(f, str):
        return _bracketed(".".join(map(quoted, f.split("."))) + "(", ")", *args)
    return FunctionCall(f, *args)


def call_sql(sql_expression: str) -> Expression[Any]:
    """An expression that is written in SQL."""
    return Verbatim(f"({sql_expression})")
