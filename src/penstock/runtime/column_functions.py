"""Does the work of small functions on columns: an operation of NumPy for a batch instead of one of Python per element.

    lambda n: (n * 7919 % keys, n)        ->        (column * 7919 % keys, column)

Functions that can be inlined (`penstock.runtime.inlining`) qualify, if they consist of arithmetic on integers,
comparisons, choices between two values, items of tuples, and tuples. They give exactly what they give one by one.
Integers of Python have no bounds and those of a column do: from the smallest and the largest element follow the bounds
of all that is computed from them, and a batch whose results might not fit is left to the loop of Python. So is one that
might divide by zero: what fails, fails there, with its record.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.graph.descriptions import FilterDescription, MapDescription, OperatorDescription
from penstock.runtime.columns import BOOLS, FLOATS, INTS, TEXTS, Array, Columns, items_of
from penstock.runtime.inlining import small_function

_KINDS: dict[type, str] = {int: INTS, float: FLOATS, bool: BOOLS, str: TEXTS}
_LEAST, _LARGEST = -(1 << 63), (1 << 63) - 1
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class NotInColumnsError(Exception):
    """The elements must be processed one by one."""


class _Column:
    """What an expression is for each element: a column, or one value for all."""

    def __init__(self, kind: str, data: Any, bounds: tuple[int, int] | None = None) -> None:
        self.kind = kind
        self.data = data
        """An array, or an `int`, `float`, `bool` or `str`."""
        self._bounds = bounds

    @property
    def is_constant(self) -> bool:
        return not isinstance(self.data, np.ndarray)

    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest of integers; the true ones are within."""
        if self._bounds is None:
            constant = self.is_constant
            self._bounds = (self.data,) * 2 if constant else (int(self.data.min()), int(self.data.max()))
        return self._bounds

    def taken(self, places: Array) -> _Column:
        return self if self.is_constant else _Column(self.kind, self.data[places], self._bounds)

    def array(self, length: int) -> Array:
        if not self.is_constant:
            return self.data  # type: ignore[no-any-return]
        return np.full(length, self.data, dtype=object if self.kind == TEXTS else self.kind)


_Value = _Column | tuple[Any, ...]
"""A column, or a tuple of values: the elements are tuples."""
_Evaluate = Callable[[Sequence[_Value]], _Value]
"""From the arguments of a function to the value of an expression in it."""


# --- from an expression to what works on columns ---------------------------------------------------------------------


class _Compiler:
    """Turns the expressions of one function into functions on columns."""

    def __init__(self, function: FunctionType, parameters: int) -> None:
        code = function.__code__
        self._parameters = code.co_varnames[:parameters]
        self._cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__

    def compiled(self, node: ast.expr) -> _Evaluate:
        match node:
            case ast.Constant(value) if type(value) in _KINDS:
                constant = _constant(value)
                return lambda arguments: constant
            case ast.Name(name):
                return self._named(name)
            case ast.Tuple(parts) if not any(isinstance(part, ast.Starred) for part in parts):
                items = [self.compiled(part) for part in parts]
                return lambda arguments: tuple(item(arguments) for item in items)
            case ast.Subscript(owner, place):
                return _item(self.compiled(owner), _number(place))
            case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
                return self._combined(type(op), left, right)
            case ast.UnaryOp(ast.USub(), operand):
                return self._combined(ast.Sub, ast.Constant(0), operand)
            case ast.UnaryOp(ast.Not(), operand):
                inner = self.compiled(operand)
                return lambda arguments: _Column(BOOLS, ~truth(inner(arguments)))
            case ast.Compare(left, ops, others) if all(type(op) in _COMPARISONS for op in ops):
                return self._compared([_COMPARISONS[type(op)] for op in ops], [left, *others])
            case ast.BoolOp(op, parts):
                both = operator.and_ if isinstance(op, ast.And) else operator.or_
                conditions = [self.compiled(part) for part in parts]
                return lambda arguments: _Column(BOOLS, reduce(both, (_flags(each(arguments)) for each in conditions)))
            case ast.IfExp(test, chosen, other):
                condition, first, second = self.compiled(test), self.compiled(chosen), self.compiled(other)
                return lambda arguments: _chosen(truth(condition(arguments)), first(arguments), second(arguments))
            case ast.Call(ast.Name("int"), [argument], []):
                return self._as_int(self.compiled(argument))
        raise NotInColumnsError

    def _named(self, name: str) -> _Evaluate:
        if name in self._parameters:
            at = self._parameters.index(name)
            return lambda arguments: arguments[at]
        return lambda arguments: _constant(self._found(name))

    def _found(self, name: str) -> Any:
        """What a name of the surroundings means now."""
        try:
            if name in self._cells:
                return self._cells[name].cell_contents
            return self._globals[name] if name in self._globals else getattr(builtins, name)
        except (ValueError, AttributeError):  # It is not set: the function itself says so.
            raise NotInColumnsError from None

    def _combined(self, op: type[ast.operator], left: ast.expr, right: ast.expr) -> _Evaluate:
        first, second, combine = self.compiled(left), self.compiled(right), _ARITHMETIC[op]

        def evaluate(arguments: Sequence[_Value]) -> _Value:
            one, other = _integers(first(arguments)), _integers(second(arguments))
            bounds = _bounds_of(op, one.bounds(), other.bounds())
            if one.is_constant and other.is_constant:
                return _constant(combine(one.data, other.data))
            return _Column(INTS, combine(_operand(one), _operand(other)), bounds)

        return evaluate

    def _compared(self, comparisons: list[Callable[[Any, Any], Any]], parts: list[ast.expr]) -> _Evaluate:
        operands = [self.compiled(part) for part in parts]

        def evaluate(arguments: Sequence[_Value]) -> _Value:
            found = [_plain(operand(arguments)) for operand in operands]
            if len({each.kind for each in found}) > 1 or found[0].kind not in (INTS, FLOATS):
                raise NotInColumnsError
            pairs = zip(comparisons, pairwise(map(_operand, found)), strict=True)
            answer = reduce(operator.and_, (compare(*pair) for compare, pair in pairs))
            return _Column(BOOLS, answer if isinstance(answer, np.ndarray) else bool(answer))

        return evaluate

    def _as_int(self, inner: _Evaluate) -> _Evaluate:
        def evaluate(arguments: Sequence[_Value]) -> _Value:
            if self._found("int") is not int:
                raise NotInColumnsError
            return _integers(inner(arguments))

        return evaluate


