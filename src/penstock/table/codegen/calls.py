"""How each built-in operator and function is written: a table from its name in plans to code."""

from __future__ import annotations

import math
import operator
import random
import uuid
from collections.abc import Callable
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.codegen.emitter import Code, Emitter, merged, nullable_text
from penstock.table.codegen.rex import Call, Node, Sarg, Symbol
from penstock.table.functions import arithmetic, collections, json_paths, strings, temporal
from penstock.table.types import DataType
from penstock.table.values import numbers as n
from penstock.table.values import times
from penstock.table.values.casts import cast_function

_INSTANT = (t.TimestampType, t.LocalZonedTimestampType)
_INTERVAL = (t.DayTimeIntervalType, t.YearMonthIntervalType)
_DECIMAL_OPERATIONS = {
    "+": n.add_decimals,
    "-": n.subtract_decimals,
    "*": n.multiply_decimals,
    "/": n.divide_decimals,
    "%": n.remainder_decimals,
}
_WRAPS = {8: n.wrap8, 16: n.wrap16, 32: n.wrap32, 64: n.wrap64}


def _unsupported(call: Call) -> UnsupportedFeatureError:
    types = ", ".join(operand.type.as_sql() for operand in call.operands)
    return UnsupportedFeatureError(f"the SQL function {call.function} is not supported for ({types})")


def _converted(emitter: Emitter, node: Node, target: DataType) -> Code:
    """The operand as a value of the numeric type in which the operation is done."""
    code = emitter.emit(node)
    convert = cast_function(node.type, target, emitter.context.time_zone)
    if convert is None or (isinstance(node.type, t.IntegralType) and isinstance(target, t.IntegralType)):
        return code
    return Code(f"{emitter.constant(convert)}({code.text})", code.checks)


def _arithmetic(emitter: Emitter, call: Call) -> Code:
    if len(call.operands) != 2 or not all(isinstance(one.type, t.NumericType) for one in call.operands):
        return _time_arithmetic(emitter, call)
    symbol = {"MOD": "%", "/INT": "/"}.get(call.function, call.function)
    result = call.type
    if isinstance(result, t.DecimalType):
        return _decimal_arithmetic(emitter, call, symbol, result)
    codes = [_converted(emitter, one, result) for one in call.operands]
    if any(isinstance(one.type, t.DecimalType) for one in call.operands) and isinstance(result, t.IntegralType):
        # MOD(DECIMAL, INT) is INT: the remainder is exact and cut only then.
        raise _unsupported(call)
    left, right = (code.text for code in codes)
    if isinstance(result, t.IntegralType):
        divide = {"/": n.divide_int, "%": n.remainder_int}.get(symbol)
        text = f"{left} {symbol} {right}" if divide is None else f"{emitter.constant(divide)}({left}, {right})"
        return Code(f"{emitter.constant(_WRAPS[result.bits])}({text})", merged(codes))
    divide_floats = {"/": n.divide_float, "%": n.remainder_float}.get(symbol)
    if divide_floats is None:
        text = f"({left} {symbol} {right})"
    else:
        text = f"{emitter.constant(divide_floats)}({left}, {right})"
    return Code(f"{emitter.constant(n.to_float32)}({text})" if isinstance(result, t.FloatType) else text, merged(codes))


def _decimal_arithmetic(emitter: Emitter, call: Call, symbol: str, result: t.DecimalType) -> Code:
    exact = t.DecimalType(38, 0)
    codes = [
        _converted(emitter, one, exact) if isinstance(one.type, t.IntegralType) else emitter.emit(one)
        for one in call.operands
    ]
    function = emitter.constant(_DECIMAL_OPERATIONS[symbol])
    text = f"{function}({codes[0].text}, {codes[1].text}, {result.precision}, {result.scale})"
    return emitter.checked(text, merged(codes))  # NULL if there are too many digits.


