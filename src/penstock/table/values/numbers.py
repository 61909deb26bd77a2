"""Numbers as Java has them: whole numbers that wrap, floats of 32 bits, decimals of a fixed scale, their texts."""

from __future__ import annotations

import ctypes
import math
import re
from decimal import MAX_EMAX, MIN_EMIN, ROUND_DOWN, ROUND_HALF_UP, Clamped, Context, Decimal, Inexact, Rounded

import numpy

INT_MAX = 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

# Enough digits that sums, differences and products of DECIMAL(38, ...) are exact. The thread's own context is not used,
# because it belongs to the user's program.
EXACT = Context(prec=120, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX)
for _signal in (Inexact, Rounded, Clamped):
    EXACT.traps[_signal] = False
_DIVISION = EXACT.copy()
_DIVISION.prec = 38
_JAVA_FLOAT = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?)"
)


def wrap(number: int, bits: int) -> int:
    """The number that Java keeps of this one in so many bits.

    >>> wrap(2**31, 32)
    -2147483648
    """
    half = 1 << (bits - 1)
    return (number + half & (1 << bits) - 1) - half


def wrap8(number: int) -> int:
    return (number + 128 & 255) - 128


def wrap16(number: int) -> int:
    return (number + 32768 & 65535) - 32768


def wrap32(number: int) -> int:
    return (number + 2147483648 & 4294967295) - 2147483648


def wrap64(number: int) -> int:
    return number if LONG_MIN <= number <= LONG_MAX else wrap(number, 64)


def to_float32(number: float) -> float:
    """The nearest float of 32 bits; what is too large becomes infinite."""
    return ctypes.c_float(number).value


def divide_int(dividend: int, divisor: int) -> int:
    """Java's division: towards zero."""
    if divisor == 0:
        raise ZeroDivisionError("/ by zero")
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def remainder_int(dividend: int, divisor: int) -> int:
    """Java's remainder: it has the sign of the dividend."""
    if divisor == 0:
        raise ZeroDivisionError("/ by zero")
    rest = abs(dividend) % abs(divisor)
    return rest if dividend >= 0 else -rest


def divide_float(dividend: float, divisor: float) -> float:
    """IEEE division: by zero it is infinite or not a number."""
    if divisor != 0.0:
        return dividend / divisor
    if dividend == 0.0 or dividend != dividend:
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def remainder_float(dividend: float, divisor: float) -> float:
    """Java's % of floating point numbers."""
    if divisor == 0.0 or math.isinf(dividend) or dividend != dividend or divisor != divisor:
        return math.nan
    return math.fmod(dividend, divisor)


def decimal_of_type(number: Decimal, precision: int, scale: int) -> Decimal | None:
    """The number rounded to the scale, half up; None if it then has too many digits, as in Flink."""
    if number and number.adjusted() >= precision - scale:
        return None
    rounded = number.quantize(_UNITS[scale], ROUND_HALF_UP, EXACT)
    if not rounded:
        return rounded.copy_abs()  # Java's BigDecimal has no negative zero.
    return rounded if abs(rounded) < _LIMITS[precision - scale] else None


_UNITS = [Decimal(1).scaleb(-scale) for scale in range(39)]
_LIMITS = [Decimal(10) ** digits for digits in range(39)]


def add_decimals(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    return decimal_of_type(EXACT.add(left, right), precision, scale)


def subtract_decimals(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    return decimal_of_type(EXACT.subtract(left, right), precision, scale)


def multiply_decimals(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    return decimal_of_type(EXACT.multiply(left, right), precision, scale)


def divide_decimals(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    """Rounded twice, as Flink does it: to 38 digits, then to the scale."""
    if not right:
        raise ZeroDivisionError("Division by zero")
    return decimal_of_type(_DIVISION.divide(left, right), precision, scale)


def remainder_decimals(left: Decimal, right: Decimal, precision: int, scale: int) -> Decimal | None:
    if not right:
        raise ZeroDivisionError("Division by zero")
    return decimal_of_type(EXACT.remainder(left, right), precision, scale)


def integral_of_decimal(number: Decimal) -> int:
    """The whole part, as a Java long."""
    return wrap64(int(number.to_integral_value(ROUND_DOWN)))


def int_of_float(number: float) -> int:
    """Java's `(int) number`: the nearest int there is; 0 for NaN."""
    return _saturated(number, -(2**31), INT_MAX)


def long_of_float(number: float) -> int:
    """Java's `(long) number`."""
    return _saturated(number, LONG_MIN, LONG_MAX)


def _saturated(number: float, low: int, high: int) -> int:
    if number != number:
        return 0
    if number in (math.inf, -math.inf):
        return high if number > 0 else low
    return max(low, min(high, int(number)))


def decimal_of_float(number: float) -> Decimal:
    """As Java's `BigDecimal.valueOf`; NaN and the infinities have none."""
    if number != number or math.isinf(number):
        raise ValueError(f"{text_of_double(number)} is not a DECIMAL")
    return Decimal(repr(number))


def text_of_double(number: float) -> str:
    """As Java prints a double: `1.0`, `1.0E7`, `NaN`, `Infinity`."""
    return _java_text(number, repr(number))


def text_of_float(number: float) -> str:
    """As Java prints a float of 32 bits."""
    if number != number or math.isinf(number):
        return _java_text(number, "")
    return _java_text(number, numpy.format_float_scientific(numpy.float32(number), unique=True))


def _java_text(number: float, shortest: str) -> str:
    if number != number:
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0.0:
        return "-0.0" if math.copysign(1.0, number) < 0 else "0.0"
    sign, digits, exponent = Decimal(shortest).normalize(EXACT).as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)  # The value is 0.text * 10**point.
    prefix = "-" if sign else ""
    if 1e-3 <= abs(number) < 1e7:
        if point <= 0:
            return f"{prefix}0.{'0' * -point}{text}"
        return f"{prefix}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"{prefix}{text[0]}.{text[1:] or '0'}E{point - 1}"


def text_of_decimal(number: Decimal) -> str:
    """As Java's `toPlainString`."""
    return format(number, "f") if number or number.as_tuple().exponent else "0"


def float_of_text(text: str) -> float:
    """As Java's `Double.parseDouble`, which knows more spellings than Python, and fewer."""
    text = text.strip()
    if _JAVA_FLOAT.fullmatch(text) is None:
        raise ValueError(f"For input string: {text!r}. Invalid character found.")
    lowered = text.lower().replace("infinity", "inf")
    if "0x" in lowered:
        return float.fromhex(lowered.rstrip("fd") if "p" in lowered else lowered)
    return float(lowered if lowered.endswith("inf") or lowered.endswith("nan") else lowered.rstrip("fd"))


_INTEGER = re.compile(r"([+-]?)(\d*)(?:\.\d*)?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def integer_of_text(text: str, bits: int) -> int:
    """As Flink casts a text to a whole number: a fraction is allowed and dropped."""
    stripped = text.strip(" ")
    found = _INTEGER.fullmatch(stripped)
    if found is None or not (found[2] or "." in stripped):
        raise ValueError(f"For input string: '{text}'. Invalid character found.")
    number = int(found[1] + (found[2] or "0"))
    if wrap(number, bits) != number:
        raise ValueError(f"For input string: '{text}'. Overflow.")
    return number


def decimal_of_text(text: str) -> Decimal:
    stripped = text.strip(" ")
    if _DECIMAL.fullmatch(stripped) is None:
        raise ValueError(f"For input string: '{text}'. Invalid character found.")
    return Decimal(stripped)
