"""Aggregate functions as plans call them, with retraction and merging.

An accumulator is a list of plain values, so it can be kept in state as it is. Functions that need all their values to
take one back (MIN and MAX with retraction, LISTAGG, ...) keep them in a dict of counts or in a list.

The functions of a node are compiled together: `AggregateHandler` has one function that adds a row to all accumulators.
The common aggregates write their own lines of it (`accumulate_lines`, ...), the others are called there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.codegen.compiler import ExpressionContext, compiled
from penstock.table.codegen.rex import function_name
from penstock.table.logical_types import from_external, parse_type, to_external
from penstock.table.types import DataType, RowType
from penstock.table.values.numbers import EXACT, decimal_of_type, divide_decimals, divide_int, to_float32, wrap

Accumulator = list[Any]


class Constants:
    """What generated code refers to by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}

    def name(self, value: Any) -> str:
        for name, known in self.by_name.items():
            if known is value:
                return name
        name = f"c{len(self.by_name)}"
        self.by_name[name] = value
        return name


@dataclass(frozen=True)
class Aggregate:
    """One aggregate function. Rows with NULL as its first argument do not reach it."""

    type: DataType
    skips_nulls = True

    def create(self) -> Accumulator:
        raise NotImplementedError

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        raise NotImplementedError

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        raise NotImplementedError

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        raise NotImplementedError

    def value(self, acc: Accumulator) -> Any:
        return acc[0]

    # The same as source. `acc` and `values` are names of variables.

    def accumulate_lines(self, acc: str, values: Sequence[str], constants: Constants) -> list[str]:
        return [f"{constants.name(self)}.accumulate({acc}, {_tuple(values)})"]

    def retract_lines(self, acc: str, values: Sequence[str], constants: Constants) -> list[str]:
        return [f"{constants.name(self)}.retract({acc}, {_tuple(values)})"]

    def value_text(self, acc: str, constants: Constants) -> str:
        return f"{constants.name(self)}.value({acc})"


def _tuple(names: Sequence[str]) -> str:
    return "(" + "".join(name + ", " for name in names) + ")"


class Count(Aggregate):
    """COUNT(x), and COUNT(*) without arguments: [count]."""

    def create(self) -> Accumulator:
        return [0]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        acc[0] += 1

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        acc[0] -= 1

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        acc[0] += other[0]

    def accumulate_lines(self, acc: str, values: Sequence[str], constants: Constants) -> list[str]:
        return [f"{acc}[0] += 1"]

    def retract_lines(self, acc: str, values: Sequence[str], constants: Constants) -> list[str]:
        return [f"{acc}[0] -= 1"]

    def value_text(self, acc: str, constants: Constants) -> str:
        return f"{acc}[0]"


class Sum(Aggregate):
    """SUM: [sum, count]; NULL without values. A DECIMAL with too many digits is NULL."""

    empty: Any = None

    def create(self) -> Accumulator:
        return [0.0 if isinstance(self.type, (t.FloatType, t.DoubleType)) else 0, 0]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        acc[0] = self._plus(acc[0], values[0])
        acc[1] += 1

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        value = values[0]
        acc[0] = self._plus(acc[0], value.copy_negate() if isinstance(self.type, t.DecimalType) else -value)
        acc[1] -= 1

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        acc[0] = self._plus(acc[0], other[0])
        acc[1] += other[1]

    def _plus(self, left: Any, right: Any) -> Any:
        match self.type:
            case t.IntegralType(bits=bits):
                return wrap(left + right, bits)
            case t.DecimalType():
                return EXACT.add(left, right)
            case t.FloatType():
                return to_float32(left + right)
        return left + right

    def accumulate_lines(self, acc: str, values: Sequence[str], constants: Constants) -> list[str]:
        return [*self._plus_lines(acc, "+", values[0], constants), f"{acc}[1] += 1"]

    def retract_lines(self, acc: str, values: Sequence[str], constants: Constants) -> list[str]:
        return [*self._plus_lines(acc, "-", values[0], constants), f"{acc}[1] -= 1"]

    def _plus_lines(self, acc: str, sign: str, value: str, constants: Constants) -> list[str]:
        match self.type:
            case t.IntegralType(bits=bits):
                most = 2 ** (bits - 1)
                return [
                    f"total = {acc}[0] {sign} {value}",
                    f"{acc}[0] = total if {-most} <= total < {most} else {constants.name(wrap)}(total, {bits})",
                ]
            case t.DecimalType():
                added = value if sign == "+" else f"{value}.copy_negate()"
                return [f"{acc}[0] = {constants.name(EXACT)}.add({acc}[0], {added})"]
            case t.FloatType():
                return [f"{acc}[0] = {constants.name(to_float32)}({acc}[0] {sign} {value})"]
        return [f"{acc}[0] {sign}= {value}"]

    def value_text(self, acc: str, constants: Constants) -> str:
        if isinstance(self.type, t.DecimalType):
            return super().value_text(acc, constants)
        return f"({acc}[0] if {acc}[1] else None)"

    def value(self, acc: Accumulator) -> Any:
        if acc[1] == 0:
            return self._typed(self.empty)
        return self._typed(acc[0])

    def _typed(self, number: Any) -> Any:
        if number is not None and isinstance(self.type, t.DecimalType):
            return decimal_of_type(EXACT.create_decimal(number), self.type.precision, self.type.scale)
        return number