def _time_arithmetic(emitter: Emitter, call: Call) -> Code:
    left, right = call.operands[:2]
    if isinstance(left.type, _INTERVAL) and not isinstance(right.type, (*_INTERVAL, t.NumericType)):
        left, right = right, left  # INTERVAL + TIMESTAMP
    sign = "-" if call.function in ("-", "MINUS_DATE") else "+"
    codes = [emitter.emit(left), emitter.emit(right)]
    a, b = codes[0].text, codes[1].text
    checks = merged(codes)
    match left.type, right.type, call.type:
        case t.TimestampType() | t.LocalZonedTimestampType(), t.DayTimeIntervalType(), _:
            return Code(f"({a} {sign} {b} * 1000000)", checks)
        case t.TimestampType() | t.LocalZonedTimestampType(), t.YearMonthIntervalType(), _:
            return Code(f"{emitter.constant(times.add_months_to_timestamp)}({a}, {sign}{b})", checks)
        case t.DateType(), t.DayTimeIntervalType(), _:
            return Code(f"({a} {sign} {emitter.constant(n.divide_int)}({b}, 86400000))", checks)
        case t.DateType(), t.YearMonthIntervalType(), _:
            return Code(f"{emitter.constant(times.add_months)}({a}, {sign}{b})", checks)
        case t.TimeType(), t.DayTimeIntervalType(), _:
            return Code(f"(({a} {sign} {b}) % 86400000)", checks)
        case (t.DayTimeIntervalType() | t.YearMonthIntervalType(), _, _) if type(left.type) is type(right.type):
            return Code(f"({a} {sign} {b})", checks)
        case t.DayTimeIntervalType() | t.YearMonthIntervalType(), t.IntegralType(), _ if call.function == "*":
            return Code(f"({a} * {b})", checks)
        case t.TimestampType() | t.LocalZonedTimestampType() | t.DateType(), _, _ if sign == "-":
            return _time_difference(emitter, call, codes)
    raise _unsupported(call)


def _time_difference(emitter: Emitter, call: Call, codes: list[Code]) -> Code:
    if not all(isinstance(one.type, (*_INSTANT, t.DateType)) for one in call.operands[:2]):
        raise _unsupported(call)
    a, b = (
        f"({code.text} * {times.DAY})" if isinstance(one.type, t.DateType) else code.text
        for code, one in zip(codes, call.operands, strict=False)
    )
    if isinstance(call.type, t.YearMonthIntervalType):
        return Code(f"{emitter.constant(times.months_between)}({a}, {b})", merged(codes))
    return Code(f"({a} // 1000000 - {b} // 1000000)", merged(codes))


def _negated(emitter: Emitter, call: Call) -> Code:
    code = emitter.emit(call.operands[0])
    if isinstance(call.type, t.IntegralType):
        return Code(f"{emitter.constant(_WRAPS[call.type.bits])}(-{code.text})", code.checks)
    # A Decimal is negated without rounding to the context of the thread.
    text = f"{code.text}.copy_negate()" if isinstance(call.type, t.DecimalType) else f"(-{code.text})"
    return Code(text, code.checks)


def _comparison(symbol: str) -> Callable[[Emitter, Call], Code]:
    def emit(emitter: Emitter, call: Call) -> Code:
        left, right = call.operands
        inexact = (t.FloatType, t.DoubleType)
        codes = [emitter.emit(one) for one in call.operands]
        if isinstance(left.type, inexact) or isinstance(right.type, inexact):
            codes = [_converted(emitter, one, t.DoubleType()) for one in call.operands]
        elif not _comparable(left.type, right.type):
            raise _unsupported(call)
        return Code(f"({codes[0].text} {symbol} {codes[1].text})", merged(codes))

    return emit


def _comparable(left: DataType, right: DataType) -> bool:
    families = [
        (t.NumericType,),
        (t.CharType, t.VarCharType),
        (t.BinaryType, t.VarBinaryType),
        (t.TimestampType,),
        (t.LocalZonedTimestampType,),
        (t.DateType,),
        (t.TimeType,),
        (t.BooleanType,),
        (t.DayTimeIntervalType,),
        (t.YearMonthIntervalType,),
        (t.ArrayType,),
        (t.MapType,),
        (t.RowType,),
    ]
    return any(isinstance(left, family) and isinstance(right, family) for family in families)


def _and(emitter: Emitter, call: Call) -> Code:
    return _logical(emitter, call, "False", "True")


def _or(emitter: Emitter, call: Call) -> Code:
    return _logical(emitter, call, "True", "False")


def _logical(emitter: Emitter, call: Call, decides: str, neutral: str) -> Code:
    """The first operand that decides ends it; otherwise UNKNOWN if one is, as Flink evaluates it."""
    if not call.type.is_nullable:
        return Code("(" + f" {call.function.lower()} ".join(emitter.value(one) for one in call.operands) + ")")
    names, steps = [], []
    for one in call.operands:
        name = emitter.temporary()
        names.append(name)
        steps.append(f"{decides} if ({name} := {emitter.value(one)}) is {decides} else ")
    unknown = " or ".join(f"{name} is None" for name in names)
    return emitter.checked(f"({''.join(steps)}None if {unknown} else {neutral})", ())


