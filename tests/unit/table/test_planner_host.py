"""Flink's planner as a library: statements in, plans out, and its refusals as errors of ours."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.common.exceptions import EnvironmentSetupError, UnsupportedFeatureError
from penstock.table.planner import host
from penstock.table.planner.host import Planner, TableException, flink_jars

TABLES = {
    "numbers": "(n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')",
    "printed": "(n INT) WITH ('connector' = 'print')",
    "kept": "(n INT) WITH ('connector' = 'blackhole')",
    "orders": "(id INT, made_at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', paid_at AS PROCTIME(),"
    " WATERMARK FOR made_at AS made_at - INTERVAL '1' SECOND)"
    " WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json')",
    "counts": "(id INT, many BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'jdbc', 'url' = 'jdbc:x')",
    "lines": "(id INT, many BIGINT) WITH ('connector' = 'filesystem', 'path' = 'lines', 'format' = 'csv')",
}


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    made = Planner(is_streaming=True, catalog="default_catalog", database="default_database")
    for name, definition in TABLES.items():
        made.execute(f"CREATE TABLE {name} {definition}")
    yield made
    made.close()


def nodes_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return json.loads(answer["plan"])["nodes"]


def kinds_of(answer: dict[str, Any]) -> list[str]:
    return [node["type"].removeprefix("stream-exec-").rpartition("_")[0] for node in nodes_of(answer)]


def test_an_insert_gives_the_plan_and_the_names_of_its_sinks(planner: Planner):
    answer = planner.execute("INSERT INTO printed SELECT n + 1 FROM numbers")
    assert answer["kind"] == "insert"
    assert answer["sinks"] == ["default_catalog.default_database.printed"]
    assert kinds_of(answer) == ["table-source-scan", "calc", "sink"]
    scan, calc, _ = nodes_of(answer)
    table = scan["scanTableSource"]["table"]["resolvedTable"]
    assert table["options"] == {"connector": "datagen", "number-of-rows": "3"}
    assert calc["projection"][0]["internalName"] == "$+$1"
    assert [operand["kind"] for operand in calc["projection"][0]["operands"]] == ["INPUT_REF", "LITERAL"]


def test_a_query_gives_the_plan_and_the_columns(planner: Planner):
    answer = planner.execute("SELECT n, CAST(n AS STRING) AS t FROM numbers")
    assert answer["kind"] == "query"
    assert [(column["name"], column["dataType"]) for column in answer["columns"]] == [
        ("n", "INT"),
        ("t", "VARCHAR(2147483647)"),
    ]
    assert kinds_of(answer) == ["table-source-scan", "calc", "sink"]


def test_several_inserts_are_one_plan_that_reads_a_table_once(planner: Planner):
    answer = planner.compile(["INSERT INTO printed SELECT n FROM numbers", "INSERT INTO kept SELECT -n FROM numbers"])
    assert sorted(kinds_of(answer)) == ["calc", "sink", "sink", "table-source-scan"]


def test_a_statement_that_is_no_job_gives_rows(planner: Planner):
    answer = planner.execute("SHOW TABLES")
    assert answer["kind"] == "result"
    assert sorted(answer["rows"]) == [[name] for name in sorted(TABLES)]


def test_kafka_makes_watermarks_in_the_scan_and_others_in_a_node(planner: Planner):
    answer = planner.execute("INSERT INTO lines SELECT id, 1 FROM orders")
    assert kinds_of(answer) == ["table-source-scan", "calc", "sink"]
    abilities = [ability["type"] for ability in nodes_of(answer)[0]["scanTableSource"]["abilities"]]
    assert abilities == ["ReadingMetadata", "WatermarkPushDown"]
    watermarked = "(made_at TIMESTAMP(3), WATERMARK FOR made_at AS made_at) WITH ('connector' = 'datagen')"
    planner.execute(f"CREATE TEMPORARY TABLE generated {watermarked}")
    assert "watermark-assigner" in kinds_of(planner.execute("SELECT made_at FROM generated"))
    planner.execute("DROP TEMPORARY TABLE generated")


def test_a_database_takes_updates_by_its_key_and_files_take_none(planner: Planner):
    updates = "SELECT id, COUNT(*) FROM orders GROUP BY id"
    answer = planner.execute(f"INSERT INTO counts {updates}")
    assert kinds_of(answer)[-3:] == ["exchange", "group-aggregate", "sink"]
    assert nodes_of(answer)[-1]["inputChangelogMode"] == ["INSERT", "UPDATE_AFTER"]
    with pytest.raises(TableException, match="lines' doesn't support consuming update changes"):
        planner.execute(f"INSERT INTO lines {updates}")


def test_a_database_is_looked_up_for_each_row(planner: Planner):
    join = "JOIN counts FOR SYSTEM_TIME AS OF o.paid_at AS c ON o.id = c.id"
    answer = planner.execute(f"INSERT INTO lines SELECT o.id, c.many FROM orders AS o {join}")
    assert "lookup-join" in kinds_of(answer)


def test_explain_draws_the_plan_without_the_connectors(planner: Planner):
    text = planner.explain(["INSERT INTO lines SELECT n, 1 FROM numbers WHERE n > 1"], ["CHANGELOG_MODE"])
    assert "== Abstract Syntax Tree ==" in text
    assert "where=[>(n, 1)], changelogMode=[I])" in text
    rows = planner.execute("EXPLAIN SELECT n FROM numbers")["rows"]
    assert "== Optimized Execution Plan ==" in rows[0][0]


def test_files_are_read_as_a_bounded_table(planner: Planner):
    answer = planner.execute("SELECT id FROM lines")
    options = nodes_of(answer)[0]["scanTableSource"]["table"]["resolvedTable"]["options"]
    assert options == {"connector": "filesystem", "path": "lines", "format": "csv"}


def test_a_table_that_is_missing_is_an_error_in_flinks_words_said_once(planner: Planner):
    with pytest.raises(TableException) as caught:
        planner.execute("SELECT * FROM missing")
    message = str(caught.value)
    assert message.startswith("SQL validation failed. From line 1, column 15 to line 1, column 21:")
    assert message.count("Object 'missing' not found") == 1


def test_statements_that_change_rows_of_a_table_are_not_supported(planner: Planner):
    with pytest.raises(UnsupportedFeatureError, match="DELETE and UPDATE statements"):
        planner.execute("DELETE FROM counts WHERE id = 1")


def test_a_declared_function_is_planned_by_its_types(planner: Planner):
    planner.declare("scalar", "shout", ["STRING"], "STRING")
    answer = planner.execute("SELECT shout(CAST(n AS STRING)) AS loud FROM numbers")
    assert answer["columns"][0]["dataType"] == "VARCHAR(2147483647)"
    assert kinds_of(answer) == ["table-source-scan", "calc", "sink"]
    assert nodes_of(answer)[1]["projection"][0]["systemName"] == "shout"
    with pytest.raises(UnsupportedFeatureError, match="EXPLAIN of statements that call Python functions"):
        planner.execute("EXPLAIN SELECT shout(CAST(n AS STRING)) FROM numbers")
    assert planner.drop_temporary("system function", "shout")
    with pytest.raises(TableException, match="No match found for function signature shout"):
        planner.execute("SELECT shout('a')")


def test_declared_functions_of_rows_and_aggregates_are_planned_as_flinks_own(planner: Planner):
    planner.declare("table", "repeated", ["INT"], "ROW<r INT>")
    planner.declare("aggregate", "product", ["INT"], "BIGINT", "ROW<p BIGINT>")
    rows = planner.execute("SELECT n, r FROM numbers, LATERAL TABLE(repeated(n)) AS t(r)")
    assert kinds_of(rows) == ["table-source-scan", "correlate", "sink"]
    groups = planner.execute("SELECT n, product(n), SUM(n) FROM numbers GROUP BY n")
    assert kinds_of(groups) == ["table-source-scan", "exchange", "group-aggregate", "sink"]
    calls = [call["name"] for call in nodes_of(groups)[2]["aggCalls"]]
    assert calls == ["EXPR$1", "EXPR$2"]
    again = planner.execute("SELECT product(CAST(c AS INT)) FROM (SELECT n, COUNT(*) AS c FROM numbers GROUP BY n)")
    assert nodes_of(again)[-2]["needRetraction"]


def test_a_function_of_python_in_a_statement_is_named_for_python_to_find(planner: Planner):
    answer = planner.execute("CREATE TEMPORARY SYSTEM FUNCTION loud AS 'my.module.loud' LANGUAGE PYTHON")
    assert (answer["kind"], answer["name"], answer["class"], answer["ofSystem"]) == (
        "function",
        "loud",
        "my.module.loud",
        True,
    )
    answer = planner.execute("CREATE FUNCTION louder AS 'my.module.louder' LANGUAGE PYTHON")
    assert answer["name"] == "`default_catalog`.`default_database`.`louder`"


def test_environments_do_not_see_each_others_tables(planner: Planner):
    other = Planner(is_streaming=False, catalog="mine", database="here")
    try:
        assert other.execute("SHOW TABLES")["rows"] == []
        assert other.execute("SHOW CATALOGS")["rows"] == [["mine"]]
    finally:
        other.close()


@pytest.mark.spark
def test_with_a_session_the_planner_runs_in_sparks_java(spark: Any):
    first, second = (Planner(is_streaming=True, catalog="c", database="d") for _ in range(2))
    try:
        assert first._java.gateway is spark.sparkContext._gateway
        first.execute("CREATE TABLE here (n INT) WITH ('connector' = 'print')")
        assert first.execute("SHOW TABLES")["rows"] == [["here"]]
        assert second.execute("SHOW TABLES")["rows"] == []
        assert spark.range(3).count() == 3
    finally:
        first.close()
        second.close()


def test_without_flinks_jars_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host, "_DISTRIBUTION", "a-distribution-that-nobody-has")
    with pytest.raises(EnvironmentSetupError, match=r"not installed; .* pip install 'penstock\[table\]'"):
        Planner(is_streaming=True, catalog="default_catalog", database="default_database")


def test_another_version_of_flinks_jars_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    installed = tmp_path / "apache_flink_libraries-1.4.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: apache-flink-libraries\nVersion: 1.4\n")
    (installed / "RECORD").write_text("pyflink/lib/flink-dist-1.4.jar,,\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(EnvironmentSetupError, match=r"apache-flink-libraries 1\.4 has no flink-dist, .*version 2\.3"):
        flink_jars()
