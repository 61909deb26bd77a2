"""LATERAL TABLE and UNNEST: each row joined with the rows that a table function makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.table import types as t
from penstock.table.codegen.compiler import CompiledCalc, ExpressionContext
from penstock.table.codegen.rex import function_name, parse_rex
from penstock.table.logical_types import external_converter, internal_converter, parse_type
from penstock.table.operators.plan import TableStream, Translation
from penstock.table.rows import RowTuple
from penstock.table.types import DataType, RowType

MakeRows = Callable[[RowTuple], Iterable[RowTuple]]


def _unnested(data_type: DataType) -> MakeRows:
    """The rows of a collection, the only argument; elements that are rows become several columns."""
    if isinstance(data_type, t.MapType):
        return lambda values: [] if values[0] is None else list(values[0].items())
    element = getattr(data_type, "element_type", None)
    is_row = isinstance(element, RowType)

    def as_row(value: Any) -> RowTuple:
        if is_row and isinstance(element, RowType):
            return (None,) * len(element) if value is None else value
        return (value,)

    if isinstance(data_type, t.MultisetType):
        return lambda values: [as_row(v) for v, count in (values[0] or {}).items() for _ in range(count)]
    return lambda values: [as_row(value) for value in values[0] or ()]


def _replicated(values: RowTuple) -> Iterable[RowTuple]:
    return [values[1:]] * max(values[0], 0)


def _user_rows(
    function: Callable[..., Any], arguments: list[DataType], result: RowType, context: ExpressionContext
) -> MakeRows:
    """The rows of a user's table function, which yields tuples, rows or, for one column, values."""
    inward = [external_converter(each, context.time_zone) or _same for each in arguments]
    outward = [internal_converter(each, context.time_zone) or _same for each in result.field_types()]

    def rows(values: RowTuple) -> Iterable[RowTuple]:
        made = function(*[f(value) for f, value in zip(inward, values, strict=True)])
        if made is None:
            return
        for each in [made] if isinstance(made, (str, bytes)) or not isinstance(made, Iterable) else made:
            fields = tuple(each) if isinstance(each, (tuple, list)) or hasattr(each, "_values") else (each,)
            yield tuple([f(value) for f, value in zip(outward, fields, strict=True)])

    return rows


def _same(value: Any) -> Any:
    return value


class CorrelateFunction:
    """Rows with the rows of the function behind them. It is pickled as what it was made from."""

    def __init__(
        self,
        call: Any,
        condition: Any,
        is_left: bool,
        input_type: RowType,
        context: ExpressionContext,
        is_changelog: bool,
    ) -> None:
        self.made_from = call, condition, is_left, input_type, context, is_changelog
        self.arguments = CompiledCalc(call.get("operands", []), None, input_type, context)
        types = [parse_rex(each).type for each in call.get("operands", [])]
        result = parse_type(call["type"])
        made = RowType([*(result.fields if isinstance(result, RowType) else [t.RowField("f0", result)])])
        self.make_rows = self._maker(call, types, result, context)
        self.filter = None if condition is None else CompiledCalc(None, condition, made, context)
        self.is_changelog = is_changelog
        self.padding = (None,) * (len(result) if isinstance(result, RowType) else 1) if is_left else None

    def __reduce__(self) -> tuple[Any, ...]:
        return CorrelateFunction, self.made_from

    def _maker(self, call: Any, types: list[DataType], result: DataType, context: ExpressionContext) -> MakeRows:
        name = call.get("internalName")
        if name is not None and function_name(name) in ("UNNEST_ROWS", "UNNEST_ROWS_WITH_ORDINALITY"):
            if function_name(name) != "UNNEST_ROWS":
                plain = _unnested(types[0])
                return lambda values: [(*row, number) for number, row in enumerate(plain(values), start=1)]
            return _unnested(types[0])
        if name is not None and function_name(name) == "REPLICATE_ROWS":
            return _replicated
        user_name = call.get("catalogName") or call.get("systemName") or call.get("class") or name or "?"
        function = context.user_function(user_name)
        row_type = result if isinstance(result, RowType) else RowType([t.RowField("f0", result)])
        return _user_rows(function, types, row_type, context)

    def __call__(self, rows: list[RowTuple]) -> list[RowTuple]:
        made = []
        plain = [row[:-1] for row in rows] if self.is_changelog else rows
        for row, arguments in zip(rows, self.arguments(plain), strict=True):
            left, kind = (row[:-1], row[-1:]) if self.is_changelog else (row, ())
            found = False
            rights = self.make_rows(arguments)
            for right in rights if self.filter is None else self.filter(list(rights)):
                found = True
                made.append((*left, *right, *kind))
            if not found and self.padding is not None:
                made.append((*left, *self.padding, *kind))
        return made


def correlate(at: Translation) -> TableStream:
    node, source = at.node, at.input
    is_left, context = node["joinType"] == "LEFT", at.context.expressions
    function = CorrelateFunction(
        node["functionCall"], node.get("condition"), is_left, source.row_type, context, source.is_changelog
    )
    return TableStream(at.on_rows(function), node.row_type, source.is_changelog)