def _not(emitter: Emitter, call: Call) -> Code:
    code = emitter.emit(call.operands[0])
    return Code(f"(not {code.text})", code.checks)


def _is(test: str) -> Callable[[Emitter, Call], Code]:
    return lambda emitter, call: Code(f"({emitter.value(call.operands[0])} {test})")


def _distinct_from(symbol: str) -> Callable[[Emitter, Call], Code]:
    def emit(emitter: Emitter, call: Call) -> Code:
        return Code(f"({' '.join([emitter.value(call.operands[0]), symbol, emitter.value(call.operands[1])])})")

    return emit


def _case(emitter: Emitter, call: Call) -> Code:
    *branches, otherwise = call.operands
    parts = [
        f"{emitter.value(value)} if {emitter.truth(condition)} else "
        for condition, value in zip(branches[::2], branches[1::2], strict=True)
    ]
    return emitter.checked(f"({''.join(parts)}{emitter.value(otherwise)})", (), call.type)


def _coalesce(emitter: Emitter, call: Call) -> Code:
    *first, last = call.operands
    parts = []
    for one in first:
        name = emitter.temporary()
        parts.append(f"{name} if ({name} := {emitter.value(one)}) is not None else ")
    return emitter.checked(f"({''.join(parts)}{emitter.value(last)})", (), call.type)


def _search(emitter: Emitter, call: Call) -> Code:
    node, sarg = call.operands
    if not isinstance(sarg, Sarg):
        raise _unsupported(call)
    code = emitter.emit(node)
    name = emitter.temporary()
    points = {one.lower for one in sarg.ranges if one.lower is not None and one.lower == one.upper}
    tests = [f"{name} in {emitter.constant(frozenset(points))}"] if points else []
    for one in sarg.ranges:
        if one.lower is not None and one.lower == one.upper:
            continue
        lower = [f"{emitter.literal(one.lower).text} {'<=' if one.is_lower_closed else '<'} "]
        upper = [f" {'<=' if one.is_upper_closed else '<'} {emitter.literal(one.upper).text}"]
        tests.append(
            "".join([*(lower if one.lower is not None else []), name, *(upper if one.upper is not None else [])])
        )
    # A range without bounds is every value.
    found = " or ".join("True" if test == name else test for test in tests) or "False"
    if sarg.null_as == "UNKNOWN":
        return Code(f"({found})", (*code.checks, f"({name} := {code.text}) is None"))
    null = "True" if sarg.null_as == "TRUE" else "False"
    return Code(f"({null} if ({name} := {nullable_text(code)}) is None else ({found}))")


def _cast(emitter: Emitter, call: Call) -> Code:
    (node,) = call.operands
    code = emitter.emit(node)
    convert = cast_function(node.type, call.type, emitter.context.time_zone)
    if convert is None:
        return code
    text = f"{emitter.constant(convert)}({code.text})"
    return emitter.checked(text, code.checks) if isinstance(call.type, t.DecimalType) else Code(text, code.checks)


def _try_cast(emitter: Emitter, call: Call) -> Code:
    (node,) = call.operands
    convert = cast_function(node.type, call.type, emitter.context.time_zone)
    if convert is None:
        return emitter.emit(node)

    def attempt(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, ArithmeticError):
            return None

    code = emitter.emit(node)
    return emitter.checked(f"{emitter.constant(attempt)}({code.text})", code.checks)


def _row(emitter: Emitter, call: Call) -> Code:
    return Code("(" + "".join(f"{emitter.value(one)}, " for one in call.operands) + ")")


def _array(emitter: Emitter, call: Call) -> Code:
    return Code("[" + ", ".join(emitter.value(one) for one in call.operands) + "]")


def _map(emitter: Emitter, call: Call) -> Code:
    values = [emitter.value(one) for one in call.operands]
    return Code("{" + ", ".join(f"{k}: {v}" for k, v in zip(values[::2], values[1::2], strict=True)) + "}")


def _item(emitter: Emitter, call: Call) -> Code:
    container = call.operands[0].type
    if isinstance(container, t.MapType):
        return emitter.strict(dict.get, *call.operands, may_be_null=True)
    if isinstance(container, t.ArrayType):
        return emitter.strict(_array_item, *call.operands, may_be_null=True)
    raise _unsupported(call)


