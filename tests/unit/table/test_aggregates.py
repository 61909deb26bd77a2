"""Aggregate functions: what is taken back, merged or pickled leaves the result of what remains."""

from __future__ import annotations

import datetime
import pickle
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.codegen.compiler import ExpressionContext
from penstock.table.functions.aggregates import AggregateHandler, FirstValue, make_aggregates
from penstock.table.logical_types import row_type_of
from penstock.table.values.numbers import to_float32

INPUT = row_type_of("ROW<`a` INT, `f` BOOLEAN>")


def call(name: str, result: str, **more: Any) -> dict[str, Any]:
    return {"internalName": f"${name}$1", "argList": [0], "filterArg": -1, "distinct": False, "type": result} | more


def handler(retracts: bool) -> AggregateHandler:
    calls = [
        call("COUNT", "BIGINT NOT NULL", argList=[]),
        call("COUNT", "BIGINT NOT NULL"),
        call("COUNT", "BIGINT NOT NULL", distinct=True),
        call("SUM", "INT"),
        call("$SUM0", "INT NOT NULL", filterArg=1),
        call("AVG", "INT"),
        call("MIN", "INT"),
        call("MAX", "INT"),
        call("COLLECT", "MULTISET<INT>"),
        call("SUM", "INT", distinct=True),
    ]
    return make_aggregates(calls, INPUT, [retracts] * len(calls))


def model(rows: list[tuple[int | None, bool | None]]) -> tuple[Any, ...]:
    values = [value for value, _ in rows if value is not None]
    total = sum(values)
    average = None if not values else int(total / len(values))
    return (
        len(rows),
        len(values),
        len(set(values)),
        total if values else None,
        sum(value for value, flag in rows if flag and value is not None),
        average,
        min(values, default=None),
        max(values, default=None),
        dict(Counter(values)),
        sum(set(values)) if values else None,
    )


ROWS = st.lists(st.tuples(st.none() | st.integers(-9, 9), st.none() | st.booleans()), max_size=12)


@given(kept=ROWS, taken_back=ROWS, merged=ROWS)
def test_result_is_of_the_rows_that_remain(kept: list[Any], taken_back: list[Any], merged: list[Any]):
    aggregates = pickle.loads(pickle.dumps(handler(True)))
    acc, other = aggregates.create_accumulators(), aggregates.create_accumulators()
    for row in [*taken_back, *kept]:
        aggregates.accumulate(acc, row)
    for row in taken_back:
        aggregates.retract(acc, row)
    for row in merged:
        aggregates.accumulate(other, row)
    aggregates.merge(acc, pickle.loads(pickle.dumps(other)))
    assert aggregates.get_value(acc) == model([*kept, *merged])


@given(rows=ROWS)
def test_without_retraction_the_result_is_the_same(rows: list[Any]):
    aggregates = handler(False)
    acc = aggregates.create_accumulators()
    for row in rows:
        aggregates.accumulate(acc, row)
    assert aggregates.get_value(acc) == model(rows)


def test_a_sum_wraps_as_in_java():
    aggregates = make_aggregates([call("SUM", "INT")], INPUT, [False])
    acc = aggregates.create_accumulators()
    for value in (2**31 - 1, 1):
        aggregates.accumulate(acc, (value, True))
    assert aggregates.get_value(acc) == (-(2**31),)


def test_a_missing_function_is_named():
    with pytest.raises(UnsupportedFeatureError, match="PERCENTILE"):
        make_aggregates([call("PERCENTILE", "DOUBLE")], INPUT, [False])


class Longest:
    """An aggregate function as users write it."""

    def create_accumulator(self) -> list[datetime.date]:
        return []

    def accumulate(self, accumulator: list[datetime.date], day: datetime.date) -> None:
        accumulator.append(day)

    def retract(self, accumulator: list[datetime.date], day: datetime.date) -> None:
        accumulator.remove(day)

    def merge(self, accumulator: list[datetime.date], others: list[list[datetime.date]]) -> None:
        for other in others:
            accumulator.extend(other)

    def get_value(self, accumulator: list[datetime.date]) -> str:
        return " ".join(day.isoformat() for day in sorted(accumulator))


