"""Finds out what functions do by running them once for every path through them, with `Value`s for the fields.

A function that asks whether a value is true is run again with the other answer, so `and`, `or`, `not`, `if` and
chained comparisons need nothing special. What comes out is a tree: which conditions lead to which result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation
from penstock.common.types import Row, make_row
from penstock.datastream.declared_types import in_row_shape, is_single_precision
from penstock.datastream.lowering.expressions import NEVER_NULL, Call, Column, Expression, NotLowerable, call
from penstock.datastream.lowering.purity import PureFunction, pure_function
from penstock.datastream.lowering.values import Value, expression_of

MOST_PATHS = 32


@dataclass(frozen=True)
class Dropped:
    """A filter says no."""

    computed: tuple[Call, ...]


@dataclass(frozen=True)
class InPython:
    """Python would raise, or do something that cannot be traced: rows that come here are left to it."""


@dataclass(frozen=True)
class Element:
    """What leaves the last function: tuples, lists and rows with expressions in them."""

    value: Any
    computed: tuple[Call, ...]
    """What was computed on the way, for this result or not: if one of these is null, Python must do it."""


@dataclass(frozen=True)
class Branch:
    condition: Expression
    if_true: Tree
    if_false: Tree


Tree = Dropped | InPython | Element | Branch


@dataclass(frozen=True)
class Step:
    """A map or a filter, and the type its output is declared with."""

    function: PureFunction
    is_filter: bool
    output_type: TypeInformation | None = None


def step_of(function: Any, is_filter: bool, output_type: TypeInformation | None) -> Step:
    """Raises NotLowerable if the function cannot be traced."""
    if isinstance(output_type, RowTypeInfo) and not is_filter:
        fields = output_type.get_field_types()
        if any(isinstance(each, (RowTypeInfo, TupleTypeInfo)) or is_single_precision(each) for each in fields):
            raise NotLowerable("rows in rows")
    return Step(pure_function(function), is_filter, None if is_filter else output_type)


def trace(columns: Sequence[Column], names: list[str], steps: Sequence[Step]) -> Tree:
    """What the steps do to a row of these columns, one after the other."""
    return _Exploration(lambda path: _run(path, columns, names, steps)).explore([])


class _Path:
    """One way through the functions: the answers so far, and the next condition, which has no answer yet."""

    def __init__(self, answers: list[tuple[Expression, bool]]) -> None:
        self._answers = answers
        self._known = dict(answers)
        self._computed: dict[Call, None] = {}
        self.open_condition: Expression | None = None
        self.has_none = False
        """True if a field is taken to be None on this way."""

    def decide(self, condition: Expression) -> bool:
        if condition in self._known:
            return self._known[condition]
        self.open_condition = condition
        raise _Undecided

    def computed(self, expression: Call) -> None:
        self._computed[expression] = None

    def doubtful(self) -> tuple[Call, ...]:
        """What was computed and may still be null: nothing that a condition with an answer, or another, contains."""
        decided = {part for condition in self._known if isinstance(condition, Call) for part in condition.parts()}
        largest: list[Call] = []
        inside: set[Call] = set()
        for each in sorted(self._computed, key=lambda expression: -expression.size):
            if each not in decided and each not in inside and each.operation not in NEVER_NULL:
                largest.append(each)
            inside.update(each.parts())
        return tuple(largest)

    def is_none(self, column: Column) -> bool:
        found = self.decide(call("is_none", column))
        self.has_none = self.has_none or found
        return found


class _Undecided(BaseException):
    """Ends a run at a condition that has no answer yet; no function that may be traced catches it."""


class _Exploration:
    def __init__(self, run: Callable[[_Path], Tree]) -> None:
        self._run = run
        self._paths = 0

    def explore(self, answers: list[tuple[Expression, bool]]) -> Tree:
        path = _Path(answers)
        try:
            result = self._run(path)
        except _Undecided:
            condition = path.open_condition
            assert condition is not None
            return Branch(
                condition, self.explore([*answers, (condition, True)]), self.explore([*answers, (condition, False)])
            )
        except NotLowerable:
            if not path.has_none:
                raise
            result = InPython()
        except Exception as failure:
            if not path.has_none:
                raise NotLowerable(f"{type(failure).__name__}: {failure}") from failure
            result = InPython()
        self._paths += 1
        if self._paths > MOST_PATHS:
            raise NotLowerable("too many ways through the functions")
        return result


def _run(path: _Path, columns: Sequence[Column], names: list[str], steps: Sequence[Step]) -> Tree:
    element: Any = make_row(names, [Value(column, path) for column in columns])
    for step in steps:
        result = step.function.call(_with_nones(element, step.function, path))
        if step.is_filter:
            if not result:
                return Dropped(path.doubtful())
        else:
            element = in_row_shape(result, step.output_type) if isinstance(step.output_type, RowTypeInfo) else result
    return Element(element, path.doubtful())


def _with_nones(element: Any, function: PureFunction, path: _Path) -> Any:
    """The element with a real None for every field that this path takes to be None, if the function tests for it."""
    if not function.tests_none:
        return element
    match element:
        case Row():
            return _OpeningRow(element, path)
        case tuple() | list():
            return type(element)(_opened(value, path) for value in element)
    return _opened(element, path)


class _OpeningRow(Row):
    """A row that decides whether a field is None when the function asks for the field, not before."""

    __slots__ = ("_path",)

    def __init__(self, row: Row, path: _Path) -> None:
        super().__init__(*row)
        self._fields = row._fields
        self._path = path

    def __getitem__(self, item: Any) -> Any:
        found = super().__getitem__(item)
        return [_opened(each, self._path) for each in found] if isinstance(item, slice) else _opened(found, self._path)

    def __getattr__(self, item: str) -> Any:
        return _opened(super().__getattr__(item), self._path)

    def __iter__(self) -> Iterator[Any]:
        return (_opened(each, self._path) for each in self._values)

    def __call__(self, *args: Any) -> Row:
        raise NotLowerable("a row that makes rows")


def _opened(value: Any, path: _Path) -> Any:
    """None or a value that is not None, as this path decides."""
    if isinstance(value, (tuple, list, Row)):
        raise NotLowerable("tests for None of fields of fields")
    if not isinstance(value, Value):
        return value
    expression = expression_of(value)
    if not isinstance(expression, Column) or not expression.is_nullable:
        return value
    if path.is_none(expression):
        return None
    return Value(replace(expression, is_nullable=False), path)