def _array_item(values: list[Any], index: int) -> Any:
    return values[index - 1] if 1 <= index <= len(values) else None


def _to_unit(emitter: Emitter, call: Call) -> Code:
    """FLOOR and CEIL, of numbers or to a unit of time."""
    up = call.function == "CEIL"
    if len(call.operands) == 1:
        if isinstance(call.operands[0].type, t.IntegralType):
            return emitter.emit(call.operands[0])
        return emitter.strict(arithmetic.rounded_to_whole(call.operands[0].type, up), call.operands[0])
    value, unit = call.operands
    if not isinstance(unit, Symbol) or not isinstance(value.type, (t.TimestampType, t.LocalZonedTimestampType)):
        raise _unsupported(call)
    zone = emitter.context.time_zone if isinstance(value.type, t.LocalZonedTimestampType) else "UTC"
    return emitter.strict(temporal.rounding_to(unit.name, up, zone), value)


def _extract(emitter: Emitter, call: Call) -> Code:
    unit, value = call.operands
    if not isinstance(unit, Symbol):
        raise _unsupported(call)
    return emitter.strict(temporal.extraction(unit.name, value.type, emitter.context.time_zone), value)


def _trim(emitter: Emitter, call: Call) -> Code:
    side, characters, text = call.operands
    if not isinstance(side, Symbol):
        raise _unsupported(call)
    return emitter.strict(strings.TRIMS[side.name], text, characters)


def _now(emitter: Emitter, call: Call) -> Code:
    return Code(f"{emitter.constant(emitter.context.now_nanos)}()")


def _strict(function: Callable[..., Any], may_be_null: bool = False) -> Callable[[Emitter, Call], Code]:
    return lambda emitter, call: emitter.strict(function, *call.operands, may_be_null=may_be_null)


def _same(emitter: Emitter, call: Call) -> Code:
    return emitter.emit(call.operands[0])


def _sign(emitter: Emitter, call: Call) -> Code:
    return emitter.strict(arithmetic.sign(call.operands[0].type), *call.operands)


def _round(emitter: Emitter, call: Call) -> Code:
    function = arithmetic.round_to(call.operands[0].type, call.type, call.function == "TRUNCATE")
    return emitter.strict(function, *call.operands, may_be_null=isinstance(call.type, t.DecimalType))


def _log(emitter: Emitter, call: Call) -> Code:
    function = arithmetic.DOUBLES["LN"] if len(call.operands) == 1 else arithmetic.LOG_OF_BASE
    return emitter.strict(function, *call.operands)


def _extreme(choose: Callable[..., Any]) -> Callable[[Emitter, Call], Code]:
    def emit(emitter: Emitter, call: Call) -> Code:
        codes = [_cast_to(emitter, operand, call.type) for operand in call.operands]
        return Code(f"{emitter.constant(choose)}({', '.join(code.text for code in codes)})", merged(codes))

    return emit


def _cast_to(emitter: Emitter, node: Node, target: DataType) -> Code:
    code = emitter.emit(node)
    convert = cast_function(node.type, target, emitter.context.time_zone)
    return code if convert is None else Code(f"{emitter.constant(convert)}({code.text})", code.checks)


def _lenient(function: Callable[..., Any]) -> Callable[[Emitter, Call], Code]:
    return lambda emitter, call: emitter.lenient(function, *call.operands, data_type=call.type)


def _zoned(make: Callable[..., Callable[..., Any]]) -> Callable[[Emitter, Call], Code]:
    """A function that depends on the types of its arguments and on the time zone."""

    def emit(emitter: Emitter, call: Call) -> Code:
        function = make([operand.type for operand in call.operands], emitter.context.time_zone)
        return emitter.strict(function, *call.operands, may_be_null=True)

    return emit


def _unix_timestamp(emitter: Emitter, call: Call) -> Code:
    if call.operands:
        return _zoned(temporal.unix_timestamp)(emitter, call)
    return Code(f"({emitter.constant(emitter.context.now_nanos)}() // 1000000000)")


def _local_now(emitter: Emitter, call: Call) -> Code:
    now, zone = emitter.constant(emitter.context.now_nanos), emitter.constant(emitter.context.time_zone)
    local = f"{emitter.constant(times.to_local)}({now}(), {zone})"
    match call.function:
        case "CURRENT_DATE":
            return Code(f"({local} // 86400000000000)")
        case "LOCALTIME" | "CURRENT_TIME":
            return Code(f"({local} % 86400000000000 // 1000000)")
    return Code(local)