def _constant(value: Any) -> _Column:
    kind = _KINDS.get(type(value))
    if kind is None or (kind == INTS and not _LEAST <= value <= _LARGEST):
        raise NotInColumnsError
    return _Column(kind, value)


def _number(node: ast.expr) -> int:
    match node:
        case ast.Constant(value) if type(value) is int:
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(value)) if type(value) is int:
            return -value
    raise NotInColumnsError


def _item(owner: _Evaluate, at: int) -> _Evaluate:
    def evaluate(arguments: Sequence[_Value]) -> _Value:
        found = owner(arguments)
        if not isinstance(found, tuple) or not -len(found) <= at < len(found):
            raise NotInColumnsError
        item: _Value = found[at]
        return item

    return evaluate


def _plain(value: _Value) -> _Column:
    if isinstance(value, tuple):
        raise NotInColumnsError
    return value


def _integers(value: _Value) -> _Column:
    found = _plain(value)
    if found.kind != INTS:
        raise NotInColumnsError
    return found


def _operand(column: _Column) -> Any:
    """Constants as NumPy's own, so that they do not change the type of the result."""
    return np.int64(column.data) if column.is_constant and column.kind == INTS else column.data


def _flags(value: _Value) -> Any:
    """`and` and `or` give one of their operands: only of conditions is that one of True and False."""
    found = _plain(value)
    if found.kind != BOOLS:
        raise NotInColumnsError
    return found.data


def truth(value: _Value) -> Any:
    """What `if value:` takes it for."""
    found = _plain(value)
    if found.is_constant or found.kind not in (BOOLS, INTS):
        raise NotInColumnsError
    return found.data if found.kind == BOOLS else found.data != 0


def _chosen(condition: Any, first: _Value, second: _Value) -> _Value:
    one, other = _plain(first), _plain(second)
    if one.kind != other.kind:
        raise NotInColumnsError
    bounds = None
    if one.kind == INTS:
        bounds = min(one.bounds()[0], other.bounds()[0]), max(one.bounds()[1], other.bounds()[1])
    kind = object if one.kind == TEXTS else one.kind
    return _Column(one.kind, np.where(condition, *(np.asarray(each.data, dtype=kind) for each in (one, other))), bounds)