class Sum0(Sum):
    """$SUM0: zero without values."""

    empty = 0

    def value(self, acc: Accumulator) -> Any:
        return self._typed(acc[0])

    def value_text(self, acc: str, constants: Constants) -> str:
        return super().value_text(acc, constants) if isinstance(self.type, t.DecimalType) else f"{acc}[0]"


class Avg(Sum):
    """AVG: of whole numbers it is one, rounded towards zero."""

    def _plus(self, left: Any, right: Any) -> Any:
        return EXACT.add(left, right) if isinstance(self.type, t.DecimalType) else left + right

    def _plus_lines(self, acc: str, sign: str, value: str, constants: Constants) -> list[str]:
        if isinstance(self.type, t.DecimalType):
            return super()._plus_lines(acc, sign, value, constants)
        return [f"{acc}[0] {sign}= {value}"]

    def value_text(self, acc: str, constants: Constants) -> str:
        match self.type:
            case t.IntegralType():
                return f"({constants.name(divide_int)}({acc}[0], {acc}[1]) if {acc}[1] else None)"
            case t.DoubleType():
                return f"({acc}[0] / {acc}[1] if {acc}[1] else None)"
        return f"{constants.name(self)}.value({acc})"

    def value(self, acc: Accumulator) -> Any:
        if acc[1] == 0:
            return None
        match self.type:
            case t.IntegralType():
                return divide_int(acc[0], acc[1])
            case t.DecimalType(precision=precision, scale=scale):
                total, count = EXACT.create_decimal(acc[0]), EXACT.create_decimal(acc[1])
                return divide_decimals(total, count, precision, scale)
            case t.FloatType():
                return to_float32(acc[0] / acc[1])
        return acc[0] / acc[1]


class Extreme(Aggregate):
    """MIN and MAX of rows that are never taken back: [value]."""

    is_max = False

    def create(self) -> Accumulator:
        return [None]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        value, known = values[0], acc[0]
        if known is None or (value > known if self.is_max else value < known):
            acc[0] = value

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        if other[0] is not None:
            self.accumulate(acc, other)

    def accumulate_lines(self, acc: str, values: Sequence[str], constants: Constants) -> list[str]:
        sign = ">" if self.is_max else "<"
        return [f"known = {acc}[0]", f"if known is None or {values[0]} {sign} known:", f"    {acc}[0] = {values[0]}"]

    def value_text(self, acc: str, constants: Constants) -> str:
        return f"{acc}[0]"


class Max(Extreme):
    """MAX."""

    is_max = True