def test_a_function_of_the_user_sees_dates():
    described = {"systemName": "days", "argList": [0], "filterArg": -1, "distinct": False, "type": "STRING"}
    context = ExpressionContext(functions={"days": Longest()})
    aggregates = make_aggregates([described], row_type_of("ROW<`d` DATE>"), [True], context)
    acc, other = aggregates.create_accumulators(), aggregates.create_accumulators()
    for days in (1, 0, 3):
        aggregates.accumulate(acc, (days,))
    aggregates.retract(acc, (3,))
    aggregates.accumulate(other, (2,))
    aggregates.merge(acc, other)
    assert aggregates.get_value(acc) == ("1970-01-01 1970-01-02 1970-01-03",)


def test_a_single_value_may_be_replaced_but_not_joined_by_another():
    aggregates = make_aggregates([call("SINGLE_VALUE", "INT")], INPUT, [True])
    acc = aggregates.create_accumulators()
    aggregates.accumulate(acc, (1, True))
    aggregates.retract(acc, (1, True))
    aggregates.accumulate(acc, (2, True))
    assert aggregates.get_value(acc) == (2,)
    with pytest.raises(ValueError, match="more than one element"):
        aggregates.accumulate(acc, (3, True))


def test_lag_keeps_nulls_and_takes_an_offset_and_a_default():
    rows = row_type_of("ROW<`a` INT, `offset` INT, `default` INT>")
    aggregates = make_aggregates([call("LAG", "INT", argList=[0, 1, 2])], rows, [False])
    acc, found = aggregates.create_accumulators(), []
    for value in (1, None, 3, 4):
        aggregates.accumulate(acc, (value, 2, -1))
        found.append(aggregates.get_value(acc)[0])
    assert found == [-1, -1, 1, None]


NUMBERS = {
    "TINYINT": st.integers(-128, 127),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False),
    "DECIMAL(6, 2)": st.decimals(-9999, 9999, places=2),
}


@pytest.mark.parametrize("name", NUMBERS)
@given(data=st.data())
def test_generated_code_does_what_the_functions_do(name: str, data: st.DataObject):
    """One function for all aggregates gives the same accumulators and results as each function by itself."""
    calls = [
        call(function, name, distinct=is_distinct, filterArg=place)
        for function in ("COUNT", "SUM", "$SUM0", "AVG", "MIN", "MAX", "FIRST_VALUE")
        for is_distinct in (False, True)
        for place in (-1, 1)
    ]
    together = make_aggregates(calls, row_type_of(f"ROW<`a` {name}, `f` BOOLEAN>"), [True] * len(calls))
    rows = data.draw(st.lists(st.tuples(st.none() | NUMBERS[name], st.none() | st.booleans()), max_size=8))
    accumulators = together.create_accumulators()
    kept: list[list[Any]] = [[] for _ in calls]  # The values that each function has, in their order.
    changes = [(row, True) for row in rows] + [(row, False) for row in rows[::2]]
    for row, is_accumulate in changes:
        (together.accumulate if is_accumulate else together.retract)(accumulators, row)
        for bound, values in zip(together.calls, kept, strict=True):
            if row[0] is not None and (bound.filter < 0 or row[1]):
                values.append(row[0]) if is_accumulate else values.remove(row[0])
    for bound, acc, found, values in zip(
        together.calls, accumulators, together.get_value(accumulators), kept, strict=True
    ):
        target = acc[0] if bound.is_distinct else acc
        assert found == bound.function.value(target)
        if name not in ("FLOAT", "DOUBLE"):  # There, what is taken back leaves a trace.
            alone = bound.function.create()
            for value in dict.fromkeys(values) if bound.is_distinct else values:
                bound.function.accumulate(alone, (value,))
            if not isinstance(bound.function, FirstValue):
                assert found == bound.function.value(alone)


def test_average_of_floats_has_32_bits():
    """Flink has 0.23333333 for 0.1, 0.2 and 0.4."""
    average = make_aggregates([call("AVG", "FLOAT")], row_type_of("ROW<`a` FLOAT>"), [False])
    accumulators = average.create_accumulators()
    for value in (0.1, 0.2, 0.4):
        average.accumulate(accumulators, (to_float32(value),))
    assert average.get_value(accumulators) == (to_float32(0.23333333),)
