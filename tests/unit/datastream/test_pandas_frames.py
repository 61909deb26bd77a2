"""Elements of a stream as a DataFrame of pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from penstock.common import Configuration, Row, Types
from penstock.datastream import StreamExecutionEnvironment


@dataclass
class Order:
    country: str
    total: int


class Pair(NamedTuple):
    country: str
    total: int


def stream(elements: list[Any], type_info: Any = None) -> Any:
    config = Configuration.from_dict({"execution.target": "inline"})
    return StreamExecutionEnvironment.get_execution_environment(config).from_collection(elements, type_info)


@pytest.mark.parametrize(
    "elements",
    [
        [{"country": "fr", "total": 1}, {"country": "it", "total": 2}],
        [Order("fr", 1), Order("it", 2)],
        [Pair("fr", 1), Pair("it", 2)],
        [Row(country="fr", total=1), Row(country="it", total=2)],
    ],
    ids=["dicts", "dataclasses", "named tuples", "rows"],
)
def test_fields_are_columns(elements):
    frame = stream(elements).to_pandas()
    assert list(frame.columns) == ["country", "total"] and frame.values.tolist() == [["fr", 1], ["it", 2]]


def test_a_declared_row_type_names_the_columns_also_of_nothing():
    row_type = Types.ROW_NAMED(["country", "total"], [Types.STRING(), Types.INT()])
    assert stream([("fr", 1)], row_type).to_pandas().to_dict("records") == [{"country": "fr", "total": 1}]
    empty = stream([("fr", 1)], row_type).filter(lambda row: False).to_pandas()
    assert list(empty.columns) == ["country", "total"] and len(empty) == 0


def test_tuples_have_numbered_columns_and_single_values_one():
    assert stream([("fr", 1)]).to_pandas().values.tolist() == [["fr", 1]]
    assert stream([3, 4]).to_pandas().to_dict("list") == {"value": [3, 4]}


def test_a_limit_ends_the_job():
    assert len(stream(list(range(100))).to_pandas(limit=7)) == 7