class ExtremeWithRetraction(Aggregate):
    """MIN and MAX that can take values back: [count of each value]. A count may be negative until its value arrives."""

    is_max = False

    def create(self) -> Accumulator:
        return [{}]

    def _add(self, acc: Accumulator, value: Any, count: int) -> None:
        left = acc[0].get(value, 0) + count
        if left:
            acc[0][value] = left
        else:
            acc[0].pop(value, None)

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        self._add(acc, values[0], 1)

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        self._add(acc, values[0], -1)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        for value, count in other[0].items():
            self._add(acc, value, count)

    def value(self, acc: Accumulator) -> Any:
        present = [value for value, count in acc[0].items() if count > 0]
        if not present:
            return None
        return max(present) if self.is_max else min(present)


class MaxWithRetraction(ExtremeWithRetraction):
    """MAX."""

    is_max = True


class Collect(ExtremeWithRetraction):
    """COLLECT: a multiset."""

    def value(self, acc: Accumulator) -> Any:
        return {value: count for value, count in acc[0].items() if count > 0}


class ValuesInOrder(Aggregate):
    """Functions of all values in the order in which they came: [values]."""

    def create(self) -> Accumulator:
        return [[]]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        acc[0].append(values[0])

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        if values[0] in acc[0]:
            acc[0].remove(values[0])

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        acc[0].extend(other[0])


class ArrayAgg(ValuesInOrder):
    """ARRAY_AGG, with NULLs."""

    skips_nulls = False

    def value(self, acc: Accumulator) -> Any:
        return list(acc[0]) or None


class FirstValue(ValuesInOrder):
    """FIRST_VALUE by arrival."""

    def value(self, acc: Accumulator) -> Any:
        return acc[0][0] if acc[0] else None


class LastValue(ValuesInOrder):
    """LAST_VALUE by arrival."""

    def value(self, acc: Accumulator) -> Any:
        return acc[0][-1] if acc[0] else None


class ListAgg(ValuesInOrder):
    """LISTAGG: texts, each with the separator that precedes it."""

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        acc[0].append((values[0], values[1] if len(values) > 1 else ","))

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        entry = (values[0], values[1] if len(values) > 1 else ",")
        if entry in acc[0]:
            acc[0].remove(entry)

    def value(self, acc: Accumulator) -> Any:
        if not acc[0]:
            return None
        (first, _), *others = acc[0]
        return first + "".join(separator + text for text, separator in others)


class Lag(Aggregate):
    """LAG: the value so many rows before the current one, NULLs included: [the last values]."""

    skips_nulls = False

    def create(self) -> Accumulator:
        return [[], 1, None]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        acc[1] = values[1] if len(values) > 1 else 1
        acc[2] = values[2] if len(values) > 2 else None
        acc[0].append(values[0])
        del acc[0][: -(acc[1] + 1)]

    def value(self, acc: Accumulator) -> Any:
        kept, offset, otherwise = acc
        return kept[-1 - offset] if len(kept) > offset else otherwise


class SingleValue(Aggregate):
    """SINGLE_VALUE, of a sub-query that must have one row at most: [count, value]."""

    skips_nulls = False

    def create(self) -> Accumulator:
        return [0, None]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        if acc[0] > 0:
            raise ValueError("SingleValueAggFunction received more than one element.")
        acc[0], acc[1] = acc[0] + 1, values[0]

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        acc[0] -= 1
        if acc[0] == 0:
            acc[1] = None

    def value(self, acc: Accumulator) -> Any:
        return acc[1]


class SquaredDeviations(Aggregate):
    """$WELFORD_M2: the sum of the squares of the differences from the mean: [count, mean, sum]."""

    def create(self) -> Accumulator:
        return [0, 0.0, 0.0]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        value = float(values[0])
        acc[0] += 1
        delta = value - acc[1]
        acc[1] += delta / acc[0]
        acc[2] += delta * (value - acc[1])

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        value = float(values[0])
        acc[0] -= 1
        if acc[0] == 0:
            acc[1] = acc[2] = 0.0
            return
        delta = value - acc[1]
        acc[1] -= delta / acc[0]
        acc[2] -= delta * (value - acc[1])

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        count = acc[0] + other[0]
        if count == 0 or other[0] == 0:
            return
        delta = other[1] - acc[1]
        acc[2] += other[2] + delta * delta * acc[0] * other[0] / count
        acc[1] += delta * other[0] / count
        acc[0] = count

    def value(self, acc: Accumulator) -> Any:
        return None if acc[0] == 0 else acc[2]


