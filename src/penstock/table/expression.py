"""Expressions of the Table API. Each is a part of a SQL statement, which Flink's planner then checks."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from penstock.common.exceptions import InvalidProgramError
from penstock.common.types import Row
from penstock.table.types import DataType, DataTypes, quoted

if TYPE_CHECKING:
    from penstock.table.udf import UserDefinedFunctionWrapper

__all__ = [
    "Expression",
    "TimeIntervalUnit",
    "TimePointUnit",
    "JsonType",
    "JsonExistsOnError",
    "JsonValueOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonQueryOnEmptyOrError",
    "JsonOnNull",
]

T = TypeVar("T")


class TimeIntervalUnit(Enum):
    """Units of intervals and of parts of a point in time."""

    YEAR = 0
    YEAR_TO_MONTH = 1
    QUARTER = 2
    MONTH = 3
    WEEK = 4
    DAY = 5
    DAY_TO_HOUR = 6
    DAY_TO_MINUTE = 7
    DAY_TO_SECOND = 8
    HOUR = 9
    SECOND = 10
    HOUR_TO_MINUTE = 11
    HOUR_TO_SECOND = 12
    MINUTE = 13
    MINUTE_TO_SECOND = 14


class TimePointUnit(Enum):
    """Units in which points in time are apart."""

    YEAR = 0
    MONTH = 1
    DAY = 2
    HOUR = 3
    MINUTE = 4
    SECOND = 5
    QUARTER = 6
    WEEK = 7
    MILLISECOND = 8
    MICROSECOND = 9


class JsonType(Enum):
    """What a JSON text can be."""

    VALUE = 0
    SCALAR = 1
    ARRAY = 2
    OBJECT = 3


class JsonExistsOnError(Enum):
    """What JSON_EXISTS gives on an error."""

    TRUE = 0
    FALSE = 1
    UNKNOWN = 2
    ERROR = 3


class JsonValueOnEmptyOrError(Enum):
    """What JSON_VALUE gives if there is nothing, or on an error."""

    NULL = 0
    ERROR = 1
    DEFAULT = 2


class JsonQueryWrapper(Enum):
    """Whether JSON_QUERY puts results into an array."""

    WITHOUT_ARRAY = 0
    CONDITIONAL_ARRAY = 1
    UNCONDITIONAL_ARRAY = 2


class JsonQueryOnEmptyOrError(Enum):
    """What JSON_QUERY gives if there is nothing, or on an error."""

    NULL = 0
    EMPTY_ARRAY = 1
    EMPTY_OBJECT = 2
    ERROR = 3


class JsonOnNull(Enum):
    """What becomes of NULL in a JSON text that is made."""

    NULL = 0
    ABSENT = 1


class SqlContext(Protocol):
    """What an expression must ask for, to become SQL: it belongs to the table that the expression is used with."""

    def function(self, function: UserDefinedFunctionWrapper) -> str:
        """The name of a function, which is made known to the planner."""

    def window_property(self, window: str, name: str) -> str:
        """START, END, ROWTIME or PROCTIME of the group window with this alias."""

    def over(self, window: str) -> str:
        """What the over window with this alias is in brackets after OVER."""

    def field(self, row: str, position: int) -> str:
        """The name of a field of a row."""


class _NoContext:
    """For expressions outside of a table, such as those of a schema."""

    def function(self, function: UserDefinedFunctionWrapper) -> str:
        raise InvalidProgramError(f"{function} is used outside of a table, where it has no name; register it first")

    def window_property(self, window: str, name: str) -> str:
        raise InvalidProgramError(
            f"col({window!r}).{name.lower()}: there is no group window with this alias; use it in select(...) after "
            f"window(...) and group_by(...)"
        )

    def over(self, window: str) -> str:
        raise InvalidProgramError(
            f"over(col({window!r})): there is no over window with this alias; use it in select(...) after "
            f"over_window(...)"
        )

    def field(self, row: str, position: int) -> str:
        return f"f{position}"


NO_CONTEXT = _NoContext()


class Expression(Generic[T]):
    """A value that is computed for each row, or for each group of rows.

    >>> from penstock.table.expressions import col
    >>> print((col("price") * 2).alias("double"))
    (`price` * 2)
    """

    def __init__(self, template: str, *arguments: Any, name: str | None = None) -> None:
        """For the functions of `penstock.table.expressions`: SQL with `{0}` for the first argument and so on."""
        self._template = template
        self._arguments = tuple(_operand(argument) for argument in arguments)
        self._name = name
        self._aliases: tuple[str, ...] = ()

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        """The expression as SQL has it, without aliases."""
        return self._template.format(*[argument.as_sql(context) for argument in self._arguments])

    def __str__(self) -> str:
        return self.as_sql()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._template!r} of {list(self._arguments)}>"

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names that `alias` has given. For tables."""
        return self._aliases

    @property
    def own_name(self) -> str | None:
        """The name that a column of this expression has; None if it must be given one. For tables."""
        return self._aliases[0] if self._aliases else self._name

    def walk(self) -> list[Expression[Any]]:
        """The expression and all that are inside of it. For tables."""
        return [self, *(inner for argument in self._arguments for inner in argument.walk())]

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InvalidProgramError(
            f"{self._template!r} is an expression, and neither true nor false; join conditions with & and |, or with "
            f"and_(...) and or_(...)"
        )

    # --- operators ---------------------------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Expression[bool]:
        return Expression("({0} < {1})", self, other)

    def __le__(self, other: Any) -> Expression[bool]:
        return Expression("({0} <= {1})", self, other)

    def __eq__(self, other: Any) -> Expression[bool]:  # type: ignore[override]
        return Expression("({0} = {1})", self, other)

    def __ne__(self, other: Any) -> Expression[bool]:  # type: ignore[override]
        return Expression("({0} <> {1})", self, other)

    def __gt__(self, other: Any) -> Expression[bool]:
        return Expression("({0} > {1})", self, other)

    def __ge__(self, other: Any) -> Expression[bool]:
        return Expression("({0} >= {1})", self, other)

    def __and__(self, other: Any) -> Expression[bool]:
        return Expression("({0} AND {1})", self, other)

    def __or__(self, other: Any) -> Expression[bool]:
        return Expression("({0} OR {1})", self, other)

    def __invert__(self) -> Expression[bool]:
        return Expression("(NOT {0})", self)

    def __rand__(self, other: Any) -> Expression[bool]:
        return Expression("({0} AND {1})", other, self)

    def __ror__(self, other: Any) -> Expression[bool]:
        return Expression("({0} OR {1})", other, self)

    def __add__(self, other: Any) -> Expression[Any]:
        return Expression("({0} + {1})" if not _is_text(self, other) else "({0} || {1})", self, other)

    def __sub__(self, other: Any) -> Expression[Any]:
        return Expression("({0} - {1})", self, other)

    def __mul__(self, other: Any) -> Expression[Any]:
        return Expression("({0} * {1})", self, other)

    def __truediv__(self, other: Any) -> Expression[Any]:
        return Expression("({0} / {1})", self, other)

    def __mod__(self, other: Any) -> Expression[Any]:
        return Expression("MOD({0}, {1})", self, other)

    def __pow__(self, other: Any) -> Expression[Any]:
        return Expression("POWER({0}, {1})", self, other)

    def __neg__(self) -> Expression[Any]:
        return Expression("(- {0})", self)

    def __pos__(self) -> Expression[Any]:
        return self

    def __radd__(self, other: Any) -> Expression[Any]:
        return _operand(other) + self

    def __rsub__(self, other: Any) -> Expression[Any]:
        return _operand(other) - self

    def __rmul__(self, other: Any) -> Expression[Any]:
        return _operand(other) * self

    def __rtruediv__(self, other: Any) -> Expression[Any]:
        return _operand(other) / self

    def __rmod__(self, other: Any) -> Expression[Any]:
        return _operand(other) % self

    def __rpow__(self, other: Any) -> Expression[Any]:
        return _operand(other) ** self

    def __getattr__(self, name: str) -> Expression[Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)

    def __getitem__(self, index: Any) -> Expression[Any]:
        return self.at(index) if not isinstance(index, str) else self.get(index)

    # --- names, types, order -----------------------------------------------------------------------------------------

    def alias(self, name: str, *extra_names: str) -> Expression[T]:
        """The same, as a column of this name; functions that give several columns take several names."""
        named = self._copy()
        named._aliases = (name, *extra_names)
        return named

    def _copy(self) -> Expression[T]:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def cast(self, data_type: DataType) -> Expression[Any]:
        """The value as another type; an error if that is not possible."""
        name = None if self._name is None else f"{self._name}-{_type_name(data_type)}"
        return Expression(f"CAST({{0}} AS {_braced(data_type)})", self, name=name)

    def try_cast(self, data_type: DataType) -> Expression[Any]:
        """The value as another type; NULL if that is not possible."""
        name = None if self._name is None else f"{self._name}-{_type_name(data_type)}"
        return Expression(f"TRY_CAST({{0}} AS {_braced(data_type)})", self, name=name)

    def as_argument(self, name: str) -> Expression[T]:
        """The same, as an argument of this name."""
        return Expression("{1} => {0}", self, Verbatim(quoted(name)))

    @property
    def asc(self) -> Expression[Any]:
        """For `order_by`: small values first, NULL last."""
        return Expression("{0} ASC NULLS LAST", self)

    @property
    def desc(self) -> Expression[Any]:
        """For `order_by`: NULL first, then great values."""
        return Expression("{0} DESC NULLS FIRST", self)

    # --- windows -----------------------------------------------------------------------------------------------------

    @property
    def start(self) -> Expression[Any]:
        """When a group window begins."""
        return WindowProperty(self, "START")

    @property
    def end(self) -> Expression[Any]:
        """When a group window ends."""
        return WindowProperty(self, "END")

    @property
    def rowtime(self) -> Expression[Any]:
        """The event time of a group window's results, for the next window."""
        return WindowProperty(self, "ROWTIME")

    @property
    def proctime(self) -> Expression[Any]:
        """The processing time of a group window's results, for the next window."""
        return WindowProperty(self, "PROCTIME")

    def over(self, alias: Any) -> Expression[T]:
        """An aggregate over the rows before this one, by the alias of an over window."""
        return _Over(self, alias)

    # --- conditions --------------------------------------------------------------------------------------------------

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression[bool]:
        """True if the value is one of these, or in a table of one column."""
        from penstock.table.table import Table

        if isinstance(first_element_or_table, Table):
            return Expression("({0} IN ({1}))", self, Verbatim(first_element_or_table._query))
        elements = (first_element_or_table, *remaining_elements)
        places = ", ".join(f"{{{position}}}" for position in range(1, len(elements) + 1))
        return Expression(f"({{0}} IN ({places}))", self, *elements)

    # --- aggregates --------------------------------------------------------------------------------------------------

    @property
    def distinct(self) -> Expression[T]:
        """Of an aggregate: each value counts once."""
        raise InvalidProgramError(f"{self}.distinct: only an aggregate, such as col('a').sum, can be distinct")

    def list_agg(self, separator: Any = None) -> Expression[str]:
        """All values as one text, with a separator in between; a comma if none is given."""
        return Aggregate("LISTAGG", self) if separator is None else Aggregate("LISTAGG", self, separator)

    def percentile(self, percentage: Any, frequency: Any = None) -> Expression[Any]:
        """The value below which this share of the values is, from 0 to 1."""
        more = () if frequency is None else (frequency,)
        return Aggregate("PERCENTILE", self, percentage, *more)

    # --- parts of values ---------------------------------------------------------------------------------------------

    def get(self, name_or_index: str | int) -> Expression[Any]:
        """A field of a row, by its name or position from 0."""
        return _Field(self, name_or_index)

    @property
    def flatten(self) -> Expression[Any]:
        """All fields of a row, as columns."""
        return Expression("{0}.*", self)

    def at(self, index: Any) -> Expression[Any]:
        """An item of an array, counted from 1, or the value of a map's key."""
        return Expression("{0}[{1}]", self, index)

    # --- time --------------------------------------------------------------------------------------------------------

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression[int]:
        """A part of a point in time, as a number."""
        return Expression(f"EXTRACT({time_interval_unit.name} FROM {{0}})", self)

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """The next smaller whole number; of a point in time, the begin of its unit."""
        return Expression(
            "FLOOR({0})" if time_interval_unit is None else f"FLOOR({{0}} TO {time_interval_unit.name})", self
        )

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[Any]:
        """The next greater whole number; of a point in time, the begin of the next unit."""
        return Expression(
            "CEIL({0})" if time_interval_unit is None else f"CEIL({{0}} TO {time_interval_unit.name})", self
        )

    # --- JSON --------------------------------------------------------------------------------------------------------

    def is_json(self, json_type: JsonType | None = None) -> Expression[bool]:
        """True if the text is JSON, of this kind if one is given."""
        kind = "" if json_type is None else f" {json_type.name}"
        return Expression(f"({{0}} IS JSON{kind})", self)

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression[bool]:
        """True if the JSON text has something at this path."""
        rule = "" if on_error is None else f" {on_error.name} ON ERROR"
        return Expression(f"JSON_EXISTS({{0}}, {{1}}{rule})", self, path)

    def json_value(
        self,
        path: str,
        returning_type: DataType = DataTypes.STRING(),  # noqa: B008  A type never changes.
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression[Any]:
        """The value at a path of a JSON text."""
        rules = ""
        for rule, place, when in ((on_empty, "{2}", "EMPTY"), (on_error, "{3}", "ERROR")):
            if rule is not JsonValueOnEmptyOrError.NULL:  # Which is what happens without a word.
                rules += f" {f'DEFAULT {place}' if rule is JsonValueOnEmptyOrError.DEFAULT else rule.name} ON {when}"
        returning = "" if returning_type == DataTypes.STRING() else f" RETURNING {_braced(returning_type)}"
        return Expression(f"JSON_VALUE({{0}}, {{1}}{returning}{rules})", self, path, default_on_empty, default_on_error)

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression[str]:
        """The part of a JSON text at a path, as JSON."""
        wrapper = {
            JsonQueryWrapper.WITHOUT_ARRAY: "WITHOUT ARRAY WRAPPER",
            JsonQueryWrapper.CONDITIONAL_ARRAY: "WITH CONDITIONAL ARRAY WRAPPER",
            JsonQueryWrapper.UNCONDITIONAL_ARRAY: "WITH UNCONDITIONAL ARRAY WRAPPER",
        }[wrapping_behavior]
        rules = ""
        for rule, when in ((on_empty, "EMPTY"), (on_error, "ERROR")):
            if rule is not JsonQueryOnEmptyOrError.NULL:
                rules += f" {rule.name.replace('_', ' ')} ON {when}"
        return Expression(f"JSON_QUERY({{0}}, {{1}} {wrapper}{rules})", self, path)

    # --- mathematics --------------------------------------------------------------------------------------------------

    @property
    def exp(self) -> Expression[Any]:
        """e to the power of the value."""
        return Expression("EXP({0})", self)

    @property
    def log10(self) -> Expression[Any]:
        """The logarithm to base 10."""
        return Expression("LOG10({0})", self)

    @property
    def log2(self) -> Expression[Any]:
        """The logarithm to base 2."""
        return Expression("LOG2({0})", self)

    @property
    def ln(self) -> Expression[Any]:
        """The natural logarithm."""
        return Expression("LN({0})", self)

    @property
    def cosh(self) -> Expression[Any]:
        """The hyperbolic cosine."""
        return Expression("COSH({0})", self)

    @property
    def sinh(self) -> Expression[Any]:
        """The hyperbolic sine."""
        return Expression("SINH({0})", self)

    @property
    def sin(self) -> Expression[Any]:
        """The sine."""
        return Expression("SIN({0})", self)

    @property
    def cos(self) -> Expression[Any]:
        """The cosine."""
        return Expression("COS({0})", self)

    @property
    def tan(self) -> Expression[Any]:
        """The tangent."""
        return Expression("TAN({0})", self)

    @property
    def cot(self) -> Expression[Any]:
        """The cotangent."""
        return Expression("COT({0})", self)

    @property
    def asin(self) -> Expression[Any]:
        """The arc sine."""
        return Expression("ASIN({0})", self)

    @property
    def acos(self) -> Expression[Any]:
        """The arc cosine."""
        return Expression("ACOS({0})", self)

    @property
    def atan(self) -> Expression[Any]:
        """The arc tangent."""
        return Expression("ATAN({0})", self)

    @property
    def tanh(self) -> Expression[Any]:
        """The hyperbolic tangent."""
        return Expression("TANH({0})", self)

    @property
    def degrees(self) -> Expression[Any]:
        """Radians as degrees."""
        return Expression("DEGREES({0})", self)

    @property
    def radians(self) -> Expression[Any]:
        """Degrees as radians."""
        return Expression("RADIANS({0})", self)

    @property
    def sqrt(self) -> Expression[Any]:
        """The square root."""
        return Expression("SQRT({0})", self)

    @property
    def abs(self) -> Expression[Any]:
        """The absolute value."""
        return Expression("ABS({0})", self)

    @property
    def sign(self) -> Expression[Any]:
        """1, 0 or -1, as the value is above, at or below zero."""
        return Expression("SIGN({0})", self)

    def round(self, places: Any) -> Expression[Any]:
        """The value with this number of places after the point."""
        return call_of("ROUND", self, places)

    def truncate(self, n: Any = 0) -> Expression[Any]:
        """The value without the places after the n-th."""
        return call_of("TRUNCATE", self, n)

    @property
    def bin(self) -> Expression[Any]:
        """The number in base 2, as a text."""
        return Expression("BIN({0})", self)

    @property
    def hex(self) -> Expression[Any]:
        """The number or text in base 16."""
        return Expression("HEX({0})", self)

    def unhex(self) -> Expression[Any]:
        """The bytes that a text in base 16 stands for."""
        return call_of("UNHEX", self)

    # --- conditions ---------------------------------------------------------------------------------------------------

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression[Any]:
        """True if the value is between both bounds or equal to one."""
        return Expression("({0} BETWEEN {1} AND {2})", self, lower_bound, upper_bound)

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression[Any]:
        """True if the value is outside of both bounds."""
        return Expression("({0} NOT BETWEEN {1} AND {2})", self, lower_bound, upper_bound)

    def then(self, if_true: Any, if_false: Any) -> Expression[Any]:
        """The first value if the condition is true, else the second one."""
        return Expression("(CASE WHEN {0} THEN {1} ELSE {2} END)", self, if_true, if_false)

    def if_null(self, null_replacement: Any) -> Expression[Any]:
        """The value, or the replacement if it is NULL."""
        return call_of("IFNULL", self, null_replacement)

    @property
    def is_null(self) -> Expression[Any]:
        """True if the value is NULL."""
        return Expression("({0} IS NULL)", self)

    @property
    def is_not_null(self) -> Expression[Any]:
        """True if the value is not NULL."""
        return Expression("({0} IS NOT NULL)", self)

    @property
    def is_true(self) -> Expression[Any]:
        """True if the condition is true; false for NULL."""
        return Expression("({0} IS TRUE)", self)

    @property
    def is_false(self) -> Expression[Any]:
        """True if the condition is false; false for NULL."""
        return Expression("({0} IS FALSE)", self)

    @property
    def is_not_true(self) -> Expression[Any]:
        """True if the condition is false or NULL."""
        return Expression("({0} IS NOT TRUE)", self)

    @property
    def is_not_false(self) -> Expression[Any]:
        """True if the condition is true or NULL."""
        return Expression("({0} IS NOT FALSE)", self)

    # --- aggregates ---------------------------------------------------------------------------------------------------

    @property
    def sum(self) -> Expression[Any]:
        """The sum of all values; NULL if there are none."""
        return Aggregate("SUM", self)

    @property
    def sum0(self) -> Expression[Any]:
        """The sum of all values; 0 if there are none."""
        return Expression("COALESCE(SUM({0}), 0)", self)

    @property
    def min(self) -> Expression[Any]:
        """The least value."""
        return Aggregate("MIN", self)

    @property
    def max(self) -> Expression[Any]:
        """The greatest value."""
        return Aggregate("MAX", self)

    @property
    def count(self) -> Expression[Any]:
        """The number of values that are not NULL."""
        return Aggregate("COUNT", self)

    @property
    def avg(self) -> Expression[Any]:
        """The mean."""
        return Aggregate("AVG", self)

    @property
    def first_value(self) -> Expression[Any]:
        """The first value."""
        return Aggregate("FIRST_VALUE", self)

    @property
    def last_value(self) -> Expression[Any]:
        """The last value."""
        return Aggregate("LAST_VALUE", self)

    @property
    def stddev_pop(self) -> Expression[Any]:
        """The standard deviation of all values."""
        return Aggregate("STDDEV_POP", self)

    @property
    def stddev_samp(self) -> Expression[Any]:
        """The standard deviation of a sample."""
        return Aggregate("STDDEV_SAMP", self)

    @property
    def var_pop(self) -> Expression[Any]:
        """The variance of all values."""
        return Aggregate("VAR_POP", self)

    @property
    def var_samp(self) -> Expression[Any]:
        """The variance of a sample."""
        return Aggregate("VAR_SAMP", self)

    @property
    def collect(self) -> Expression[Any]:
        """All values, as a multiset."""
        return Aggregate("COLLECT", self)

    @property
    def array_agg(self) -> Expression[Any]:
        """All values, as an array."""
        return Aggregate("ARRAY_AGG", self)

    # --- texts --------------------------------------------------------------------------------------------------------

    def concat(self, other: Any) -> Expression[Any]:
        """Both texts, one after the other."""
        return Expression("({0} || {1})", self, other)

    def starts_with(self, start_expr: Any) -> Expression[Any]:
        """True if the text begins so."""
        return call_of("STARTSWITH", self, start_expr)

    def ends_with(self, end_expr: Any) -> Expression[Any]:
        """True if the text ends so."""
        return call_of("ENDSWITH", self, end_expr)

    def substring(self, begin_index: Any, length: Any = None) -> Expression[Any]:
        """A part of the text; positions begin at 1."""
        return call_of("SUBSTRING", self, begin_index, length)

    def substr(self, begin_index: Any, length: Any = None) -> Expression[Any]:
        """A part of the text; positions begin at 1."""
        return call_of("SUBSTR", self, begin_index, length)

    def translate(self, from_str: Any, to_str: Any) -> Expression[Any]:
        """The text, with each character of `from_str` replaced by the one at its place in `to_str`."""
        return call_of("TRANSLATE", self, from_str, to_str)

    @property
    def char_length(self) -> Expression[Any]:
        """The number of characters."""
        return Expression("CHAR_LENGTH({0})", self)

    @property
    def upper_case(self) -> Expression[Any]:
        """The text in capitals."""
        return Expression("UPPER({0})", self)

    @property
    def lower_case(self) -> Expression[Any]:
        """The text in small letters."""
        return Expression("LOWER({0})", self)

    @property
    def init_cap(self) -> Expression[Any]:
        """The text with a capital at the begin of each word."""
        return Expression("INITCAP({0})", self)

    def similar(self, pattern: Any = None) -> Expression[Any]:
        """True if the text matches a pattern of SQL's SIMILAR TO."""
        return Expression("({0} SIMILAR TO {1})", self, pattern)

    def position(self, haystack: Any = None) -> Expression[Any]:
        """Where the text is in another one, from 1; 0 if it is not there."""
        return Expression("POSITION({0} IN {1})", self, haystack)

    def lpad(self, length: Any, pad: Any) -> Expression[Any]:
        """The text, filled at its begin to this length."""
        return call_of("LPAD", self, length, pad)

    def rpad(self, length: Any, pad: Any) -> Expression[Any]:
        """The text, filled at its end to this length."""
        return call_of("RPAD", self, length, pad)

    def regexp(self, regex: Any) -> Expression[Any]:
        """True if a part of the text matches the regular expression."""
        return call_of("REGEXP", self, regex)

    def regexp_count(self, regex: Any) -> Expression[Any]:
        """How many parts of the text match."""
        return call_of("REGEXP_COUNT", self, regex)

    def regexp_replace(self, regex: Any, replacement: Any) -> Expression[Any]:
        """The text, with all parts that match replaced."""
        return call_of("REGEXP_REPLACE", self, regex, replacement)

    def regexp_extract(self, regex: Any, extract_index: Any = None) -> Expression[Any]:
        """The group of the first match; 0 is the whole match."""
        return call_of("REGEXP_EXTRACT", self, regex, extract_index)

    def regexp_extract_all(self, regex: Any, extract_index: Any = None) -> Expression[Any]:
        """The groups of all matches."""
        return call_of("REGEXP_EXTRACT_ALL", self, regex, extract_index)

    def regexp_instr(self, regex: Any) -> Expression[Any]:
        """Where the first match begins, from 1; 0 if there is none."""
        return call_of("REGEXP_INSTR", self, regex)

    def regexp_substr(self, regex: Any) -> Expression[Any]:
        """The first match."""
        return call_of("REGEXP_SUBSTR", self, regex)

    @property
    def from_base64(self) -> Expression[Any]:
        """The text that a base64 text stands for."""
        return Expression("FROM_BASE64({0})", self)

    @property
    def to_base64(self) -> Expression[Any]:
        """The text in base64."""
        return Expression("TO_BASE64({0})", self)

    @property
    def ascii(self) -> Expression[Any]:
        """The number of the first character."""
        return Expression("ASCII({0})", self)

    @property
    def chr(self) -> Expression[Any]:
        """The character with this number."""
        return Expression("CHR({0})", self)

    def decode(self, charset: Any) -> Expression[Any]:
        """The text of bytes in a character set."""
        return call_of("DECODE", self, charset)

    def encode(self, charset: Any) -> Expression[Any]:
        """The bytes of a text in a character set."""
        return call_of("ENCODE", self, charset)

    def left(self, length: Any) -> Expression[Any]:
        """The first characters."""
        return call_of("LEFT", self, length)

    def right(self, length: Any) -> Expression[Any]:
        """The last characters."""
        return call_of("RIGHT", self, length)

    def instr(self, s: Any) -> Expression[Any]:
        """Where the other text is in this one, from 1; 0 if it is not there."""
        return call_of("INSTR", self, s)

    def url_decode(self) -> Expression[Any]:
        """The text that a part of a URL stands for."""
        return call_of("URL_DECODE", self)

    def url_encode(self) -> Expression[Any]:
        """The text, as a part of a URL."""
        return call_of("URL_ENCODE", self)

    def inet_aton(self) -> Expression[Any]:
        """The number of an IPv4 address."""
        return call_of("INET_ATON", self)

    def inet_ntoa(self) -> Expression[Any]:
        """The IPv4 address with this number."""
        return call_of("INET_NTOA", self)

    def parse_url(self, part_to_extract: Any, key: Any = None) -> Expression[Any]:
        """A part of a URL, such as HOST; for QUERY, of one key."""
        return call_of("PARSE_URL", self, part_to_extract, key)

    def printf(self, *obj: Any) -> Expression[Any]:
        """The text as a pattern, filled with values."""
        return call_of("PRINTF", self, *obj)

    def ltrim(self, trim_str: Any = None) -> Expression[Any]:
        """The text without blanks, or these characters, at its begin."""
        return call_of("LTRIM", self, trim_str)

    def rtrim(self, trim_str: Any = None) -> Expression[Any]:
        """The text without blanks, or these characters, at its end."""
        return call_of("RTRIM", self, trim_str)

    def btrim(self, trim_str: Any = None) -> Expression[Any]:
        """The text without blanks, or these characters, at both ends."""
        return call_of("BTRIM", self, trim_str)

    def repeat(self, n: Any) -> Expression[Any]:
        """The text, n times."""
        return call_of("REPEAT", self, n)

    @property
    def reverse(self) -> Expression[Any]:
        """The text from its end to its begin."""
        return Expression("REVERSE({0})", self)

    def split_index(self, separator: Any, index: Any) -> Expression[Any]:
        """The part between separators with this number, from 0."""
        return call_of("SPLIT_INDEX", self, separator, index)

    def str_to_map(self, list_delimiter: Any = None, key_value_delimiter: Any = None) -> Expression[Any]:
        """The map that a text such as `a=1,b=2` stands for."""
        return call_of("STR_TO_MAP", self, list_delimiter, key_value_delimiter)

    def elt(self, expr: Any, *exprs: Any) -> Expression[Any]:
        """The text at this position, from 1."""
        return call_of("ELT", self, expr, *exprs)

    def split(self, delimiter: Any) -> Expression[Any]:
        """The parts between delimiters, as an array."""
        return call_of("SPLIT", self, delimiter)

    # --- points in time -----------------------------------------------------------------------------------------------

    @property
    def to_date(self) -> Expression[Any]:
        """The date that a text stands for."""
        return Expression("CAST({0} AS DATE)", self)

    @property
    def to_time(self) -> Expression[Any]:
        """The time of day that a text stands for."""
        return Expression("CAST({0} AS TIME)", self)

    @property
    def to_timestamp(self) -> Expression[Any]:
        """The point in time that a text stands for."""
        return Expression("CAST({0} AS TIMESTAMP(3))", self)

    # --- arrays and maps ----------------------------------------------------------------------------------------------

    @property
    def cardinality(self) -> Expression[Any]:
        """The number of items or entries."""
        return Expression("CARDINALITY({0})", self)

    @property
    def element(self) -> Expression[Any]:
        """The only item of an array; NULL if it is empty."""
        return Expression("ELEMENT({0})", self)

    def array_append(self, addition: Any) -> Expression[Any]:
        """The array, with an item at its end."""
        return call_of("ARRAY_APPEND", self, addition)

    def array_contains(self, needle: Any) -> Expression[Any]:
        """True if the array has this item."""
        return call_of("ARRAY_CONTAINS", self, needle)

    def array_distinct(self) -> Expression[Any]:
        """The array, with each item once."""
        return call_of("ARRAY_DISTINCT", self)

    def array_position(self, needle: Any) -> Expression[Any]:
        """Where the item is first, from 1; 0 if it is not there."""
        return call_of("ARRAY_POSITION", self, needle)

    def array_prepend(self, addition: Any) -> Expression[Any]:
        """The array, with an item at its begin."""
        return call_of("ARRAY_PREPEND", self, addition)

    def array_remove(self, needle: Any) -> Expression[Any]:
        """The array without this item."""
        return call_of("ARRAY_REMOVE", self, needle)

    def array_reverse(self) -> Expression[Any]:
        """The array from its end to its begin."""
        return call_of("ARRAY_REVERSE", self)

    def array_slice(self, start_offset: Any, end_offset: Any = None) -> Expression[Any]:
        """A part of the array; positions begin at 1."""
        return call_of("ARRAY_SLICE", self, start_offset, end_offset)

    def array_sort(self, ascending_order: Any = None, null_first: Any = None) -> Expression[Any]:
        """The array in order."""
        return call_of("ARRAY_SORT", self, ascending_order, null_first)

    def array_union(self, array: Any) -> Expression[Any]:
        """The items of either array, each once."""
        return call_of("ARRAY_UNION", self, array)

    def array_concat(self, *arrays: Any) -> Expression[Any]:
        """The arrays, one after the other."""
        return call_of("ARRAY_CONCAT", self, *arrays)

    def array_max(self) -> Expression[Any]:
        """The greatest item."""
        return call_of("ARRAY_MAX", self)

    def array_join(self, delimiter: Any, null_replacement: Any = None) -> Expression[Any]:
        """The items as one text, with a delimiter in between."""
        return call_of("ARRAY_JOIN", self, delimiter, null_replacement)

    def array_min(self) -> Expression[Any]:
        """The least item."""
        return call_of("ARRAY_MIN", self)

    def array_except(self, array: Any) -> Expression[Any]:
        """The items that the other array does not have."""
        return call_of("ARRAY_EXCEPT", self, array)

    def array_intersect(self, array: Any) -> Expression[Any]:
        """The items that both arrays have."""
        return call_of("ARRAY_INTERSECT", self, array)

    @property
    def map_keys(self) -> Expression[Any]:
        """The keys."""
        return Expression("MAP_KEYS({0})", self)

    def map_union(self, *maps: Any) -> Expression[Any]:
        """The entries of all maps."""
        return call_of("MAP_UNION", self, *maps)

    @property
    def map_values(self) -> Expression[Any]:
        """The values."""
        return Expression("MAP_VALUES({0})", self)

    @property
    def map_entries(self) -> Expression[Any]:
        """The entries, as rows."""
        return Expression("MAP_ENTRIES({0})", self)

    # --- hashes and JSON ----------------------------------------------------------------------------------------------

    @property
    def md5(self) -> Expression[Any]:
        """The MD5 hash, in base 16."""
        return Expression("MD5({0})", self)

    @property
    def sha1(self) -> Expression[Any]:
        """The SHA-1 hash, in base 16."""
        return Expression("SHA1({0})", self)

    @property
    def sha224(self) -> Expression[Any]:
        """The SHA-224 hash, in base 16."""
        return Expression("SHA224({0})", self)

    @property
    def sha256(self) -> Expression[Any]:
        """The SHA-256 hash, in base 16."""
        return Expression("SHA256({0})", self)

    @property
    def sha384(self) -> Expression[Any]:
        """The SHA-384 hash, in base 16."""
        return Expression("SHA384({0})", self)

    @property
    def sha512(self) -> Expression[Any]:
        """The SHA-512 hash, in base 16."""
        return Expression("SHA512({0})", self)

    def sha2(self, hash_length: Any) -> Expression[Any]:
        """The SHA-2 hash of this many bits, in base 16."""
        return call_of("SHA2", self, hash_length)

    @property
    def json_quote(self) -> Expression[Any]:
        """The text as a JSON string."""
        return Expression("JSON_QUOTE({0})", self)

    @property
    def json_unquote(self) -> Expression[Any]:
        """The text of a JSON string."""
        return Expression("JSON_UNQUOTE({0})", self)

    # --- texts with optional parts ------------------------------------------------------------------------------------

    def log(self, base: Any = None) -> Expression[float]:
        """The logarithm to this base; the natural one if none is given."""
        return Expression("LN({0})", self) if base is None else Expression("LOG({1}, {0})", self, base)

    def trim_leading(self, character: Any = None) -> Expression[str]:
        """The text without blanks, or this character, at its begin."""
        return Expression("TRIM(LEADING {1} FROM {0})", self, " " if character is None else character)

    def trim_trailing(self, character: Any = None) -> Expression[str]:
        """The text without blanks, or this character, at its end."""
        return Expression("TRIM(TRAILING {1} FROM {0})", self, " " if character is None else character)

    def trim(self, character: Any = None) -> Expression[str]:
        """The text without blanks, or this character, at both ends."""
        return Expression("TRIM(BOTH {1} FROM {0})", self, " " if character is None else character)

    def replace(self, search: Any = None, replacement: Any = None) -> Expression[str]:
        """The text, with another text in the place of each `search`."""
        return Expression("REPLACE({0}, {1}, {2})", self, search, replacement)

    def like(self, pattern: Any = None, escape: Any = None) -> Expression[bool]:
        """True if the text matches: `_` is any character, `%` any text."""
        if escape is None:
            return Expression("({0} LIKE {1})", self, pattern)
        return Expression("({0} LIKE {1} ESCAPE {2})", self, pattern, escape)

    def overlay(self, new_string: Any, starting: Any, length: Any = None) -> Expression[str]:
        """The text, with another one written over it from a position on, counted from 1."""
        if length is None:
            return Expression("OVERLAY({0} PLACING {1} FROM {2})", self, new_string, starting)
        return Expression("OVERLAY({0} PLACING {1} FROM {2} FOR {3})", self, new_string, starting, length)

    def locate(self, s: Any, pos: Any = None) -> Expression[int]:
        """Where this text is in another one, from a position on, counted from 1; 0 if it is not there."""
        return call_of("LOCATE", self, s, pos)

    def object_update(self, *kv: Any) -> Expression[Any]:
        """The structured value, with other values for some of its attributes."""
        return call_of("OBJECT_UPDATE", self, *kv)

    # --- intervals ---------------------------------------------------------------------------------------------------

    @property
    def year(self) -> Expression[Any]:
        """An interval of this many years."""
        return _Interval(self, "YEAR", 1)

    @property
    def years(self) -> Expression[Any]:
        """An interval of this many years."""
        return _Interval(self, "YEAR", 1)

    @property
    def quarter(self) -> Expression[Any]:
        """An interval of this many quarters."""
        return _Interval(self, "MONTH", 3)

    @property
    def quarters(self) -> Expression[Any]:
        """An interval of this many quarters."""
        return _Interval(self, "MONTH", 3)

    @property
    def month(self) -> Expression[Any]:
        """An interval of this many months."""
        return _Interval(self, "MONTH", 1)

    @property
    def months(self) -> Expression[Any]:
        """An interval of this many months."""
        return _Interval(self, "MONTH", 1)

    @property
    def week(self) -> Expression[Any]:
        """An interval of this many weeks."""
        return _Interval(self, "DAY", 7)

    @property
    def weeks(self) -> Expression[Any]:
        """An interval of this many weeks."""
        return _Interval(self, "DAY", 7)

    @property
    def day(self) -> Expression[Any]:
        """An interval of this many days."""
        return _Interval(self, "DAY", 1)

    @property
    def days(self) -> Expression[Any]:
        """An interval of this many days."""
        return _Interval(self, "DAY", 1)

    @property
    def hour(self) -> Expression[Any]:
        """An interval of this many hours."""
        return _Interval(self, "HOUR", 1)

    @property
    def hours(self) -> Expression[Any]:
        """An interval of this many hours."""
        return _Interval(self, "HOUR", 1)

    @property
    def minute(self) -> Expression[Any]:
        """An interval of this many minutes."""
        return _Interval(self, "MINUTE", 1)

    @property
    def minutes(self) -> Expression[Any]:
        """An interval of this many minutes."""
        return _Interval(self, "MINUTE", 1)

    @property
    def second(self) -> Expression[Any]:
        """An interval of this many seconds."""
        return _Interval(self, "SECOND", 1)

    @property
    def seconds(self) -> Expression[Any]:
        """An interval of this many seconds."""
        return _Interval(self, "SECOND", 1)

    @property
    def milli(self) -> Expression[Any]:
        """An interval of this many milliseconds."""
        return _Interval(self, "MILLISECOND", 1)

    @property
    def millis(self) -> Expression[Any]:
        """An interval of this many milliseconds."""
        return _Interval(self, "MILLISECOND", 1)


class Verbatim(Expression[Any]):
    """A text that is SQL already."""

    def __init__(self, sql: str) -> None:
        super().__init__("")
        self._sql = sql

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        return self._sql


class Column(Expression[Any]):
    """A column by its name, or the alias of a window."""

    def __init__(self, name: str) -> None:
        super().__init__("", name=name)
        self.column = name

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        return "*" if self.column == "*" else quoted(self.column)


class Literal(Expression[Any]):
    """A value that is the same for all rows."""

    def __init__(self, value: Any, data_type: DataType | None = None) -> None:
        super().__init__("")
        self.value = value
        self._type = data_type

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        text = literal_text(self.value)
        return text if self._type is None else f"CAST({text} AS {self._type.as_sql()})"


class Aggregate(Expression[Any]):
    """An aggregate function of the values of a group."""

    def __init__(self, function: str, *arguments: Any) -> None:
        super().__init__("", *arguments)
        self._function = function
        self._is_distinct = False

    @property
    def distinct(self) -> Expression[Any]:
        """The same, where each value counts once."""
        distinct = self._copy()
        assert isinstance(distinct, Aggregate)
        distinct._is_distinct = True
        return distinct

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        arguments = ", ".join(argument.as_sql(context) for argument in self._arguments)
        return f"{self._function}({'DISTINCT ' if self._is_distinct else ''}{arguments})"


class FunctionCall(Expression[Any]):
    """A call of a user's function, by the name that the table gives it."""

    def __init__(self, function: UserDefinedFunctionWrapper, *arguments: Any) -> None:
        super().__init__("", *arguments)
        self.function = function
        self._is_distinct = False

    @property
    def distinct(self) -> Expression[Any]:
        """The same, where each value counts once."""
        distinct = self._copy()
        assert isinstance(distinct, FunctionCall)
        distinct._is_distinct = True
        return distinct

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        arguments = ", ".join(argument.as_sql(context) for argument in self._arguments)
        return f"{context.function(self.function)}({'DISTINCT ' if self._is_distinct else ''}{arguments})"


class _Field(Expression[Any]):
    """A field of a row. The table knows the name of a field by its position."""

    def __init__(self, row: Expression[Any], field: str | int) -> None:
        key = field if isinstance(field, str) else f"_{field}"
        super().__init__("", row, name=None if row.own_name is None else f"{row.own_name}${key}")
        self._field = field

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        row = self._arguments[0].as_sql(context)
        name = self._field if isinstance(self._field, str) else context.field(row, self._field)
        return f"{row}.{quoted(name)}"


class WindowProperty(Expression[Any]):
    def __init__(self, window: Expression[Any], what: str) -> None:
        super().__init__("", window)
        self.what = what
        self.window = window

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        if not isinstance(self.window, Column):
            raise InvalidProgramError(f"{self.what.lower()} is a property of a window, by its alias: col('w')")
        return context.window_property(self.window.column, self.what)


class _Over(Expression[Any]):
    def __init__(self, aggregate: Expression[Any], window: Any) -> None:
        super().__init__("", aggregate)
        self._window = window.column if isinstance(window, Column) else str(window)

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        return f"{self._arguments[0].as_sql(context)} OVER ({context.over(self._window)})"


class _Interval(Expression[Any]):
    """An interval: a literal one if its length is a literal, as windows need it."""

    def __init__(self, length: Expression[Any], unit: str, factor: int) -> None:
        super().__init__("", length)
        self._unit, self._factor = unit, factor

    def as_sql(self, context: SqlContext = NO_CONTEXT) -> str:
        length = self._arguments[0]
        if not isinstance(length, Literal):
            return f"({length.as_sql(context)} * {interval_text(self._factor, self._unit)})"
        return interval_text(length.value * self._factor, self._unit)


class RowInterval(Expression[Any]):
    """A number of rows, for windows."""

    def __init__(self, rows: int) -> None:
        super().__init__("")
        self.rows = rows


def interval_text(length: int, unit: str) -> str:
    """An interval as SQL writes it, with as many digits as it has."""
    sign, length = ("-", -length) if length < 0 else ("", length)
    if unit == "MILLISECOND":
        seconds = f"{length // 1000}.{length % 1000:03}"
        return f"INTERVAL {sign}'{seconds}' SECOND({max(2, len(str(length // 1000)))}, 3)"
    return f"INTERVAL {sign}'{length}' {unit}({max(2, len(str(length)))})"


def literal_text(value: Any) -> str:
    """A Python value as SQL writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return _text_of_float(value)
        case decimal.Decimal():
            return f"{value:f}"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case datetime.time():
            return f"TIME '{value.isoformat()}'"
        case datetime.timedelta():
            return interval_text(value // datetime.timedelta(milliseconds=1), "MILLISECOND")
        case Row():
            return f"ROW({', '.join(map(literal_text, value))})"
        case Mapping():
            entries = [literal_text(part) for entry in value.items() for part in entry]
            return f"MAP[{', '.join(entries)}]"
        case list() | tuple():
            return f"ARRAY[{', '.join(map(literal_text, value))}]"
    raise TypeError(f"lit(...) takes numbers, texts, dates, lists, dicts and rows, got {value!r}")


def _text_of_float(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return f"CAST('{'NaN' if value != value else 'Infinity' if value > 0 else '-Infinity'}' AS DOUBLE)"
    text = repr(value)
    return f"{text}E0" if "e" not in text else text.replace("e", "E")


def _operand(value: Any) -> Expression[Any]:
    return value if isinstance(value, Expression) else Literal(value)


def call_of(function: str, *arguments: Any) -> Expression[Any]:
    """A call of a function of SQL; arguments at the end that are None are left out."""
    given = list(arguments)
    while given and given[-1] is None:
        given.pop()
    places = ", ".join(f"{{{position}}}" for position in range(len(given)))
    return Expression(f"{function}({places})", *given)


def _is_text(*operands: Any) -> bool:
    """True if one of them is a text: then + is concatenation."""
    return any(isinstance(each.value if isinstance(each, Literal) else each, str) for each in operands)


def _braced(data_type: DataType) -> str:
    return data_type.as_sql().replace("{", "{{").replace("}", "}}")


def _type_name(data_type: DataType) -> str:
    return data_type.as_sql().replace("VARCHAR(2147483647)", "STRING").replace("VARBINARY(2147483647)", "BYTES")
