"""What Spark SQL makes of expressions, written down in Python from its documentation: a model to test against."""

from __future__ import annotations

import math
import operator
from typing import Any

from penstock.datastream.lowering.expressions import Call, Column, Constant, Expression
from penstock.datastream.lowering.program import DROPPED, IN_PYTHON, LOWERED
from penstock.datastream.lowering.shapes import taken_apart
from penstock.datastream.lowering.tracing import Branch, Dropped, Element, Tree

_COMPARE = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_CALCULATE = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _long(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def _truncated(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def evaluate(expression: Expression, row: tuple[Any, ...]) -> Any:
    if isinstance(expression, Column):
        return row[expression.index]
    if isinstance(expression, Constant):
        return expression.value
    return _called(expression, [evaluate(each, row) for each in expression.arguments])


def _called(expression: Call, values: list[Any]) -> Any:
    kind, _, name = expression.operation.partition("_")
    match expression.operation:
        case "is_none":
            return values[0] is None
        case "or_false" | "or_true":
            return values[0] if values[0] is not None else name == "true"
    if None in values:
        return None
    first = values[0]
    match expression.operation:
        case "int_floordiv":
            remainder = first - _truncated(first, values[1]) * values[1]
            return _long(_truncated(first, values[1]) - (1 if remainder < 0 else 0))
        case "int_mod":
            remainder = first - _truncated(first, values[1]) * values[1]
            return remainder + values[1] if remainder < 0 else remainder
        case "int_text":
            return str(first)
        case "int_rounded":
            return float(first)
        case "int_exactly":
            return float(first) if abs(first) <= 2**53 else None
        case "float_div":
            return None if values[1] == 0 else first / values[1]
        case "float_neg":
            return -first
        case "float_truth":
            return None if math.isnan(first) else first != 0
        case "string_len":
            return len(first)
        case "string_contains":
            return values[1] in first
        case "string_startswith" | "string_endswith":
            return getattr(first, name)(values[1])
        case "string_add":
            return first + values[1]
        case "int_truth" | "string_truth" | "boolean_truth":
            return bool(first)
    if name in _COMPARE:
        return None if kind == "float" and any(map(math.isnan, values)) else _COMPARE[name](*values)
    result = _CALCULATE[name](*values)
    return _long(result) if kind == "int" else result


def outcome(tree: Tree, row: tuple[Any, ...]) -> tuple[int, Any]:
    """The verdict, and the fields of the element if it is lowered."""
    if isinstance(tree, Branch):
        answer = evaluate(tree.condition, row)
        return (IN_PYTHON, None) if answer is None else outcome(tree.if_true if answer else tree.if_false, row)
    if not isinstance(tree, (Dropped, Element)) or any(evaluate(each, row) is None for each in tree.computed):
        return IN_PYTHON, None
    if isinstance(tree, Dropped):
        return DROPPED, None
    shape, fields = taken_apart(tree.value)
    return LOWERED, shape.elements([[evaluate(each, row)] for each in fields], 1)[0]
