"""What a user's function gets instead of real values while it is traced: its operators build expressions."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from penstock.datastream.lowering.expressions import (
    LARGEST_EXACT,
    Call,
    Column,
    Constant,
    Expression,
    Kind,
    NotLowerable,
    call,
    constant,
)


class Path(Protocol):
    """The path through a function on which a value is used."""

    def decide(self, condition: Expression) -> bool:
        """Called where a function tests whether an expression is true: True if it is, on this path."""

    def computed(self, expression: Call) -> None:
        """Called for every operation: Python would have done it here, whatever becomes of the result."""


class Value:
    """An expression in the place of a value.

    What is not defined here cannot be traced: Python raises, and the function is not lowered. So whatever would let a
    function see that this is not a real value (its text, its hash, its length) must raise, too.
    """

    __slots__ = ("_expression", "_path")

    def __init__(self, expression: Expression, path: Path) -> None:
        self._expression = expression
        self._path = path

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Value:
        return self._calculated("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self._calculated("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self._calculated("sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self._calculated("sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return self._calculated("mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self._calculated("mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self._divided(self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._divided(other, self)

    def __floordiv__(self, other: Any) -> Value:
        return self._whole_division("int_floordiv", other)

    def __mod__(self, other: Any) -> Value:
        return self._whole_division("int_mod", other)

    def __neg__(self) -> Value:
        if self._expression.kind == "float":
            return self._with(call("float_neg", self._expression))
        return self._calculated("sub", 0, self._of_kind("int"))

    def __pos__(self) -> Value:
        return self._of_kind("int", "float")

    def __abs__(self) -> Value:
        # A float's sign is more than its order: -0.0 is not less than 0.0.
        return -self if self._of_kind("int") < 0 else self

    # --- comparison --------------------------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Value:
        return self._compared("lt", other)

    def __le__(self, other: Any) -> Value:
        return self._compared("le", other)

    def __gt__(self, other: Any) -> Value:
        return self._compared("gt", other)

    def __ge__(self, other: Any) -> Value:
        return self._compared("ge", other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self._compared("eq", other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self._compared("ne", other)

    def __and__(self, other: Any) -> bool:
        return self._truths(other) == (True, True)

    def __or__(self, other: Any) -> bool:
        return self._truths(other) != (False, False)

    def __bool__(self) -> bool:
        expression = self._expression
        if expression.kind not in ("int", "float", "string", "boolean"):
            raise NotLowerable(f"the truth of a {expression.kind}")
        return self._path.decide(_or_if_none(False, call(f"{expression.kind}_truth", expression), expression))

    # --- text --------------------------------------------------------------------------------------------------------

    def startswith(self, prefix: str) -> Value:
        return self._searched("string_startswith", prefix)

    def endswith(self, suffix: str) -> Value:
        return self._searched("string_endswith", suffix)

    def __contains__(self, item: Any) -> bool:
        return bool(self._searched("string_contains", item))

    # --- what cannot be -----------------------------------------------------------------------------------------------

    def _refuse(self, *_: Any) -> NoReturn:
        raise NotLowerable("the function looks at a value in a way that Spark SQL has no counterpart for")

    __hash__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = _refuse
    __int__ = __float__ = __index__ = __complex__ = _refuse

    # --- building ----------------------------------------------------------------------------------------------------

    def _with(self, expression: Call) -> Value:
        self._path.computed(expression)
        return Value(expression, self._path)

    def _of_kind(self, *kinds: Kind) -> Value:
        if self._expression.kind not in kinds:
            raise NotLowerable(f"a {self._expression.kind} where only {' and '.join(kinds)} will do")
        return self

    def _calculated(self, operation: str, left: Any, right: Any) -> Value:
        first, second = expression_of(left), expression_of(right)
        match first.kind, second.kind:
            case "int", "int":
                return self._with(call(f"int_{operation}", first, second))
            case (("int" | "float"), ("int" | "float")):
                return self._with(call(f"float_{operation}", _rounded(first), _rounded(second)))
            case "string", "string" if operation == "add":
                return self._with(call("string_add", first, second))
        raise NotLowerable(f"{operation} of a {first.kind} and a {second.kind}")

    def _divided(self, left: Any, right: Any) -> Value:
        first, second = expression_of(left), expression_of(right)
        match first.kind, second.kind:
            case "int", "int":
                return self._with(call("float_div", _exactly(first), _exactly(second)))
            case (("int" | "float"), ("int" | "float")):
                return self._with(call("float_div", _rounded(first), _rounded(second)))
        raise NotLowerable(f"division of a {first.kind} by a {second.kind}")

    def _whole_division(self, operation: str, divisor: Any) -> Value:
        if type(divisor) is not int or divisor <= 0:
            raise NotLowerable("a divisor that is not a positive constant")
        return self._with(call(operation, self._of_kind("int")._expression, constant(divisor)))

    def _compared(self, operation: str, other: Any) -> Value:
        first, second = self._expression, expression_of(other)
        match first.kind, second.kind:
            case ("int", "int") | ("float", "float") | ("string", "string"):
                compared = call(f"{first.kind}_{operation}", first, second)
            case (("int" | "float"), ("int" | "float")):
                compared = call(f"float_{operation}", _exactly(first), _exactly(second))
            case "boolean", "boolean" if operation in ("eq", "ne"):
                compared = call(f"boolean_{operation}", first, second)
            case _:
                raise NotLowerable(f"comparison of a {first.kind} with a {second.kind}")
        return self._with(_equal_to_none(operation, compared, first, second))

    def _truths(self, other: Any) -> tuple[bool, bool]:
        if expression_of(other).kind != "boolean":
            raise NotLowerable("& and | of other than truth values")
        own = self._of_kind("boolean")._expression
        asked = [self._path.decide(own), other if isinstance(other, bool) else self._path.decide(expression_of(other))]
        return asked[0], asked[1]

    def _searched(self, operation: str, text: Any) -> Value:
        found = expression_of(text)
        if found.kind != "string":
            raise NotLowerable(f"{operation} of a {found.kind}")
        return self._with(call(operation, self._of_kind("string")._expression, found))


def expression_of(value: Any) -> Expression:
    return value._expression if isinstance(value, Value) else constant(value)


def _or_if_none(answer: bool, truth: Call, *operands: Expression) -> Call:
    """`truth`, or `answer` where a column is None, for which Python's answer is known, too.

    Only where null can mean nothing but None: not where numbers are converted, or compared with a NaN.
    """
    kinds = {each.kind for each in operands}
    is_plain = not any(isinstance(each, Call) for each in operands) and len(kinds) == 1 and "float" not in kinds
    if is_plain and any(isinstance(each, Column) and each.is_nullable for each in operands):
        return call("or_true" if answer else "or_false", truth)
    return truth


def _equal_to_none(operation: str, compared: Call, first: Expression, second: Expression) -> Call:
    """A column and a constant: None equals no constant. Everything else about None is left to Python."""
    if operation not in ("eq", "ne") or not (isinstance(first, Constant) or isinstance(second, Constant)):
        return compared
    return _or_if_none(operation == "ne", compared, first, second)


def _rounded(expression: Expression) -> Expression:
    if expression.kind == "float":
        return expression
    if isinstance(expression, Constant):
        return constant(float(expression.value))  # type: ignore[arg-type]
    return call("int_rounded", expression)


def _exactly(expression: Expression) -> Expression:
    if expression.kind == "float":
        return expression
    if isinstance(expression, Constant):
        if abs(expression.value) > LARGEST_EXACT:  # type: ignore[arg-type]
            raise NotLowerable(f"{expression.value} is not a float")
        return constant(float(expression.value))  # type: ignore[arg-type]
    return call("int_exactly", expression)
