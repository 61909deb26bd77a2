"""Spark itself keeps the promise: null, or what Python computes. Whole jobs give the same with lowering on and off."""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_functions import NAMES, SCHEMA, columns, function, named_row, predicates, results, rows

from penstock.common import Configuration, Row, Types
from penstock.common.exceptions import UserFunctionError
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system.formats import FileToRead
from penstock.datastream.lowering.expressions import NotLowerable
from penstock.datastream.lowering.left_to_python import LeftToPython
from penstock.datastream.lowering.program import DROPPED, IN_PYTHON, LOWERED, LoweredProgram, program_of
from penstock.datastream.lowering.tracing import step_of, trace

pytestmark = pytest.mark.spark


@pytest.fixture
def inline():
    """Makes environments whose jobs run in this process: only the DataFrame needs Spark."""

    def make(parallelism: int = 1, settings: dict[str, str] | None = None) -> StreamExecutionEnvironment:
        config = Configuration.from_dict({"execution.target": "inline", **(settings or {})})
        return StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)

    return make


ROWS = [
    (1, 2, 2.5, 0.5, "a", True),
    (-7, -3, math.nan, 1.5, "bc", None),
    (None, 5, -0.0, math.nan, None, False),
    (2**63 - 1, 2**31 - 1, 1e300, None, "ü\U0001f600", True),
    (-(2**63), None, None, -0.0, "", None),
    (10, 0, math.inf, 3.0, "abc", False),
]


def program(*texts: tuple[str, str]) -> LoweredProgram | None:
    try:
        steps = [step_of(function(text), kind == "filter", None) for kind, text in texts]
        return program_of(trace(columns(), NAMES, steps))
    except NotLowerable:
        return None


def python_outcome(predicate: str, result: str, values: tuple) -> tuple:
    row = named_row(values)
    try:
        if not function(predicate)(row):
            return DROPPED, None
        return LOWERED, function(result)(row)
    except (TypeError, ZeroDivisionError, OverflowError):
        return None, None


def spark_outcomes(data_frame, programs: list[LoweredProgram]) -> list[list[tuple]]:
    """By row and program: the verdict and the element. All programs in one query."""
    numbered = data_frame.toDF(*(f"c{at}" for at in range(len(NAMES))))
    added = [
        f"{sql} AS p{at}_{field}"
        for at, each in enumerate(programs)
        for field, sql in enumerate([each.verdict_sql, *(column.sql for column in each.computed)])
    ]
    rows = numbered.selectExpr("*", *added).collect()
    return [[spark_outcome(row, at, each) for at, each in enumerate(programs)] for row in rows]


def spark_outcome(row, number: int, lowered: LoweredProgram) -> tuple:
    verdict = row[f"p{number}_0"]
    if verdict != LOWERED:
        return verdict, None
    computed = [row[f"p{number}_{at + 1}"] for at in range(len(lowered.computed))]
    fields = [row[at] for at in lowered.passed_on] + computed
    return verdict, lowered.shape.elements([[field] for field in fields], 1)[0]


@pytest.mark.parametrize("ansi", ["true", "false"])
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(predicates, results), min_size=10, max_size=20), st.lists(rows, min_size=20, max_size=50))
def test_spark_computes_what_python_computes(spark, ansi, functions, values):
    all_rows = [*ROWS, *values]
    lowered = {each: program(("filter", each[0]), ("map", each[1])) for each in functions}
    programs = {each: found for each, found in lowered.items() if found is not None}
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        outcomes = spark_outcomes(spark.createDataFrame(all_rows, SCHEMA), list(programs.values()))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    for row, by_program in zip(all_rows, outcomes, strict=True):
        for (predicate, result), found in zip(programs, by_program, strict=True):
            if found[0] != IN_PYTHON:
                assert repr(found) == repr(python_outcome(predicate, result, row)), (predicate, result, row)


# --- jobs ------------------------------------------------------------------------------------------------------------


def results_of(make, is_on: bool, mode: str, data_frame, build) -> list:
    env = make(2, {"penstock.lowering.enabled": str(is_on).lower(), "execution.runtime-mode": mode})
    with build(env.from_data_frame(data_frame)).execute_and_collect() as collected:
        return sorted(map(repr, collected))


