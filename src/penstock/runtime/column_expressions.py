"""Turns the body of a function into operations on columns: NumPy computes a whole batch, not Python each element.

    def bid_of(number):                                 newest = column // 50
        newest = number // 50            ->             price = table_of_PRICES[column % 99_991]
        return newest, PRICES[number % 99_991]          (newest, price)

A body qualifies if its statements are assignments to local variables, `if` and `return`, or, in a generator,
assignments and `yield`. Its expressions may be arithmetic, comparisons, conditional expressions, tuples and their
items, items of tuples and lists from outside the function, some built-in functions, and calls of functions that qualify
themselves. None of these has a side effect, so both branches of an `if` can be computed for all elements.

Results are exactly those of Python. Python's integers are unbounded, but those of a column have 64 bits. The smallest
and the largest element of a batch bound every value that is computed from them. A batch whose values might not fit
raises NotInColumnsError, and so does a batch that might fail, for instance by a division by zero. Such batches go
through the Python loop, which reports a failure with its record.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np

from penstock.runtime.column_operations import (
    ARITHMETIC,
    COMPARISONS,
    KINDS,
    Column,
    NotInColumnsError,
    Value,
    builtin,
    chosen,
    column_of,
    combined,
    compared,
    constant,
    flags,
    integers,
    negative,
    plain,
    truth,
)
from penstock.runtime.columns import BOOLS, INTS
from penstock.runtime.inlining import source_of
from penstock.runtime.loop_bodies import is_generator

_MOST_BLOCKS = 64
"""Each `if` duplicates the statements after it; bodies that become more blocks than this do not qualify."""
_MISSING = object()


_Variables = dict[str, Value]
_Evaluate = Callable[[_Variables], Value]
"""From the local variables of a function to the value of an expression in it."""
_Run = Callable[[_Variables], list[Value]]
"""From the local variables of a function to its result, or to the values that it yields, in order."""


class Body:
    """The body of a function as operations on columns."""

    def __init__(self, parameters: Sequence[str], run: _Run, is_generator: bool, reads_outside: bool) -> None:
        self._parameters = parameters
        self._run = run
        self.is_generator = is_generator
        self.reads_outside = reads_outside
        """True if it reads names from outside the function, once for a whole batch. Other code may change these."""

    def results(self, arguments: Sequence[Value]) -> list[Value]:
        """The function's result as the only item, or the values that it yields, in order.

        Raises NotInColumnsError if the elements must be processed one by one.
        """
        return self._run(dict(zip(self._parameters, arguments, strict=True)))


def body_of(function: Any, parameters: int, owner: Any = None) -> Body | None:
    """The body of a function that takes `parameters` arguments; None if it does not qualify.

    `owner` is the object that a method is bound to; `parameters` does not count it.
    """
    return _Callees().body_of(function, parameters, owner)


class _Callees:
    """The functions that a function calls, directly or indirectly."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[FunctionType, int], Body | None] = {}
        """By function and number of arguments."""
        self._running: set[FunctionType] = set()

    def body_of(self, function: Any, parameters: int, owner: Any = None) -> Body | None:
        node = source_of(function, parameters + (owner is not None))
        if node is None:
            return None
        compiler = _Compiler(function, owner, self)
        try:
            if isinstance(node, ast.Lambda):
                return compiler.body(compiler.block([ast.Return(node.body)]), is_generator=False)
            statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if is_generator(node):
                return compiler.body(compiler.yielding(statements), is_generator=True)
            return compiler.body(compiler.block(statements), is_generator=False)
        except NotInColumnsError:
            return None

    def called(self, function: FunctionType, arguments: list[Value]) -> Value:
        # Both branches of an `if` are computed, so a recursion would never end.
        if function in self._running:
            raise NotInColumnsError
        signature = function, len(arguments)
        if signature not in self._bodies:
            self._bodies[signature] = self.body_of(*signature)
        body = self._bodies[signature]
        if body is None or body.is_generator:
            raise NotInColumnsError
        self._running.add(function)
        try:
            return body.results(arguments)[0]
        finally:
            self._running.discard(function)


