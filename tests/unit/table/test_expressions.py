"""Expressions give what Flink gives: each recorded one is compiled from its plan and run on the same rows."""

from __future__ import annotations

import json
import math
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table import types as t
from penstock.table.codegen.compiler import ExpressionContext, compile_projection
from penstock.table.codegen.rex import literal_value
from penstock.table.logical_types import parse_type
from penstock.table.types import RowField, RowType
from penstock.table.values.numbers import to_float32

RECORDED = json.loads((Path(__file__).parents[2] / "pyflink" / "expression_results.json").read_text(encoding="utf-8"))
INPUT = RowType([RowField(name, parse_type(text)) for name, text in RECORDED["columns"].items()])
ROWS = [
    tuple(literal_value(value, data_type) for value, data_type in zip([n, *row], INPUT.field_types(), strict=True))
    for n, row in enumerate(RECORDED["rows"])
]
UNSUPPORTED = {f"CEIL({column} TO {unit})" for column in ("ts", "tz") for unit in ("YEAR", "QUARTER", "MONTH")}
DIFFERENT = {
    "TRY_CAST(p AS DECIMAL(5, 1))",
    "FROM_UNIXTIME(i)",
    *(f"TRUNCATE(d, {n})" for n in (-1, 0, 1)),
    *UNSUPPORTED,
}
"""Flink reads the text '%' as the DECIMAL 0; here it is NULL, as other texts that are no numbers. Java and Python
differ about the clocks of Amsterdam in 1901. Flink's TRUNCATE fails for 1e300."""
CONTEXT = ExpressionContext(time_zone=RECORDED["time_zone"])


def expected(value: Any, data_type: t.DataType) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(data_type, t.FloatType):
        return to_float32(float(value))  # It was recorded as the shortest text of its 32 bits.
    if isinstance(data_type, t.DoubleType):
        return float(value)
    return Decimal(value) if isinstance(data_type, t.DecimalType) else value


def same(ours: Any, flinks: Any) -> bool:
    if isinstance(flinks, float) and isinstance(ours, float):
        if math.isnan(flinks) or math.isnan(ours):
            return math.isnan(flinks) and math.isnan(ours)
        return ours == flinks and math.copysign(1, ours) == math.copysign(1, flinks)
    return type(ours) is type(flinks) and ours == flinks and str(ours) == str(flinks)


@pytest.mark.parametrize(
    "case",
    [one for one in RECORDED["cases"] if "results" in one and one["sql"] not in DIFFERENT],
    ids=lambda case: case["sql"],
)
def test_result_is_flinks(case: dict[str, Any]):
    calc = compile_projection([case["rex"]], None, INPUT, CONTEXT)
    data_type = parse_type(case["rex"]["type"])
    wanted = [expected(value, data_type) for value in case["results"]]
    ours = [value for (value,) in calc(ROWS)]
    assert all(map(same, ours, wanted)) and len(ours) == len(wanted), (ours, wanted, calc.source)


@pytest.mark.parametrize(
    "case",
    [one for one in RECORDED["cases"] if one.get("fails") == "running" and one["sql"] not in DIFFERENT],
    ids=lambda case: case["sql"],
)
def test_what_fails_in_flink_fails(case: dict[str, Any]):
    with pytest.raises((ValueError, ArithmeticError)):
        compile_projection([case["rex"]], None, INPUT, CONTEXT)(ROWS)


def test_a_calc_filters_keeps_the_kind_and_can_be_pickled():
    rex = next(one["rex"] for one in RECORDED["cases"] if one["sql"] == "i BETWEEN -7 AND 7")
    calc = pickle.loads(pickle.dumps(compile_projection(None, rex, INPUT, ExpressionContext(), with_kind=True)))
    assert [row[0] for row in calc([(*row, 3) for row in ROWS])] == [0, 4, 5]


def test_a_function_that_is_missing_is_named_when_the_plan_is_built():
    rex = {"kind": "CALL", "internalName": "$SOUNDEX$1", "operands": [], "type": "INT"}
    with pytest.raises(UnsupportedFeatureError, match="SOUNDEX"):
        compile_projection([rex], None, INPUT, ExpressionContext())