def _pi(emitter: Emitter, call: Call) -> Code:
    return Code(repr({"PI": math.pi, "E": math.e}[call.function]))


def _random(emitter: Emitter, call: Call) -> Code:
    if call.operands:
        raise _unsupported(call)
    return Code(f"{emitter.constant(random.random)}()")


def _uuid(emitter: Emitter, call: Call) -> Code:
    return Code(f"str({emitter.constant(uuid.uuid4)}())")


def _typeof(emitter: Emitter, call: Call) -> Code:
    return Code(repr(call.operands[0].type.as_sql()))


def _is_json(is_not: bool) -> Callable[[Emitter, Call], Code]:
    def emit(emitter: Emitter, call: Call) -> Code:
        kind = call.function.rpartition(" ")[2]
        text = emitter.value(call.operands[0])
        name = emitter.temporary()
        found = f"{emitter.constant(json_paths.is_json)}({name}, {kind!r})"
        return Code(f"(({name} := {text}) is not None and {'not ' if is_not else ''}{found})")

    return emit


def _symbols(call: Call) -> list[str]:
    return [operand.name for operand in call.operands if isinstance(operand, Symbol)]


def _json_value(emitter: Emitter, call: Call) -> Code:
    """JSON_VALUE(text, path, [behavior, default] ON EMPTY, [behavior, default] ON ERROR)."""
    text, path, *rest = call.operands
    behaviors = {"EMPTY": ("NULL", "None"), "ERROR": ("NULL", "None")}
    for behavior, otherwise, place in zip(rest[::3], rest[1::3], rest[2::3], strict=False):
        if not isinstance(behavior, Symbol) or not isinstance(place, Symbol):
            raise _unsupported(call)
        behaviors[place.name] = behavior.name, emitter.value(otherwise)
    convert = cast_function(t.DataTypes.STRING(), call.type, emitter.context.time_zone)
    codes = [emitter.emit(text), emitter.emit(path)]
    function = json_paths.json_value(convert, behaviors["EMPTY"][0], behaviors["ERROR"][0])
    arguments = [*(code.text for code in codes), behaviors["EMPTY"][1], behaviors["ERROR"][1]]
    return emitter.checked(f"{emitter.constant(function)}({', '.join(arguments)})", merged(codes))


def _json_query(emitter: Emitter, call: Call) -> Code:
    text, path = call.operands[:2]
    symbols = [*_symbols(call), "WITHOUT_ARRAY", "NULL", "NULL"][:3]
    return emitter.strict(json_paths.json_query(*symbols), text, path, may_be_null=True)


def _json_exists(emitter: Emitter, call: Call) -> Code:
    return emitter.strict(json_paths.json_exists, *call.operands[:2])


def _json_string(emitter: Emitter, call: Call) -> Code:
    write = json_paths.json_writer(call.operands[0].type)
    code = emitter.emit(call.operands[0])
    return Code(f"{emitter.constant(write)}({code.text})", code.checks)


def _json_parts(emitter: Emitter, operands: tuple[Node, ...]) -> list[str]:
    """Expressions of the JSON texts of values; those that are JSON already stay as they are."""
    parts = []
    for operand in operands:
        is_json = isinstance(operand, Call) and operand.function.startswith(("JSON_OBJECT", "JSON_ARRAY", "JSON"))
        is_json = is_json and not (isinstance(operand, Call) and operand.function in ("JSON_VALUE", "JSON_QUERY"))
        write = str if is_json else json_paths.json_writer(operand.type)
        name = emitter.temporary()
        text = f"{emitter.constant(write)}({name})"
        parts.append(f"(None if ({name} := {emitter.value(operand)}) is None else {text})")
    return parts


def _json_object(emitter: Emitter, call: Call) -> Code:
    behavior, *pairs = call.operands
    if not isinstance(behavior, Symbol):
        raise _unsupported(call)
    keys, values = [emitter.value(key) for key in pairs[::2]], _json_parts(emitter, tuple(pairs[1::2]))
    function = emitter.constant(json_paths.json_object if behavior.name != "ABSENT" else json_paths.json_object_present)
    return Code(f"{function}([{', '.join(keys)}], [{', '.join(values)}])")


