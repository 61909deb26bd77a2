"""Compiles the expressions of a plan's node to one Python function."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.codegen.calls import CALLS
from penstock.table.codegen.emitter import Emitter
from penstock.table.codegen.rex import InputRef, Node, parse_rex
from penstock.table.logical_types import external_converter, internal_converter
from penstock.table.types import DataType, RowType

RowTuple = tuple[Any, ...]
Rex = Mapping[str, Any]


def system_time_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class ExpressionContext:
    """What expressions need besides their input."""

    time_zone: str = "UTC"
    functions: Mapping[str, Any] = field(default_factory=dict)
    """The user's functions, by their names in the plan: callables, or objects with the methods of aggregate functions.
    They take and return what users see."""
    current_time_ms: Callable[[], int] = system_time_ms

    def now_nanos(self) -> int:
        return self.current_time_ms() * 1_000_000

    def function_for(self, name: str, arguments: Sequence[DataType], result: DataType) -> Callable[..., Any]:
        """The user's function, between values inside rows."""
        function = self.user_function(name)
        inward = [external_converter(one, self.time_zone) or _same for one in arguments]
        outward = internal_converter(result, self.time_zone) or _same
        return lambda *values: outward(function(*[f(value) for f, value in zip(inward, values, strict=True)]))

    def user_function(self, name: str) -> Any:
        """The user's function by its name in the plan."""
        function: Any = self.functions.get(name) or self.functions.get(name.split(".")[-1].strip("`").lower())
        if function is None:
            raise UnsupportedFeatureError(f"the function {name} is not known here; known are {sorted(self.functions)}")
        return function


def _same(value: Any) -> Any:
    return value


@dataclass
class CompiledCalc:
    """A condition and a projection as one function over a list of rows. It is pickled as what it was made from."""

    projection: Sequence[Rex] | None
    condition: Rex | None
    input_type: RowType
    context: ExpressionContext
    with_kind: bool = False

    def __post_init__(self) -> None:
        emitter = Emitter(CALLS, self.context)
        condition = None if self.condition is None else emitter.truth(parse_rex(self.condition))
        names = [f"v{i}" for i in range(len(self.input_type))] + (["kind"] if self.with_kind else [])
        if self.projection is None:
            result, target = "row", f"row in rows for {_target(names)} in [row]" if condition else "row in rows"
        else:
            values = [emitter.value(parse_rex(one)) for one in self.projection] + (["kind"] if self.with_kind else [])
            result, target = f"({''.join(value + ', ' for value in values)})", f"{_target(names)} in rows"
        condition_text = f" if {condition}" if condition else ""
        self.source = f"def calc(rows):\n    return [{result} for {target}{condition_text}]\n"
        self.function = compiled(self.source, "calc", emitter.constants)

    def __call__(self, rows: list[RowTuple]) -> list[RowTuple]:
        left = iter(rows)
        try:
            result: list[RowTuple] = self.function(left)
        except Exception:
            at = len(rows) - length_hint(left) - 1
            # Reports of failures show a local variable of this name.
            value = rows[at] if at >= 0 else None  # noqa: F841
            raise
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledCalc, (self.projection, self.condition, self.input_type, self.context, self.with_kind)


def _target(names: list[str]) -> str:
    return "(" + "".join(name + ", " for name in names) + ")" if names else "_"


def compiled(source: str, name: str, constants: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of this name in the source, which tracebacks can show."""
    filename = f"<{name} {hash(source) & 0xFFFFFFFF:08x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = dict(constants)
    exec(compile(source, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def compile_projection(
    projection: Sequence[Rex] | None,
    condition: Rex | None,
    input_type: RowType,
    context: ExpressionContext,
    with_kind: bool = False,
) -> CompiledCalc:
    """The function of a Calc: rows in, rows out. Without a projection rows that pass stay as they are."""
    return CompiledCalc(projection, condition, input_type, context, with_kind)


def compile_condition(condition: Rex, input_type: RowType, context: ExpressionContext) -> Callable[[RowTuple], bool]:
    """A function of one row; NULL is False."""
    emitter = Emitter(CALLS, context)
    return _of_row(f"bool({emitter.truth(parse_rex(condition))})", parse_rex(condition), emitter)


def compile_scalar(expression: Rex, input_type: RowType, context: ExpressionContext) -> Callable[[RowTuple], Any]:
    """A function from one row to the value of an expression."""
    emitter = Emitter(CALLS, context)
    return _of_row(emitter.value(parse_rex(expression)), parse_rex(expression), emitter)


@dataclass
class CompiledScalar:
    """The value of an expression for one row, which may have more items at its end. It is pickled as its parts."""

    expression: Rex
    input_type: RowType
    context: ExpressionContext

    def __post_init__(self) -> None:
        self.function = compile_scalar(self.expression, self.input_type, self.context)

    def __call__(self, row: RowTuple) -> Any:
        return self.function(row)

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledScalar, (self.expression, self.input_type, self.context)


def _of_row(text: str, node: Node, emitter: Emitter) -> Callable[[RowTuple], Any]:
    used = sorted({one.index for one in node.walk() if isinstance(one, InputRef)})
    loads = "".join(f"    v{index} = row[{index}]\n" for index in used)
    return compiled(f"def scalar(row):\n{loads}    return {text}\n", "scalar", emitter.constants)
