"""Operations on columns with Python's results: arithmetic, comparisons, choices, and some built-in functions.

Python's integers are unbounded, but those of a column have 64 bits. So each column knows bounds of its integers, or
computes them when they are needed, and an operation derives the bounds of its result from those of its operands. An
operation raises NotInColumnsError if its result might not fit, or if it might fail.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from penstock.runtime.columns import BOOLS, FLOATS, INTS, TEXTS, Array, array_of

KINDS: dict[type, str] = {int: INTS, float: FLOATS, bool: BOOLS, str: TEXTS}
_LEAST, _LARGEST = -(1 << 63), (1 << 63) - 1
_EXACT_FLOAT = 1 << 53
"""Every integer up to this one, in absolute value, is exactly representable as a float."""
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}
_OF_FLOATS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class NotInColumnsError(Exception):
    """The elements must be processed one by one."""


class Column:
    """The value of an expression for each element: an array, or a constant that is the same for all."""

    def __init__(self, kind: str, data: Any, bounds: tuple[int, int] | None = None) -> None:
        self.kind = kind
        self.data = data
        """An array, or an `int`, `float`, `bool` or `str`."""
        self._bounds = bounds

    @property
    def is_constant(self) -> bool:
        return not isinstance(self.data, np.ndarray)

    def bounds(self) -> tuple[int, int]:
        """A lower and an upper bound of the integers; the smallest and the largest one may be within."""
        if self._bounds is None:
            constant = self.is_constant
            self._bounds = (self.data,) * 2 if constant else (int(self.data.min()), int(self.data.max()))
        return self._bounds

    def taken(self, places: Array) -> Column:
        return self if self.is_constant else Column(self.kind, self.data[places], self._bounds)

    def array(self, length: int) -> Array:
        if not self.is_constant:
            return self.data  # type: ignore[no-any-return]
        return np.full(length, self.data, dtype=object if self.kind == TEXTS else self.kind)


Value = Column | tuple[Any, ...]
"""A column, or, for elements that are tuples, a tuple of values."""


def constant(value: Any) -> Column:
    """A value that is the same for all elements."""
    kind = KINDS.get(type(value))
    if kind is None or (kind == INTS and not _LEAST <= value <= _LARGEST):
        raise NotInColumnsError
    return Column(kind, value)


def column_of(items: Sequence[Any]) -> Column:
    types = set(map(type, items))
    kind = KINDS.get(types.pop()) if len(types) == 1 else None
    made = None if kind is None else array_of(items, kind)
    if kind is None or made is None:
        raise NotInColumnsError
    return Column(kind, made)


# --- operations ------------------------------------------------------------------------------------------------------


def plain(value: Value) -> Column:
    """`value`, which must not be a tuple."""
    if isinstance(value, tuple):
        raise NotInColumnsError
    return value


def integers(value: Value) -> Column:
    found = plain(value)
    if found.kind != INTS:
        raise NotInColumnsError
    return found


def integer_array(value: Value, length: int) -> Array:
    """The integers of `value`, one for each element."""
    return integers(value).array(length)


def _operand(column: Column) -> Any:
    """The data of a column. Constants become NumPy's own, so that they do not change the type of the result."""
    if column.is_constant and column.kind == TEXTS:
        return np.array(column.data, dtype=object)
    return np.int64(column.data) if column.is_constant and column.kind == INTS else column.data


def flags(value: Value) -> Any:
    """An operand of `and` or `or`. It must be a condition: with other operands, their result is not a boolean."""
    found = plain(value)
    if found.kind != BOOLS:
        raise NotInColumnsError
    return found.data


def truth(value: Value) -> Any:
    """True for each element for which `if value:` takes its first branch. Constants do not qualify."""
    found = plain(value)
    if found.is_constant or found.kind not in (BOOLS, INTS):
        raise NotInColumnsError
    return found.data if found.kind == BOOLS else found.data != 0


def combined(op: type[ast.operator], left: Value, right: Value) -> Column:
    one, other, combine = plain(left), plain(right), ARITHMETIC[op]
    kinds = {one.kind, other.kind}
    if kinds == {INTS} and op is not ast.Div:
        bounds = _bounds_of(op, one.bounds(), other.bounds())
        if one.is_constant and other.is_constant:
            return constant(combine(one.data, other.data))
        return Column(INTS, combine(_operand(one), _operand(other)), bounds)
    if not kinds <= {INTS, FLOATS} or op not in _OF_FLOATS or (one.is_constant and other.is_constant):
        raise NotInColumnsError
    if op is ast.Div and (not np.all(other.data) or not (_is_exact(one) and _is_exact(other))):
        raise NotInColumnsError
    with np.errstate(all="ignore"):  # Infinities and NaN arise silently, as in Python.
        return Column(FLOATS, combine(_operand(one), _operand(other)))