def _json_array(emitter: Emitter, call: Call) -> Code:
    behavior, *values = call.operands
    if not isinstance(behavior, Symbol):
        raise _unsupported(call)
    function = emitter.constant(json_paths.json_array if behavior.name != "ABSENT" else json_paths.json_array_present)
    return Code(f"{function}([{', '.join(_json_parts(emitter, tuple(values)))}])")


CALLS: dict[str, Callable[[Emitter, Call], Code]] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "MOD", "/INT", "MINUS_DATE"), _arithmetic),
    **{sql: _comparison(python) for sql, python in (("=", "=="), ("<>", "!="), ("<", "<"), (">", ">"))},
    **{sql: _comparison(sql) for sql in ("<=", ">=")},
    "AND": _and,
    "OR": _or,
    "NOT": _not,
    "IS NULL": _is("is None"),
    "IS NOT NULL": _is("is not None"),
    "IS TRUE": _is("is True"),
    "IS NOT TRUE": _is("is not True"),
    "IS FALSE": _is("is False"),
    "IS NOT FALSE": _is("is not False"),
    "IS DISTINCT FROM": _distinct_from("!="),
    "IS NOT DISTINCT FROM": _distinct_from("=="),
    "CASE": _case,
    "IF": _case,
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "SEARCH": _search,
    "CAST": _cast,
    "TRY_CAST": _try_cast,
    "REINTERPRET": _same,
    "ROW": _row,
    "ARRAY": _array,
    "MAP": _map,
    "ITEM": _item,
    "CARDINALITY": _strict(len),
    "FLOOR": _to_unit,
    "CEIL": _to_unit,
    "EXTRACT": _extract,
    "TRIM": _trim,
    "PROCTIME": _now,
    "PROCTIME_MATERIALIZE": _now,  # The attribute itself has no value.
    "CURRENT_TIMESTAMP": _now,
    "NOW": _now,
    "CURRENT_ROW_TIMESTAMP": _now,
    "ABS": _strict(operator.abs),
    **{name: _strict(function) for name, function in strings.FUNCTIONS.items()},
    **{name: _strict(function, may_be_null=True) for name, function in strings.NULLABLE.items()},
    **{name: _lenient(function) for name, function in strings.LENIENT.items()},
    **{name: _strict(function) for name, function in arithmetic.DOUBLES.items()},
    **{name: _strict(function, may_be_null=True) for name, function in collections.FUNCTIONS.items()},
    **{name: _lenient(function) for name, function in collections.WITH_NULL_ELEMENTS.items()},
    **{name: _zoned(make) for name, make in temporal.ZONED.items()},
    "UNIX_TIMESTAMP": _unix_timestamp,
    "SIGN": _sign,
    "ROUND": _round,
    "TRUNCATE": _round,
    "LOG": _log,
    "GREATEST": _extreme(max),
    "LEAST": _extreme(min),
    "PI": _pi,
    "E": _pi,
    "RAND": _random,
    "UUID": _uuid,
    "TYPEOF": _typeof,
    **dict.fromkeys(("CURRENT_DATE", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_TIME"), _local_now),
    **{f"IS JSON {kind}": _is_json(False) for kind in ("VALUE", "OBJECT", "ARRAY", "SCALAR")},
    **{f"IS NOT JSON {kind}": _is_json(True) for kind in ("VALUE", "OBJECT", "ARRAY", "SCALAR")},
    "JSON_VALUE": _json_value,
    "JSON_QUERY": _json_query,
    "JSON_EXISTS": _json_exists,
    "JSON_STRING": _json_string,
    "JSON_OBJECT": _json_object,
    "JSON_ARRAY": _json_array,
}
CALLS["MINUS"] = _arithmetic
CALLS["ABS"] = lambda emitter, call: _absolute(emitter, call)
CALLS["-/1"] = _negated


def _absolute(emitter: Emitter, call: Call) -> Code:
    code = emitter.emit(call.operands[0])
    if isinstance(call.type, t.IntegralType):
        return Code(f"{emitter.constant(_WRAPS[call.type.bits])}(abs({code.text}))", code.checks)
    text = f"{code.text}.copy_abs()" if isinstance(call.type, t.DecimalType) else f"abs({code.text})"
    return Code(text, code.checks)


def _minus(emitter: Emitter, call: Call) -> Code:
    return _negated(emitter, call) if len(call.operands) == 1 else _arithmetic(emitter, call)


CALLS["-"] = _minus
