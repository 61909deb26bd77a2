"""Expressions over the columns of a DataFrame, as values, and the Spark SQL they are written as.

An expression that stands for a Python one keeps a single promise, on which all of lowering rests: **for every row it
is either null, or exactly what Python would have computed**. Null means "let Python do it": the row goes to the Python
function as it is. So a missing value, an overflow, a NaN in a comparison and a division by zero need no special care:
Python decides, or raises, as always. Every template below is built from functions of Spark SQL that return null
wherever an operand is null, and that do not raise, whatever `spark.sql.ansi.enabled` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "float", "string", "boolean", "none", "other"]
"""What a value is in Python; `other` stands for all that can only be passed on."""

LARGEST_LONG = 2**63 - 1
LARGEST_EXACT = 2**53
"""Up to here every whole number is a double."""

KIND_OF_TYPE: dict[str, Kind] = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "string": "string",
    "boolean": "boolean",
}
# A session may have another collation for text than that of bytes.
_TEXT = "STRING COLLATE UTF8_BINARY"
_SQL_TYPES: dict[str, str] = {"int": "BIGINT", "float": "DOUBLE", "string": _TEXT, "boolean": "BOOLEAN"}


class NotLowerable(Exception):
    """Says why a function must run in Python. Never reaches the user."""


@dataclass(frozen=True)
class Column:
    """A column, by its place. Null is Python's None, and may be."""

    index: int
    spark_type: str
    kind: Kind
    is_nullable: bool = True

    @property
    def size(self) -> int:
        return 1

    def sql(self) -> str:
        return f"c{self.index}"

    def sql_as_kind(self) -> str:
        """In the type that all expressions of its kind have."""
        return self.sql() if self.kind == "other" else f"CAST({self.sql()} AS {_SQL_TYPES[self.kind]})"


@dataclass(frozen=True)
class Constant:
    """A value in the program. Two are equal only if no operation can distinguish them: 1, 1.0 and True are three."""

    value: bool | int | float | str | None
    text: str

    @property
    def kind(self) -> Kind:
        return kind_of(self.value)

    @property
    def size(self) -> int:
        return 1

    def sql(self) -> str:
        match self.value:
            case None:
                return "NULL"
            case bool():
                return "TRUE" if self.value else "FALSE"
            case int():
                return f"CAST('{self.value}' AS BIGINT)"
            case float():
                return f"CAST('{self.value!r}' AS DOUBLE)"
        # As bytes: how text literals are read depends on the session's settings.
        return f"CAST(X'{self.value.encode().hex()}' AS {_TEXT})"


@dataclass(frozen=True)
class Call:
    """An operation of `TEMPLATES` on expressions."""

    operation: str
    arguments: tuple[Expression, ...]
    size: int
    """How many operations its text has; a template may have an argument twice."""

    @property
    def kind(self) -> Kind:
        return TEMPLATES[self.operation][1]

    def parts(self) -> Iterator[Call]:
        """This call and all operations in it that are null only if this call is."""
        yield self
        if self.operation not in NEVER_NULL:
            for each in self.arguments:
                if isinstance(each, Call):
                    yield from each.parts()

    def sql(self) -> str:
        arguments = [each.sql_as_kind() if isinstance(each, Column) else each.sql() for each in self.arguments]
        return TEMPLATES[self.operation][0].format(*arguments)


Expression = Column | Constant | Call

MOST_NODES = 400
"""A larger expression stays in Python: its text would keep Spark busy longer than its rows."""


def kind_of(value: object) -> Kind:
    kinds: dict[type, Kind] = {bool: "boolean", int: "int", float: "float", str: "string", type(None): "none"}
    if type(value) not in kinds:
        raise NotLowerable(f"a {type(value).__name__} in an expression")
    return kinds[type(value)]