def _bounds_of(op: type[ast.operator], one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Between which numbers all results are, given those of the operands."""
    if op in (ast.FloorDiv, ast.Mod) and other[0] <= 0 <= other[1]:
        raise NotInColumnsError
    if op is ast.Mod:
        _bounds_of(ast.FloorDiv, one, other)  # Processors compute the quotient, too.
        bounds = (0, other[1] - 1) if other[0] > 0 else (other[0] + 1, 0)
    else:
        # Each of these rises or falls in either operand, so the corners have the extremes.
        corners = [_ARITHMETIC[op](left, right) for left in one for right in other]
        bounds = min(corners), max(corners)
    if bounds[0] < _LEAST or bounds[1] > _LARGEST:
        raise NotInColumnsError
    return bounds


# --- functions and chains of them ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnFunction:
    """A small function on columns. Other arguments than the first are the same for all elements."""

    _results: list[_Evaluate]
    _before: tuple[_Value, ...]
    """In the place of `self`."""
    is_generator: bool

    def results(self, value: _Value, *further: int) -> list[_Value]:
        """What it returns, or all that it yields one after the other; raises NotInColumnsError."""
        arguments = [*self._before, value, *map(_constant, further)]
        return [each(arguments) for each in self._results]

    def integers(self, columns: Columns, *further: int) -> Array | None:
        """The integer that it returns for each element; None if these must be computed one by one."""
        try:
            [result] = self.results(value_of(columns), *further)
            return _integers(result).array(len(columns))
        except NotInColumnsError:
            return None


def column_function(function: Any, parameters: int = 1) -> ColumnFunction | None:
    """`function`, which takes so many arguments, on columns; None if it does not qualify."""
    before: tuple[_Value, ...] = ()
    if isinstance(function, MethodType):
        before, function = ((),), function.__func__
    small = small_function(function, len(before) + parameters)
    if small is None:
        return None
    compiler = _Compiler(small.function, len(before) + parameters)
    try:
        return ColumnFunction([compiler.compiled(each) for each in small.results], before, small.is_generator)
    except NotInColumnsError:
        return None


@dataclass(frozen=True)
class ColumnChain:
    """A run of map, flat_map and filter on columns."""

    _steps: list[tuple[type[OperatorDescription], ColumnFunction]]

    def run(self, columns: Columns) -> Columns:
        """What comes out of it, which may be nothing; raises NotInColumnsError."""
        length, value, timestamps = len(columns), value_of(columns), columns.timestamps
        for kind, function in self._steps:
            results = function.results(value)
            if kind is MapDescription:
                value = results[0]
            elif kind is FilterDescription:
                places = np.flatnonzero(truth(results[0]))
                length, value = len(places), _taken(value, places)
                timestamps = None if timestamps is None else timestamps[places]
            else:
                length, value = length * len(results), _in_turns(results, length)
                timestamps = None if timestamps is None else np.repeat(timestamps, len(results))
            if not length:
                break
        return replace(columns_from(value, length), timestamps=timestamps)


def column_chain(steps: Sequence[tuple[type[OperatorDescription], Callable[[Any], Any]]]) -> ColumnChain | None:
    """The kinds of operators and their functions on columns; None if one of them does not qualify."""
    made: list[tuple[type[OperatorDescription], ColumnFunction]] = []
    for kind, function in steps:
        on_columns = column_function(function)
        gives_many = kind not in (MapDescription, FilterDescription)
        if on_columns is None or on_columns.is_generator is not gives_many:
            return None
        made.append((kind, on_columns))
    return ColumnChain(made)


def value_of(columns: Columns) -> _Value:
    return _put_together(columns.kinds, iter(columns.arrays))


def _put_together(kinds: str, arrays: Iterator[Array]) -> _Value:
    if not kinds.startswith("("):
        return _Column(kinds, next(arrays))
    return tuple(_put_together(each, arrays) for each in items_of(kinds))


def columns_from(value: _Value, length: int) -> Columns:
    arrays: list[Array] = []
    return Columns(_take_apart(value, length, arrays), arrays)


def _take_apart(value: _Value, length: int, arrays: list[Array]) -> str:
    if not isinstance(value, tuple):
        arrays.append(value.array(length))
        return value.kind
    if not value:
        raise NotInColumnsError
    return f"({''.join(_take_apart(item, length, arrays) for item in value)})"


def _taken(value: _Value, places: Array) -> _Value:
    return tuple(_taken(item, places) for item in value) if isinstance(value, tuple) else value.taken(places)


def _in_turns(results: list[_Value], length: int) -> _Value:
    """The results for the first element, then those for the second, and so on."""
    parts = [columns_from(result, length) for result in results]
    if len({part.kinds for part in parts}) > 1:
        raise NotInColumnsError
    arrays = [np.stack(each, axis=1).reshape(-1) for each in zip(*(part.arrays for part in parts), strict=True)]
    return _put_together(parts[0].kinds, iter(arrays))