class _Compiler:
    """Turns statements and expressions of one function into functions on columns."""

    def __init__(self, function: FunctionType, owner: Any, callees: _Callees) -> None:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        self._self_name = names[0] if owner is not None else None
        self.parameters = names if owner is None else names[1:]
        self._locals = set(code.co_varnames)
        self._cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self._globals = function.__globals__
        self._owner = owner
        self._callees = callees
        self._blocks = 0
        self._reads_outside = False

    def body(self, run: _Run, is_generator: bool) -> Body:
        return Body(self.parameters, run, is_generator, self._reads_outside)

    # --- statements --------------------------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> _Run:
        """Statements that end with a return."""
        self._blocks += 1
        if self._blocks > _MOST_BLOCKS:
            raise NotInColumnsError
        match statements:
            case [ast.Return(ast.expr() as value), *_]:
                returned = self.expression(value)
                return lambda variables: [returned(variables)]
            case [ast.If(test, body, orelse), *rest]:
                # A branch that does not return continues with the statements after the `if`.
                return self._branches(self.expression(test), self.block([*body, *rest]), self.block([*orelse, *rest]))
            case [statement, *rest]:
                return _followed_by(self._assignment(statement), self.block(rest))
        raise NotInColumnsError

    def yielding(self, statements: list[ast.stmt]) -> _Run:
        """Statements that assign or yield, in any order."""
        match statements:
            case []:
                return lambda variables: []
            case [ast.Expr(ast.Yield(ast.expr() as value)), *rest]:
                yielded, following = self.expression(value), self.yielding(rest)
                return lambda variables: [yielded(variables), *following(variables)]
            case [statement, *rest]:
                return _followed_by(self._assignment(statement), self.yielding(rest))
        raise NotInColumnsError

    def _branches(self, test: _Evaluate, first: _Run, second: _Run) -> _Run:
        def run(variables: _Variables) -> list[Value]:
            condition = plain(test(variables))
            if condition.is_constant:
                return (first if condition.data else second)(variables)
            # What one branch assigns must not be seen in the other, so each gets its own copy of the variables.
            [one], [other] = first(dict(variables)), second(dict(variables))
            return [chosen(truth(condition), one, other)]

        return run

    def _assignment(self, statement: ast.stmt) -> Callable[[_Variables], None]:
        match statement:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                return _assign(name, self.expression(value))
            case ast.AugAssign(ast.Name(name), op, value):
                changed = ast.BinOp(ast.Name(name, ast.Load()), op, value)
                return _assign(name, self.expression(changed))
            case ast.Assign([ast.Tuple(targets)], value) if all(isinstance(each, ast.Name) for each in targets):
                names = [each.id for each in targets if isinstance(each, ast.Name)]
                return _assign_items(names, self.expression(value))
        raise NotInColumnsError

    # --- expressions -------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> _Evaluate:
        match node:
            case ast.Constant(value) if type(value) in KINDS:
                fixed = constant(value)
                return lambda variables: fixed
            case ast.Name(name) if name in self._locals:
                return lambda variables: _local(variables, name)
            case ast.Name() | ast.Attribute():
                found = self._outer_value(node)
                return lambda variables: constant(found())
            case ast.Tuple(parts) if not any(isinstance(part, ast.Starred) for part in parts):
                items = [self.expression(part) for part in parts]
                return lambda variables: tuple(item(variables) for item in items)
            case ast.Subscript(owner, place):
                return self._item(owner, self.expression(place))
            case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
                kind, first, second = type(op), self.expression(left), self.expression(right)
                return lambda variables: combined(kind, first(variables), second(variables))
            case ast.UnaryOp(ast.USub(), operand):
                inner = self.expression(operand)
                return lambda variables: negative(inner(variables))
            case ast.UnaryOp(ast.Not(), operand):
                inner = self.expression(operand)
                return lambda variables: Column(BOOLS, ~truth(inner(variables)))
            case ast.Compare(left, ops, others) if all(type(op) in COMPARISONS for op in ops):
                return self._compared([COMPARISONS[type(op)] for op in ops], [left, *others])
            case ast.BoolOp(op, parts):
                both = operator.and_ if isinstance(op, ast.And) else operator.or_
                conditions = [self.expression(part) for part in parts]
                return lambda variables: Column(BOOLS, reduce(both, (flags(each(variables)) for each in conditions)))
            case ast.IfExp(test, first_choice, other):
                branches = self._branches(
                    self.expression(test), self.block([ast.Return(first_choice)]), self.block([ast.Return(other)])
                )
                return lambda variables: branches(variables)[0]
            case ast.Call(ast.Name("len"), [(ast.Name() | ast.Attribute()) as container], []):
                return self._length(container)
            case ast.Call(ast.Name(name), arguments, []) if name not in self._locals:
                return self._call(name, arguments)
        raise NotInColumnsError

    def _outer_value(self, node: ast.expr) -> Callable[[], Any]:
        """Looks up the current value of a name from outside the function, or of an attribute of `self`."""
        self._reads_outside = True
        match node:
            case ast.Name(name):
                return lambda: self._value_of(name)
            case ast.Attribute(ast.Name(name), attribute) if name == self._self_name:
                return lambda: _attribute_of(self._owner, attribute)
        raise NotInColumnsError

    def _value_of(self, name: str) -> Any:
        try:
            if name in self._cells:
                return self._cells[name].cell_contents
            return self._globals[name] if name in self._globals else getattr(builtins, name)
        except (ValueError, AttributeError):  # The name is not set. The function itself raises the proper error.
            raise NotInColumnsError from None

    def _item(self, owner: ast.expr, place: _Evaluate) -> _Evaluate:
        match owner:
            case ast.Name(name) if name in self._locals:
                pass
            case ast.Name() | ast.Attribute():
                sequence = _Sequence(self._outer_value(owner))
                return lambda variables: sequence.items(integers(place(variables)))
            case ast.Tuple(parts) if parts and all(isinstance(each, ast.Constant) for each in parts):
                constants = tuple(each.value for each in parts if isinstance(each, ast.Constant))
                sequence = _Sequence(lambda: constants)
                return lambda variables: sequence.items(integers(place(variables)))
        inner = self.expression(owner)

        def evaluate(variables: _Variables) -> Value:
            found, at = inner(variables), integers(place(variables))
            if not isinstance(found, tuple) or not at.is_constant or not -len(found) <= at.data < len(found):
                raise NotInColumnsError
            item: Value = found[at.data]
            return item

        return evaluate

    def _compared(self, comparisons: list[Callable[[Any, Any], Any]], parts: list[ast.expr]) -> _Evaluate:
        operands = [self.expression(part) for part in parts]

        def evaluate(variables: _Variables) -> Value:
            found = [operand(variables) for operand in operands]
            pairs = zip(comparisons, pairwise(found), strict=True)
            answer = reduce(operator.and_, (compared(compare, *pair) for compare, pair in pairs))
            return Column(BOOLS, answer if np.ndim(answer) else bool(answer))

        return evaluate

    def _length(self, container: ast.expr) -> _Evaluate:
        if {"len", getattr(container, "id", None)} & self._locals:
            raise NotInColumnsError
        found = self._outer_value(container)

        def evaluate(variables: _Variables) -> Value:
            if self._value_of("len") is not len or type(found()) not in (tuple, list, str, dict):
                raise NotInColumnsError
            return constant(len(found()))

        return evaluate

    def _call(self, name: str, arguments: list[ast.expr]) -> _Evaluate:
        self._reads_outside = True
        evaluated = [self.expression(each) for each in arguments]

        def evaluate(variables: _Variables) -> Value:
            function = self._value_of(name)
            values = [each(variables) for each in evaluated]
            if isinstance(function, FunctionType):
                return self._callees.called(function, values)
            return builtin(function, [plain(each) for each in values])

        return evaluate