_FUNCTIONS: dict[str, type[Aggregate]] = {
    "COUNT": Count,
    "LAG": Lag,
    "SINGLE_VALUE": SingleValue,
    "ROW_NUMBER": Count,
    "$WELFORD_M2$1": SquaredDeviations,
    "SUM": Sum,
    "$SUM0": Sum0,
    "AVG": Avg,
    "MIN": Extreme,
    "MAX": Max,
    "COLLECT": Collect,
    "ARRAY_AGG": ArrayAgg,
    "FIRST_VALUE": FirstValue,
    "LAST_VALUE": LastValue,
    "LISTAGG": ListAgg,
}
_WITH_RETRACTION: dict[str, type[Aggregate]] = {"MIN": ExtremeWithRetraction, "MAX": MaxWithRetraction}


@dataclass(frozen=True)
class _Bound:
    """An aggregate function with the columns that it reads. A distinct one keeps [accumulator, count of each value]."""

    function: Aggregate
    arguments: tuple[int, ...]
    filter: int
    is_distinct: bool

    def create(self) -> Accumulator:
        return [self.function.create(), {}] if self.is_distinct else self.function.create()

    def condition(self) -> str | None:
        """When a row counts, over the variables of its columns; None if it always does."""
        checks = [f"v{self.filter} is True"] if self.filter >= 0 else []
        if self.function.skips_nulls:
            checks += [f"v{index} is not None" for index in dict.fromkeys(self.arguments)]
        return " and ".join(checks) or None

    def change_lines(self, acc: str, is_accumulate: bool, constants: Constants) -> list[str]:
        """What `change` does for a row that counts."""
        values = [f"v{index}" for index in self.arguments]
        lines_of = self.function.accumulate_lines if is_accumulate else self.function.retract_lines
        if not self.is_distinct:
            return lines_of(acc, values, constants)
        sign, last, turning = ("+", -1, 0) if is_accumulate else ("-", 1, 1)
        return [
            f"target, counts = {acc}",
            f"values = {_tuple(values)}",
            "count = counts.get(values, 0)",
            f"if count == {last}:",
            "    del counts[values]",
            "else:",
            f"    counts[values] = count {sign} 1",
            f"if count == {turning}:",  # Else it was there before, or still is.
            *("    " + line for line in lines_of("target", values, constants)),
        ]

    def value_text(self, acc: str, constants: Constants) -> str:
        return self.function.value_text(f"{acc}[0]" if self.is_distinct else acc, constants)

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        if not self.is_distinct:
            self.function.merge(acc, other)
            return
        for values, count in other[1].items():
            before = acc[1].get(values, 0)
            acc[1][values] = before + count
            if before <= 0 < before + count:
                self.function.accumulate(acc[0], values)

    def value(self, acc: Accumulator) -> Any:
        return self.function.value(acc[0] if self.is_distinct else acc)


@dataclass(frozen=True)
class AggregateHandler:
    """The aggregate functions of a node, together. It is pickled as what it was made from."""

    calls: tuple[_Bound, ...]
    accumulate: Callable[[list[Accumulator], Sequence[Any]], None] = field(init=False, repr=False, compare=False)
    """Adds a row to all accumulators."""
    retract: Callable[[list[Accumulator], Sequence[Any]], None] = field(init=False, repr=False, compare=False)
    """Takes a row back."""
    get_value: Callable[[list[Accumulator]], tuple[Any, ...]] = field(init=False, repr=False, compare=False)
    """The result of each function."""

    def __post_init__(self) -> None:
        for name, function in _compiled_functions(self.calls).items():
            object.__setattr__(self, name, function)

    def __reduce__(self) -> tuple[Any, ...]:
        return AggregateHandler, (self.calls,)

    def create_accumulators(self) -> list[Accumulator]:
        return [call.create() for call in self.calls]

    def merge(self, accumulators: list[Accumulator], others: list[Accumulator]) -> None:
        """Adds what the others have seen, which stay as they are."""
        for call, acc, other in zip(self.calls, accumulators, others, strict=True):
            call.merge(acc, other)