def constant(value: object) -> Constant:
    """A constant that Spark can hold as it is."""
    kind = kind_of(value)
    if kind == "int" and not -LARGEST_LONG - 1 <= value <= LARGEST_LONG:  # type: ignore[operator]
        raise NotLowerable(f"{value} is not a 64-bit number")
    if kind == "float" and not math.isfinite(value):  # type: ignore[arg-type]
        raise NotLowerable(f"{value} is not a finite number")
    if kind == "string":
        try:
            value.encode()  # type: ignore[attr-defined]
        except UnicodeEncodeError:
            raise NotLowerable("a string that is not UTF-8") from None
    return Constant(value, repr(value))  # type: ignore[arg-type]


def call(operation: str, *arguments: Expression) -> Call:
    template = TEMPLATES[operation][0]
    size = 1 + sum(each.size * template.count(f"{{{at}}}") for at, each in enumerate(arguments))
    if size > MOST_NODES:
        raise NotLowerable("the expression gets too large")
    return Call(operation, arguments, size)


_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "=", "ne": "<>"}

TEMPLATES: dict[str, tuple[str, Kind]] = {
    # Whole numbers are BIGINT. try_...: null where 64 bits are not enough.
    "int_add": ("try_add({0}, {1})", "int"),
    "int_sub": ("try_subtract({0}, {1})", "int"),
    "int_mul": ("try_multiply({0}, {1})", "int"),
    # Python rounds down, Spark towards zero. The divisor is a positive constant.
    "int_floordiv": ("(({0} div {1}) - CASE WHEN {0} % {1} < 0 THEN 1L ELSE 0L END)", "int"),
    "int_mod": ("pmod({0}, {1})", "int"),
    "int_text": (f"CAST({{0}} AS {_TEXT})", "string"),
    "int_truth": ("({0} <> 0L)", "boolean"),
    # In arithmetic Python rounds a whole number to the nearest float, as this cast does ...
    "int_rounded": ("CAST({0} AS DOUBLE)", "float"),
    # ... but compares and divides whole numbers exactly.
    "int_exactly": (
        f"CASE WHEN {{0}} BETWEEN -{LARGEST_EXACT}L AND {LARGEST_EXACT}L THEN CAST({{0}} AS DOUBLE) END",
        "float",
    ),
    # Floats are DOUBLE, the same IEEE numbers on both sides; only a NaN compares differently.
    "float_add": ("({0} + {1})", "float"),
    "float_sub": ("({0} - {1})", "float"),
    "float_mul": ("({0} * {1})", "float"),
    "float_div": ("try_divide({0}, {1})", "float"),
    "float_neg": ("(- {0})", "float"),
    "float_truth": ("CASE WHEN NOT isnan({0}) THEN {0} <> 0D END", "boolean"),
    # Text is UTF-8, whose bytes have the order of the characters' numbers.
    "string_add": ("concat({0}, {1})", "string"),
    "string_len": ("CAST(char_length({0}) AS BIGINT)", "int"),
    "string_startswith": ("startswith({0}, {1})", "boolean"),
    "string_endswith": ("endswith({0}, {1})", "boolean"),
    "string_contains": ("contains({0}, {1})", "boolean"),
    "string_truth": ("(char_length({0}) > 0)", "boolean"),
    "boolean_eq": ("({0} = {1})", "boolean"),
    "boolean_ne": ("({0} <> {1})", "boolean"),
    "boolean_truth": ("{0}", "boolean"),
    # About None itself: never null.
    "is_none": ("({0} IS NULL)", "boolean"),
    "or_false": ("coalesce({0}, FALSE)", "boolean"),
    "or_true": ("coalesce({0}, TRUE)", "boolean"),
}
NEVER_NULL = frozenset(["is_none", "or_false", "or_true"])
for _name, _sign in _COMPARISONS.items():
    TEMPLATES[f"int_{_name}"] = TEMPLATES[f"string_{_name}"] = (f"({{0}} {_sign} {{1}})", "boolean")
    TEMPLATES[f"float_{_name}"] = (
        f"CASE WHEN NOT isnan({{0}}) AND NOT isnan({{1}}) THEN {{0}} {_sign} {{1}} END",
        "boolean",
    )


def sql_type(kind: Kind) -> str:
    return _SQL_TYPES[kind]