def _followed_by(first: Callable[[_Variables], None], following: _Run) -> _Run:
    def run(variables: _Variables) -> list[Value]:
        first(variables)
        return following(variables)

    return run


def _assign(name: str, value: _Evaluate) -> Callable[[_Variables], None]:
    def run(variables: _Variables) -> None:
        variables[name] = value(variables)

    return run


def _assign_items(names: list[str], value: _Evaluate) -> Callable[[_Variables], None]:
    def run(variables: _Variables) -> None:
        found = value(variables)
        if not isinstance(found, tuple) or len(found) != len(names):
            raise NotInColumnsError
        variables.update(zip(names, found, strict=True))

    return run


def _local(variables: _Variables, name: str) -> Value:
    if name not in variables:  # The function itself raises UnboundLocalError.
        raise NotInColumnsError
    return variables[name]


# --- values from outside the function --------------------------------------------------------------------------------


def _attribute_of(owner: Any, name: str) -> Any:
    """The value of a plain attribute. A computed one (a property, say) does not qualify: it may have side effects."""
    kind = type(owner)
    in_kind = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), _MISSING)
    is_plain = in_kind is _MISSING or type(in_kind) in (*KINDS, tuple, list)
    found = getattr(owner, "__dict__", {}).get(name, in_kind)
    looks_up_itself: Any = kind.__getattribute__
    if looks_up_itself is not object.__getattribute__ or not is_plain or found is _MISSING:
        raise NotInColumnsError
    return found


class _Sequence:
    """A tuple or a list from outside the function, whose items it looks up."""

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self._table: tuple[tuple[Any, ...], Column] | None = None
        """The tuple that was found last, and its items as a column, which stays valid: a tuple cannot change."""

    def items(self, places: Column) -> Column:
        found = self._find()
        if type(found) not in (tuple, list) or not found:
            raise NotInColumnsError
        least, largest = places.bounds()
        if least < -len(found) or largest >= len(found):
            raise NotInColumnsError
        if places.is_constant:
            return constant(found[places.data])
        if isinstance(found, list):
            return column_of([found[place] for place in places.data.tolist()])
        if self._table is None or self._table[0] is not found:
            self._table = found, column_of(found)
        table = self._table[1]
        return Column(table.kind, table.data[places.data], table.bounds() if table.kind == INTS else None)