def _compiled_functions(calls: Sequence[_Bound]) -> dict[str, Callable[..., Any]]:
    constants = Constants()
    names = [f"a{number}" for number in range(len(calls))]
    unpacked = [f"{_tuple(names)} = accumulators"] if names else []
    values = _tuple([call.value_text(name, constants) for call, name in zip(calls, names, strict=True)])
    bodies = {
        "accumulate": (", row", [*unpacked, *_change_lines(calls, names, True, constants)]),
        "retract": (", row", [*unpacked, *_change_lines(calls, names, False, constants)]),
        "get_value": ("", [*unpacked, f"return {values}"]),
    }
    return {
        name: compiled(f"def {name}(accumulators{parameter}):\n" + indented(lines), name, constants.by_name)
        for name, (parameter, lines) in bodies.items()
    }


def indented(lines: Sequence[str]) -> str:
    return "".join(f"    {line}\n" for line in lines or ("pass",))


def _change_lines(
    calls: Sequence[_Bound], names: Sequence[str], is_accumulate: bool, constants: Constants
) -> list[str]:
    """Each column is read once, and what depends on the same columns is checked once."""
    used = sorted({index for call in calls for index in (*call.arguments, call.filter) if index >= 0})
    lines = [f"v{index} = row[{index}]" for index in used]
    pairs = zip(calls, names, strict=True)
    for condition, group in groupby(pairs, key=lambda pair: pair[0].condition()):
        changes = [line for call, name in group for line in call.change_lines(name, is_accumulate, constants)]
        lines += changes if condition is None else [f"if {condition}:", *("    " + line for line in changes)]
    return lines


@dataclass(frozen=True)
class UserAggregate(Aggregate):
    """A function of the user, which takes and returns what users see: [its accumulator]."""

    function: Any
    argument_types: tuple[DataType, ...]
    time_zone: str
    skips_nulls = False

    def _external(self, values: Sequence[Any]) -> list[Any]:
        types = self.argument_types
        return [to_external(value, each, self.time_zone) for value, each in zip(values, types, strict=True)]

    def create(self) -> Accumulator:
        return [self.function.create_accumulator()]

    def accumulate(self, acc: Accumulator, values: Sequence[Any]) -> None:
        self.function.accumulate(acc[0], *self._external(values))

    def retract(self, acc: Accumulator, values: Sequence[Any]) -> None:
        self.function.retract(acc[0], *self._external(values))

    def merge(self, acc: Accumulator, other: Accumulator) -> None:
        self.function.merge(acc[0], [other[0]])

    def value(self, acc: Accumulator) -> Any:
        return from_external(self.function.get_value(acc[0]), self.type, self.time_zone)


def make_aggregates(
    agg_calls: Sequence[Mapping[str, Any]],
    input_type: RowType,
    needs_retract: Sequence[bool],
    context: ExpressionContext | None = None,
) -> AggregateHandler:
    """The handler of a node's `aggCalls`; a function that is missing raises here, when the plan is built."""
    known = context or ExpressionContext()
    return AggregateHandler(
        tuple(
            _bound(call, retracts, input_type, known) for call, retracts in zip(agg_calls, needs_retract, strict=True)
        )
    )


def _function(call: Mapping[str, Any], retracts: bool, input_type: RowType, context: ExpressionContext) -> Aggregate:
    result = parse_type(call["type"])
    if call.get("internalName") is None:
        name = call.get("catalogName") or call.get("systemName") or call.get("class") or "?"
        types = tuple(input_type.field_types()[index] for index in call["argList"])
        return UserAggregate(result, context.user_function(name), types, context.time_zone)
    name = function_name(call["internalName"])
    kind = (_WITH_RETRACTION.get(name) if retracts else None) or _FUNCTIONS.get(name)
    if kind is None:
        raise UnsupportedFeatureError(f"the SQL aggregate function {name} is not supported")
    return kind(result)


def _bound(call: Mapping[str, Any], retracts: bool, input_type: RowType, context: ExpressionContext) -> _Bound:
    function = _function(call, retracts, input_type, context)
    return _Bound(function, tuple(call["argList"]), call.get("filterArg", -1), call.get("distinct", False))
