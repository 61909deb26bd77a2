"""sum, min and max by key behind a DataFrame, in batch mode: Spark reduces, and the job's results stay."""

from __future__ import annotations

import json

import pytest

from penstock.common import Configuration, Row
from penstock.common.exceptions import UserFunctionError
from penstock.datastream import StreamExecutionEnvironment

pytestmark = pytest.mark.spark

SCHEMA = "k string, n bigint, i int, f double, t boolean"
ROWS = [
    ("a", 1, 3, 0.5, True),
    ("b", -(2**63), None, 1.5, False),
    ("a", 2**63 - 1, -7, 2.5, True),
    (None, 5, 4, 0.25, None),
    ("a", 2**63 - 1, 2, 0.5, True),
    (None, 6, 4, 0.25, None),
    ("ü", 0, 1, 0.25, False),
    ("b", -(2**63), 9, 0.25, False),
]


def environment(is_on: bool, mode: str = "BATCH") -> StreamExecutionEnvironment:
    settings = {
        "execution.target": "inline",
        "execution.runtime-mode": mode,
        "penstock.lowering.enabled": str(is_on).lower(),
    }
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings)).set_parallelism(2)


def outcome(is_on: bool, data_frame, build) -> list[str]:
    with build(environment(is_on).from_data_frame(data_frame)).execute_and_collect() as collected:
        return sorted(map(repr, collected))


def is_lowered(data_frame, build, mode: str = "BATCH") -> bool:
    env = environment(True, mode)
    build(env.from_data_frame(data_frame)).print()
    contents = [node["contents"] for node in json.loads(env.get_execution_plan())["nodes"]]
    return any(each == "Keyed Aggregation (in Spark SQL)" for each in contents)


LOWERED = {
    "sum larger than 64 bits": lambda s: s.map(lambda r: (r.k, r.n)).key_by(0).sum(1),
    "sum of a computed field": lambda s: s.map(lambda r: (r.n % 3, r.n * 2)).key_by(lambda t: t[0]).sum(1),
    "count": lambda s: s.filter(lambda r: r.t is not None).map(lambda r: (r.k, "x", 1)).key_by(0).sum(2),
    "min": lambda s: s.map(lambda r: [r.t, r.n]).key_by(lambda e: e[0]).min(1),
    "max of text": lambda s: s.filter(lambda r: r.k is not None).map(lambda r: Row(t=r.t, k=r.k)).key_by("t").max("k"),
    "two keys": lambda s: s.map(lambda r: (r.k, r.n, r.t)).key_by(lambda e: (e[2], e[0])).sum(1),
    "None once": lambda s: s.filter(lambda r: r.n < 0 and r.i is None).map(lambda r: (r.k, r.i)).key_by(0).sum(1),
}


@pytest.mark.parametrize("job", LOWERED)
def test_aggregations_give_the_same_with_lowering_on_and_off(spark, job):
    data_frame = spark.createDataFrame(ROWS * 2 if job != "None once" else ROWS, SCHEMA).repartition(3)
    assert is_lowered(data_frame, LOWERED[job])
    assert outcome(True, data_frame, LOWERED[job]) == outcome(False, data_frame, LOWERED[job])


def sum_of_rows(stream):
    return stream.key_by(0).sum("n")


def test_rows_themselves_are_reduced_if_they_have_nothing_but_key_and_value(spark):
    data_frame = spark.createDataFrame([(each[0], each[1] // 4) for each in ROWS], "`k{e}y` string, n bigint")
    assert is_lowered(data_frame, sum_of_rows)
    assert outcome(True, data_frame, sum_of_rows) == outcome(False, data_frame, sum_of_rows)


def test_a_sum_that_its_column_cannot_hold_fails_with_lowering_on_and_off(spark):
    data_frame = spark.createDataFrame([(each[0], each[1]) for each in ROWS], "`k{e}y` string, n bigint")
    for is_on in (True, False):
        with pytest.raises(UserFunctionError, match="does not fit into LONG"):
            outcome(is_on, data_frame, sum_of_rows)


def test_a_sum_with_none_fails_as_in_python(spark):
    data_frame = spark.createDataFrame(ROWS, SCHEMA)
    for is_on in (True, False):
        with pytest.raises(UserFunctionError, match=r"operator 'Keyed Aggregation'.*TypeError"):
            outcome(is_on, data_frame, lambda s: s.map(lambda r: (r.k, r.i)).key_by(0).sum(1))


REFUSED = {
    "floats": lambda s: s.map(lambda r: (r.k, r.f)).key_by(0).sum(1),
    "truth values": lambda s: s.map(lambda r: (r.k, r.t)).key_by(0).sum(1),
    "keys that are floats": lambda s: s.map(lambda r: (r.f, r.n)).key_by(0).sum(1),
    "further fields": lambda s: s.map(lambda r: (r.k, r.n, r.i)).key_by(0).sum(1),
    "computed keys": lambda s: s.map(lambda r: (r.k, r.n)).key_by(lambda e: e[1] % 2).sum(1),
    "the key itself": lambda s: s.map(lambda r: (r.k, r.n)).key_by(1).sum(1),
    "no key field": lambda s: s.map(lambda r: ("x", r.n)).key_by(0).sum(1),
    "the whole element": lambda s: s.map(lambda r: (r.k, r.n)).key_by(0).max_by(1),
    "a function": lambda s: s.map(lambda r: (r.k, r.n)).key_by(0).reduce(lambda a, b: a),
    "Python in between": lambda s: s.map(lambda r: (r.k, r.n)).map(tuple).key_by(0).sum(1),
}


@pytest.mark.parametrize("job", REFUSED)
def test_what_depends_on_the_order_of_rows_stays_in_python(spark, job):
    assert not is_lowered(spark.createDataFrame(ROWS, SCHEMA), REFUSED[job])


def test_rolling_aggregations_stay_in_python(spark):
    data_frame = spark.createDataFrame(ROWS, SCHEMA)
    assert not is_lowered(data_frame, LOWERED["count"], mode="STREAMING")
