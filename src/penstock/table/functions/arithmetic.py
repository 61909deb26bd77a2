"""Functions on numbers. Arguments are never None; results beyond a type's range are what Java's `Math` gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from penstock.table import types as t
from penstock.table.types import DataType
from penstock.table.values.numbers import EXACT, decimal_of_type, to_float32, wrap


def of_double(function: Callable[..., float]) -> Callable[..., float]:
    """A function of DOUBLEs that gives NaN and infinity where Python raises."""

    def called(*values: Any) -> float:
        try:
            return float(function(*[float(value) for value in values]))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return called


def _logarithm(value: float) -> float:
    return -math.inf if value == 0 else math.log(value)


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    if exponent == 0:
        return 1.0
    try:
        result = math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    return result


def _log_of_base(base: float, value: float) -> float:
    return _logarithm(value) / _logarithm(base)


def _log10(value: float) -> float:
    return -math.inf if value == 0 else math.log10(value)


def _log2(value: float) -> float:
    return _logarithm(value) / math.log(2.0)


DOUBLES: dict[str, Callable[..., float]] = {
    "SQRT": of_double(math.sqrt),
    "EXP": of_double(math.exp),
    "LN": of_double(_logarithm),
    "LOG10": of_double(_log10),
    "LOG2": of_double(_log2),
    "SIN": of_double(math.sin),
    "COS": of_double(math.cos),
    "TAN": of_double(math.tan),
    "COT": of_double(lambda value: 1.0 / math.tan(value)),
    "ASIN": of_double(math.asin),
    "ACOS": of_double(math.acos),
    "ATAN": of_double(math.atan),
    "ATAN2": of_double(math.atan2),
    "SINH": of_double(math.sinh),
    "COSH": of_double(math.cosh),
    "TANH": of_double(math.tanh),
    "DEGREES": of_double(math.degrees),
    "RADIANS": of_double(math.radians),
    "POWER": of_double(_power),
}
LOG_OF_BASE = of_double(_log_of_base)


def rounded_to_whole(data_type: DataType, up: bool) -> Callable[[Any], Any]:
    """FLOOR and CEIL of a type."""
    if isinstance(data_type, t.DecimalType):
        mode = ROUND_CEILING if up else ROUND_FLOOR
        return lambda value: value.quantize(Decimal(1), mode, EXACT) + 0  # Zero has no sign.
    function: Callable[[float], float] = math.ceil if up else math.floor

    def whole(value: float) -> float:
        if math.isinf(value) or math.isnan(value):
            return value
        return math.copysign(float(function(value)), value)

    return whole


def sign(data_type: DataType) -> Callable[[Any], Any]:
    match data_type:
        case t.DecimalType(precision=precision, scale=scale):
            return lambda value: decimal_of_type(Decimal((value > 0) - (value < 0)), precision, scale)
        case t.IntegralType():
            return lambda value: (value > 0) - (value < 0)
    return lambda value: value if value == 0 or math.isnan(value) else math.copysign(1.0, value)


def round_to(source: DataType, result: DataType, truncates: bool) -> Callable[..., Any]:
    """ROUND and TRUNCATE to a number of digits behind the point, which may be negative."""
    mode = ROUND_DOWN if truncates else ROUND_HALF_UP

    def exact(value: Decimal, digits: int) -> Decimal:
        return value.quantize(Decimal(1).scaleb(-digits), mode, EXACT)

    match source:
        case t.IntegralType(bits=bits):
            return lambda value, digits=0: (
                value if digits >= 0 else wrap(int(exact(Decimal(value), digits).to_integral_value()), bits)
            )
        case t.DecimalType():
            assert isinstance(result, t.DecimalType)
            precision, scale = result.precision, result.scale
            return lambda value, digits=0: decimal_of_type(exact(value, min(digits, scale)), precision, scale)

    def rounded(value: float, digits: int = 0) -> float:
        if math.isinf(value) or math.isnan(value):
            return value
        text = Decimal(repr(value))
        found = float(exact(text, digits)) if -text.as_tuple().exponent > digits else value  # type: ignore[operator]
        found += 0.0  # Zero has no sign.
        return to_float32(found) if isinstance(source, t.FloatType) else found

    return rounded