def _is_exact(column: Column) -> bool:
    """True if the column's values keep their exact value when they are converted to floats."""
    return column.kind == FLOATS or -_EXACT_FLOAT <= column.bounds()[0] <= column.bounds()[1] <= _EXACT_FLOAT


def negative(value: Value) -> Column:
    found = plain(value)
    if found.kind == FLOATS:  # Not 0 - x, which is 0.0 for 0.0, while -x is -0.0.
        return Column(FLOATS, -found.data)
    return combined(ast.Sub, constant(0), found)


def compared(compare: Callable[[Any, Any], Any], left: Value, right: Value) -> Any:
    if isinstance(left, tuple) or isinstance(right, tuple):
        return _compared_tuples(compare, left, right)
    kinds = {left.kind, right.kind}
    if not (kinds in ({INTS}, {FLOATS}, {TEXTS}) or (kinds == {INTS, FLOATS} and _is_exact(left) and _is_exact(right))):
        raise NotInColumnsError
    return compare(_operand(left), _operand(right))


def _compared_tuples(compare: Callable[[Any, Any], Any], left: Value, right: Value) -> Any:
    """The first items that differ decide. All items must be integers.

    Floats do not qualify: tuples with the same NaN object are equal in Python, but NaN differs from itself in NumPy.
    """
    if not isinstance(left, tuple) or not isinstance(right, tuple) or len(left) != len(right) or not left:
        raise NotInColumnsError
    pairs = [(integers(one), integers(other)) for one, other in zip(left, right, strict=True)]
    answer = compared(compare, *pairs[-1])
    for one, other in reversed(pairs[:-1]):
        answer = np.where(compared(operator.eq, one, other), answer, compared(compare, one, other))
    return answer


def chosen(condition: Array, first: Value, second: Value) -> Value:
    """The value of `first` for elements for which the condition is true, and that of `second` for the others."""
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(chosen(condition, one, other) for one, other in zip(first, second, strict=True))
    one, other = plain(first), plain(second)
    if one.kind != other.kind:
        raise NotInColumnsError
    bounds = None
    if one.kind == INTS:
        bounds = min(one.bounds()[0], other.bounds()[0]), max(one.bounds()[1], other.bounds()[1])
    kind = object if one.kind == TEXTS else one.kind
    return Column(one.kind, np.where(condition, *(np.asarray(each.data, dtype=kind) for each in (one, other))), bounds)


def _bounds_of(op: type[ast.operator], one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The bounds of the results, from the bounds of the operands."""
    if op in (ast.FloorDiv, ast.Mod) and other[0] <= 0 <= other[1]:
        raise NotInColumnsError
    if op is ast.Mod:
        _bounds_of(ast.FloorDiv, one, other)  # The processor also computes the quotient, which must fit as well.
        bounds = (0, other[1] - 1) if other[0] > 0 else (other[0] + 1, 0)
    else:
        # Each of these operations is monotonic in either operand, so its extremes are at the corners.
        corners = [ARITHMETIC[op](left, right) for left in one for right in other]
        bounds = min(corners), max(corners)
    if bounds[0] < _LEAST or bounds[1] > _LARGEST:
        raise NotInColumnsError
    return bounds


# --- built-in functions ----------------------------------------------------------------------------------------------


def builtin(function: Any, arguments: list[Column]) -> Column:
    """The result of a built-in function; raises NotInColumnsError for any other object."""
    # No dictionary: the object behind a name may not be hashable.
    if len(arguments) == 1:
        for known, on_column in _WITH_ONE_ARGUMENT:
            if function is known:
                return on_column(arguments[0])
    elif arguments:
        for extreme, on_columns in _EXTREMES:
            if function is extreme:
                return reduce(lambda one, other: _extreme(extreme, on_columns, one, other), arguments)
    raise NotInColumnsError


def _bool(value: Column) -> Column:
    return Column(BOOLS, truth(value))


def _abs(value: Column) -> Column:
    least, largest = integers(value).bounds()
    if least == _LEAST:
        raise NotInColumnsError
    return Column(INTS, abs(value.data), (0, max(-least, largest)))


_WITH_ONE_ARGUMENT: list[tuple[Any, Callable[[Column], Column]]] = [(int, integers), (bool, _bool), (abs, _abs)]
_EXTREMES: list[tuple[Any, Callable[[Any, Any], Any]]] = [(max, np.maximum), (min, np.minimum)]


def _extreme(extreme: Callable[[int, int], int], on_columns: Any, one: Column, other: Column) -> Column:
    first, second = integers(one).bounds(), integers(other).bounds()
    if one.is_constant and other.is_constant:
        return constant(extreme(one.data, other.data))
    bounds = extreme(first[0], second[0]), extreme(first[1], second[1])
    return Column(INTS, on_columns(_operand(one), _operand(other)), bounds)
