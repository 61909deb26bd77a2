"""Table environments: statements, tables, functions and jobs, on the inline target and once on Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.common import Configuration, Row, Types
from penstock.common.exceptions import InvalidProgramError, JobExecutionError, UnsupportedFeatureError
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import (
    AggregateFunction,
    ChangelogMode,
    DataTypes,
    EnvironmentSettings,
    FormatDescriptor,
    PlanReference,
    Schema,
    StreamTableEnvironment,
    Table,
    TableDescriptor,
)
from penstock.table.expressions import UNBOUNDED_RANGE, col, lit, row_interval
from penstock.table.planner.host import TableException
from penstock.table.udf import udaf, udf, udtf
from penstock.table.window import Over, Session, Slide, Tumble

INLINE = Configuration.from_dict({"execution.target": "inline", "parallelism.default": "1"})


def environment(settings: EnvironmentSettings | None = None) -> StreamTableEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(INLINE)
    made = StreamTableEnvironment.create(env, settings)
    made.get_config().set("table.local-time-zone", "UTC")
    return made


@pytest.fixture(scope="module")
def t_env() -> Iterator[StreamTableEnvironment]:
    made = environment()
    yield made
    made._planner.close()


def changes_of(table: Table) -> list[tuple[str, ...]]:
    return [(str(row.get_row_kind()), *row) for row in table.execute().collect()]


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in table.execute().collect()]


@pytest.fixture(scope="module")
def timed(t_env: StreamTableEnvironment) -> Table:
    """Rows with an event time: a name, a number and the second."""
    t_env.execute_sql("""
        CREATE TEMPORARY VIEW seconds AS SELECT * FROM (VALUES
            ('a', 1, TIMESTAMP '1970-01-01 00:00:01'), ('b', 2, TIMESTAMP '1970-01-01 00:00:02'),
            ('a', 3, TIMESTAMP '1970-01-01 00:00:06'), ('a', 4, TIMESTAMP '1970-01-01 00:00:07')) AS t (k, n, ts)
    """)
    rows = t_env.from_path("seconds")
    stream = t_env.to_data_stream(rows)
    schema = (
        Schema.new_builder()
        .column("k", "STRING")
        .column("n", "INT")
        .column("ts", "TIMESTAMP(3)")
        .watermark("ts", "ts - INTERVAL '1' SECOND")
        .build()
    )
    named = stream.map(
        lambda row: row, Types.ROW_NAMED(["k", "n", "ts"], [Types.STRING(), Types.INT(), Types.SQL_TIMESTAMP()])
    )
    t_env._environment._transformations.clear()  # The stream is only read by tables.
    return t_env.from_data_stream(named, schema)


def test_windows_of_the_table_api(t_env: StreamTableEnvironment, timed: Table):
    tumble = timed.window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"), col("k"))
    found = rows_of(tumble.select(col("k"), col("n").sum, col("w").start))
    assert sorted((k, n, start.second) for k, n, start in found) == [("a", 1, 0), ("a", 7, 5), ("b", 2, 0)]
    slide = timed.window(Slide.over(lit(4).seconds).every(lit(2).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    found = rows_of(slide.select(col("w").end, col("n").count))
    assert sorted((end.second, n) for end, n in found) == [(2, 1), (4, 2), (6, 1), (8, 2), (10, 2)]
    session = timed.window(Session.with_gap(lit(3).seconds).on(col("ts")).alias("w")).group_by(col("w"))
    assert sorted(row[0] for row in rows_of(session.select(col("n").sum))) == [3, 7]


def test_over_windows_of_the_table_api(timed: Table):
    total = Over.partition_by(col("k")).order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")
    found = rows_of(timed.over_window(total).select(col("k"), col("n").sum.over(col("w"))))
    assert sorted(found) == [("a", 1), ("a", 4), ("a", 8), ("b", 2)]
    two = Over.partition_by(col("k")).order_by(col("ts")).preceding(row_interval(1)).alias("w")
    found = rows_of(timed.over_window(two).select(col("k"), col("n").sum.over(col("w"))))
    assert sorted(found) == [("a", 1), ("a", 4), ("a", 7), ("b", 2)]


def test_a_window_that_group_by_or_select_does_not_know_is_refused(timed: Table):
    window = timed.window(Tumble.over(lit(5).seconds).on(col("ts")).alias("w"))
    with pytest.raises(InvalidProgramError, match=r"the window's alias is missing; add col\('w'\)"):
        window.group_by(col("k"))
    with pytest.raises(InvalidProgramError, match="no group window with this alias"):
        timed.select(col("x").start)
    with pytest.raises(UnsupportedFeatureError, match="windows of a number of rows"):
        Tumble.over(row_interval(3))


class Product(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [1]

    def accumulate(self, accumulator: list[int], value: int) -> None:
        accumulator[0] *= value

    def retract(self, accumulator: list[int], value: int) -> None:
        accumulator[0] //= value

    def get_value(self, accumulator: list[int]) -> int:
        return accumulator[0]

    def get_result_type(self) -> str:
        return "BIGINT"

    def get_accumulator_type(self) -> str:
        return "ARRAY<BIGINT>"


def test_aggregate_functions_in_python_with_retraction(t_env: StreamTableEnvironment):
    table = t_env.from_elements([("a", 2), ("b", 3), ("a", 5)], ["k", "n"])
    product = udaf(Product())
    found = changes_of(table.group_by(col("k")).select(col("k"), product(col("n")).alias("p"), col("n").max))
    assert found == [("+I", "a", 2, 2), ("+I", "b", 3, 3), ("-U", "a", 2, 2), ("+U", "a", 10, 5)]
    t_env.create_temporary_system_function("product", Product())
    query = f"SELECT product(m) FROM (SELECT k, MAX(n) AS m FROM {table} GROUP BY k)"
    assert changes_of(t_env.sql_query(query))[-1] == ("+U", 15)
    spread = udaf(lambda values: values.max() - values.min(), result_type="BIGINT", func_type="pandas")
    assert changes_of(table.select(spread(col("n"))))[-1] == ("+U", 3)


def test_functions_of_whole_rows(t_env: StreamTableEnvironment):
    table = t_env.from_elements([("a b", 2), ("c", 3)], ["words", "n"])
    pair = udf(lambda row: Row(row.words.upper(), row[1] + 1), result_type="ROW<w STRING, m BIGINT>")
    assert rows_of(table.map(pair)) == [("A B", 3), ("C", 4)]
    assert table.map(pair.alias("x", "y"))._names() == ["x", "y"]
    split = udtf(lambda row: [(word, row.n) for word in row.words.split()], result_types=["STRING", "BIGINT"])
    assert rows_of(table.flat_map(split)) == [("a", 2), ("b", 2), ("c", 3)]
    doubled = udf(lambda values: values * 2, result_type="BIGINT", func_type="pandas")
    assert rows_of(table.select(doubled(col("n")))) == [(4,), (6,)]


def test_a_python_function_is_named_by_a_statement(t_env: StreamTableEnvironment, tmp_path: Path, monkeypatch):
    (tmp_path / "own_functions_of_tables.py").write_text(
        "from penstock.table.udf import udf\nshout = udf(lambda text: text.upper() + '!', result_type='STRING')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    t_env.execute_sql("CREATE TEMPORARY FUNCTION shout AS 'own_functions_of_tables.shout' LANGUAGE PYTHON").print()
    assert rows_of(t_env.sql_query("SELECT shout('hi')")) == [("HI!",)]
    with pytest.raises(InvalidProgramError, match=r"there is no function 'own_functions_of_tables\.gone'"):
        t_env.execute_sql("CREATE TEMPORARY FUNCTION gone AS 'own_functions_of_tables.gone' LANGUAGE PYTHON")
    sys.modules.pop("own_functions_of_tables", None)


def test_batch_mode_shows_the_rows_that_are_left():
    t_env = environment(EnvironmentSettings.in_batch_mode())
    table = t_env.from_elements([("a", 1), ("b", 2), ("a", 3)], ["k", "n"])
    assert changes_of(table.group_by(col("k")).select(col("k"), col("n").sum)) == [("+I", "b", 2), ("+I", "a", 4)]
    t_env._planner.close()


def test_files_by_descriptors_and_one_job_for_a_statement_set(t_env: StreamTableEnvironment, tmp_path: Path):
    schema = Schema.new_builder().column("k", DataTypes.STRING()).column("n", DataTypes.BIGINT()).build()

    def files(name: str) -> TableDescriptor:
        builder = TableDescriptor.for_connector("filesystem").schema(schema).option("path", str(tmp_path / name))
        return builder.format(FormatDescriptor.for_format("csv").option("field-delimiter", ";").build()).build()

    t_env.create_temporary_table("first_files", files("first"))
    t_env.create_temporary_table("second_files", files("second"))
    with pytest.raises(TableException, match="already exists"):
        t_env.create_temporary_table("first_files", files("first"))
    t_env.create_temporary_table("first_files", files("first"), ignoreIfExists=True)
    table = t_env.from_elements([("a", 1), ("b", 2)], ["k", "n"])
    statements = t_env.create_statement_set()
    statements.add_insert("first_files", table).add_insert_sql(
        f"INSERT INTO second_files SELECT k, n * 10 FROM {table}"
    )
    result = statements.execute()
    result.wait(60_000)
    assert result.get_job_client() is not None
    assert [len(row) for row in result.collect()] == [2]
    assert sorted(rows_of(t_env.from_path("first_files"))) == [("a", 1), ("b", 2)]
    assert sorted(rows_of(t_env.from_descriptor(files("second")))) == [("a", 10), ("b", 20)]
    with pytest.raises(InvalidProgramError, match="the statement set is empty"):
        statements.execute()
    assert t_env.drop_temporary_table("first_files") and not t_env.drop_temporary_table("first_files")


def test_a_compiled_plan_is_kept_and_executed(t_env: StreamTableEnvironment, tmp_path: Path):
    t_env.execute_sql(
        f"CREATE TABLE kept_rows (n INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'out'}', "
        "'format' = 'json')"
    )
    plan = t_env.compile_plan_sql("INSERT INTO kept_rows SELECT n + 1 FROM (VALUES (1), (2)) AS t (n)")
    assert plan.get_flink_version().startswith("2.")
    plan.write_to_file(tmp_path / "plan.json")
    with pytest.raises(FileExistsError):
        plan.write_to_file(tmp_path / "plan.json")
    t_env.execute_plan(PlanReference.from_file(tmp_path / "plan.json")).wait()
    assert sorted(rows_of(t_env.from_path("kept_rows"))) == [(2,), (3,)]
    t_env.execute_sql(f"EXECUTE PLAN '{tmp_path / 'plan.json'}'").wait()
    assert len(rows_of(t_env.from_path("kept_rows"))) == 4
    assert json.loads(plan.as_json_string())["nodes"]


def test_settings_reach_the_planner(t_env: StreamTableEnvironment):
    t_env.execute_sql("SET 'table.local-time-zone' = 'Asia/Tokyo'")
    assert t_env.get_config().get_local_timezone() == "Asia/Tokyo"
    query = "SELECT CAST(TO_TIMESTAMP_LTZ(0, 3) AS STRING)"
    assert rows_of(t_env.sql_query(query)) == [("1970-01-01 09:00:00.000",)]
    t_env.get_config().set_local_timezone("UTC")
    assert rows_of(t_env.sql_query(query)) == [("1970-01-01 00:00:00.000",)]
    t_env.execute_sql("SET 'table.exec.state.ttl' = '1 h'")
    assert t_env.get_config().get_idle_state_retention().total_seconds() == 3600
    t_env.execute_sql("RESET 'table.exec.state.ttl'")
    assert t_env.get_config().get("table.exec.state.ttl", "none") == "none"
    t_env.get_config().get_configuration().set_string("table.local-time-zone", "Asia/Kolkata")
    assert rows_of(t_env.sql_query(query)) == [("1970-01-01 05:30:00.000",)]
    t_env.get_config().set_local_timezone("UTC")


def test_pandas_in_and_out(t_env: StreamTableEnvironment):
    import pandas as pd

    frame = pd.DataFrame({"k": ["a", "b", "a"], "n": [1, 2, 3], "x": [0.5, None, 1.5]})
    table = t_env.from_pandas(frame)
    assert table.get_schema().get_field_data_types() == [DataTypes.STRING(), DataTypes.BIGINT(), DataTypes.DOUBLE()]
    summed = table.group_by(col("k")).select(col("k"), col("n").sum.alias("s")).to_pandas()
    assert sorted(summed.itertuples(index=False, name=None)) == [("a", 4), ("b", 2)]
    assert rows_of(table.where(col("x").is_null).select(col("k"))) == [("b",)]


def test_streams_of_tables_and_tables_of_streams():
    t_env = environment()
    table = t_env.from_elements([("a", 1), ("a", 2)], ["k", "n"])
    counts = table.group_by(col("k")).select(col("k"), col("n").sum.alias("s"))
    with pytest.raises(TableException, match="doesn't support consuming update changes"):
        t_env.to_data_stream(counts)
    pairs = list(t_env.to_retract_stream(counts).execute_and_collect())
    assert [(added, row.s) for added, row in pairs] == [(True, 1), (False, 1), (True, 3)]
    upserts = t_env.to_changelog_stream(counts, changelog_mode=ChangelogMode.upsert()).execute_and_collect()
    assert [(str(row.get_row_kind()), row.s) for row in upserts] == [("+I", 1), ("+U", 3)]
    stream = t_env._environment.from_collection([("x", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
    schema = Schema.new_builder().column_by_expression("more", "f1 + 1").column("f0", "STRING").build()
    assert [tuple(row) for row in t_env.from_data_stream(stream, schema).execute().collect()] == [(2, "x")]
    untyped = t_env._environment.from_collection([1]).map(lambda n: n)
    with pytest.raises(InvalidProgramError, match=r"type of the stream .* is not known; give its last function"):
        t_env.from_data_stream(untyped)
    t_env._planner.close()


def test_a_join_of_tables_that_share_names_is_refused(t_env: StreamTableEnvironment):
    table = t_env.from_elements([(1, 2)], ["a", "b"])
    with pytest.raises(InvalidProgramError, match=r"ambiguous names: \[a, b\]"):
        table.join(table, col("a") == col("b"))
    with pytest.raises(AttributeError, match="no attribute or column 'c'; its columns are a, b"):
        _ = table.c
    with pytest.raises(TypeError, match=r"takes expressions such as col\('a'\), got 'a'"):
        table.select("a")
    with pytest.raises(InvalidProgramError, match="neither true nor false"):
        bool(col("a") == 1)


def test_rows_of_a_result_are_read_once(t_env: StreamTableEnvironment):
    result = t_env.sql_query("SELECT 1").execute()
    result.wait()
    assert [tuple(row) for row in result.collect()] == [(1,)]
    with pytest.raises(InvalidProgramError, match="can be read once"):
        list(result.collect())


@pytest.mark.spark
def test_a_query_runs_on_spark(spark: Any):
    config = Configuration.from_dict({"parallelism.default": "2"})
    env = StreamExecutionEnvironment.get_execution_environment(config)
    t_env = StreamTableEnvironment.create(env)
    twice = udf(lambda n: n * 2, result_type="BIGINT")
    table = t_env.from_elements([("a", 1), ("b", 2), ("a", 3)], ["k", "n"])
    summed = table.group_by(col("k")).select(col("k"), twice(col("n").sum))
    assert sorted(changes_of(summed))[:2] == [("+I", "a", 2), ("+I", "b", 4)]
    t_env._planner.close()


@pytest.mark.parametrize("condition", ["10 / x > 1", "x >= 0"])
def test_failure_of_an_expression_names_the_row(t_env: StreamTableEnvironment, condition: str):
    numbers = t_env.from_elements([(5, "a"), (0, "b"), (2, "c")], ["x", "name"])
    query = t_env.sql_query(f"SELECT 10 / x AS y FROM {numbers} WHERE {condition}")
    with pytest.raises(JobExecutionError, match=r"\(0, 'b'\)"):
        rows_of(query)