NAMED = Types.ROW_NAMED(["n", "g"], [Types.LONG(), Types.DOUBLE()])
JOBS = {
    "numbers": lambda s: s.filter(lambda r: r.a is not None).map(lambda r: (r.a % 5, r.a // 3, -r.a, r.a + 1)),
    "none": lambda s: s.map(lambda r: (0 if r.a is None else r.a, r.t, r.f, r.g)),
    "rows": lambda s: s.filter(lambda r: r.t or r.s == "abc"),
    "types": lambda s: s.map(lambda r: Row(r.a, r.f), NAMED).filter(lambda r: r.g != 2.5).map(lambda r: [r.n, "x"]),
    "text": lambda s: s.filter(lambda r: r.s is not None and r.s > "b").map(lambda r: r.s + str(len(r.s))),
    "constants": lambda s: s.map(lambda r: ("one", 1)).key_by(lambda pair: pair[0]).sum(1),
    "middle": lambda s: s.filter(lambda r: r.a is not None).map(repr).filter(lambda text: "a" in text),
}


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
@pytest.mark.parametrize("job", JOBS)
def test_jobs_give_the_same_with_lowering_on_and_off(spark, inline, job, mode):
    data_frame = spark.createDataFrame(ROWS * 3, SCHEMA).repartition(3)
    with_lowering = results_of(inline, True, mode, data_frame, JOBS[job])
    assert with_lowering == results_of(inline, False, mode, data_frame, JOBS[job])


def test_a_job_on_spark_gives_the_same_as_without_lowering(spark, on_spark, inline):
    data_frame = spark.createDataFrame(ROWS * 3, SCHEMA).repartition(3)
    with_lowering = results_of(on_spark, True, "STREAMING", data_frame, JOBS["numbers"])
    assert with_lowering == results_of(inline, False, "STREAMING", data_frame, JOBS["numbers"])


def test_a_failure_names_the_operator_and_the_record_as_ever(spark, inline):
    failures = []
    for is_on in (True, False):
        with pytest.raises(UserFunctionError) as failure:
            results_of(
                inline, is_on, "STREAMING", spark.createDataFrame(ROWS[2:3], SCHEMA),
                lambda s: s.map(lambda r: (r.b, r.a)).filter(lambda t: t[1] > 0).name("Positive"),
            )  # fmt: skip
        failures.append(str(failure.value).splitlines()[0])
    assert failures[0] == failures[1]
    assert "operator 'Positive'" in failures[0] and "at record (5, None)" in failures[0]


def test_values_of_other_types_are_passed_on_as_they_are(spark, inline):
    data_frame = spark.sql(
        "select id, cast(id as decimal(5,2)) as n, array(1, 2) as l, map('k', id) as m, named_struct('f', id) as r"
        ", date'2024-05-06' as day, timestamp'2024-05-06 07:08:09' as t, binary('x') as b from range(3)"
    )

    def build(stream):
        return stream.filter(lambda r: r.id != 1).map(lambda r: (r.n, r.l, r.m, r.r, r.day, r.t, r.b, r.id * 2))

    results = results_of(inline, True, "BATCH", data_frame, build)
    assert results == results_of(inline, False, "BATCH", data_frame, build) and len(results) == 2


def grown(pair):
    """Changes what is first; if it is also second, that is changed as well."""
    first = pair[0]
    if isinstance(first, Row):
        first["l"] = "changed"
    elif isinstance(first, dict):
        first["changed"] = 0
    else:
        first.append("changed")
    return pair


TWICE = {
    "list": lambda s: s.map(lambda r: (r.l, r.l)),
    "map": lambda s: s.map(lambda r: (r.m, r.id, [r.m])),
    "row": lambda s: s.map(lambda r: (r, r)),
    "list of the program": lambda s: s.map(lambda r: [r.id]).map(lambda own: (own, own)),
    "on one way": lambda s: s.map(lambda r: (r.l, r.k if r.id > 1 else r.l)),
}


@pytest.mark.parametrize("job", TWICE)
def test_what_is_in_an_element_twice_is_still_one_object(spark, inline, job):
    data_frame = spark.sql("select id, array(1, 2) as l, array(3) as k, map('k', id) as m from range(3)")
    found = [
        results_of(inline, is_on, "BATCH", data_frame, lambda s: TWICE[job](s).map(grown)) for is_on in (True, False)
    ]
    assert found[0] == found[1]
    assert any(each.count("changed") > 1 for each in found[0])


def test_a_random_column_is_computed_once(spark, inline):
    data_frame = spark.range(200).selectExpr("id", "rand() as x")
    env = inline(1, {"execution.runtime-mode": "BATCH"})
    stream = env.from_data_frame(data_frame).filter(lambda r: r.x < 0.5).map(lambda r: (r.x, r.x * 2, r.x < 0.5))
    with stream.execute_and_collect() as collected:
        assert all(x * 2 == doubled and is_small for x, doubled, is_small in collected)


# --- files of another program -----------------------------------------------------------------------------------------


def source_behind(env, data_frame, build) -> Any:
    build(env.from_data_frame(data_frame)).print()
    return next(iter(env.get_stream_graph().nodes.values())).operator.source


def read(source, splits) -> list:
    """The records of files, read by a source that need not have written them."""
    file_format = source._files("rows").format
    files = [FileToRead(split.content.path, partial(open, split.content.path, "rb")) for split in splits]
    return [record for file in files for batch in file_format.read_file(file, None) for record in batch.records]


def test_a_job_that_was_changed_reads_on_in_rows_that_were_lowered(spark, inline, tmp_path):
    data_frame = spark.range(20).selectExpr("id as n", "cast(id as string) as name")
    writer = source_behind(inline(), data_frame, lambda s: s.filter(lambda r: r.n > 10).map(lambda r: r.name))
    splits = writer._written(str(tmp_path / "rows"))
    assert sorted(read(writer, splits)) == sorted(str(n) for n in range(11, 20))

    changed = source_behind(inline(), data_frame, lambda s: s.filter(lambda r: r.n > 9).map(lambda r: r.name))
    left = read(changed, splits)
    assert {type(each) for each in left} == {LeftToPython}
    assert sorted(each.element.n for each in left) == list(range(20))

    not_lowered = source_behind(inline(1, {"penstock.lowering.enabled": "false"}), data_frame, lambda s: s.map(repr))
    assert sorted((row.n, row.name) for row in read(not_lowered, splits)) == [(n, str(n)) for n in range(20)]
    lowered_later = read(writer, not_lowered._written(str(tmp_path / "plain")))
    assert {type(each) for each in lowered_later} == {LeftToPython} and len(lowered_later) == 20


# --- the plan --------------------------------------------------------------------------------------------------------


def contents(stream) -> list[str]:
    env = stream.get_execution_environment()
    stream.print()
    return [node["contents"] for node in json.loads(env.get_execution_plan())["nodes"]]


def test_the_plan_says_what_is_lowered_up_to_the_first_that_is_not(spark, inline):
    stream = inline().from_data_frame(spark.range(3))
    stream = stream.filter(lambda r: r.id > 0).name("Positive").map(lambda r: r.id + 1).map(repr).map(lambda s: s)
    assert contents(stream)[1:-1] == ["Positive (in Spark SQL)", "Map (in Spark SQL)", "Map", "Map"]


def test_the_switch_turns_it_off(spark, inline):
    env = inline(1, {"penstock.lowering.enabled": "false"})
    assert contents(env.from_data_frame(spark.range(3)).map(lambda r: r.id))[1] == "Map"


def test_operators_are_not_lowered_where_somebody_else_reads_or_they_are_apart(spark, inline):
    shared = inline().from_data_frame(spark.range(3))
    shared.map(lambda r: r.id).print()
    assert "Map (in Spark SQL)" not in contents(shared.map(lambda r: r.id + 1))
    apart = inline().from_data_frame(spark.range(3)).map(lambda r: r.id).disable_chaining()
    assert contents(apart)[1] == "Map"
    elsewhere = inline(2).from_data_frame(spark.range(3)).map(lambda r: r.id).set_parallelism(1)
    assert contents(elsewhere)[1] == "Map"


def test_names_and_ids_of_lowered_operators_stay(spark, inline):
    def graph(is_on):
        env = inline(1, {"penstock.lowering.enabled": is_on})
        env.from_data_frame(spark.range(3)).map(lambda r: r.id).uid("ids").filter(lambda n: n > 1).print()
        return [(node.name, node.uid, node.operator_id) for node in env.get_stream_graph().nodes.values()]

    assert graph("true") == graph("false")
