"""Connectors of tables: whole jobs that copy a table to another one."""

from __future__ import annotations

import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from table_plans import COLUMNS, collected, copy_plan, environment, run

from penstock.common.exceptions import InvalidProgramError, UnsupportedFeatureError
from penstock.table.operators import translate

ROWS: list[Any] = [
    (1, "ann", "1.50", "2024-01-01 00:00:01"),
    (2, "b,c", None, "2024-01-01 00:00:02.500"),
    (3, None, "3.00", None),
]


@pytest.fixture
def json_table(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "src"
    path.write_text("".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in ROWS), encoding="utf-8")
    return {"connector": "filesystem", "format": "json", "path": str(path)}


def lines_in(folder: Path) -> list[str]:
    parts = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    return sorted(line for path in parts for line in path.read_text(encoding="utf-8").splitlines())


def test_files_are_written_and_read(json_table: dict[str, str], tmp_path: Path):
    csv = {"connector": "filesystem", "format": "csv", "path": str(tmp_path / "csv")}
    run(copy_plan(json_table, csv))
    assert lines_in(tmp_path / "csv") == [
        '1,ann,1.5,"2024-01-01 00:00:01"',
        '2,"b,c",,"2024-01-01 00:00:02.5"',
        "3,,3,",
    ]
    again = collected(copy_plan(csv, {"connector": "collect"}))
    assert sorted(again) == [
        (1, "ann", Decimal("1.50"), 1704067201_000_000_000),
        (2, "b,c", None, 1704067202_500_000_000),
        (3, "", Decimal("3.00"), None),
    ]


def test_partitions_are_folders(json_table: dict[str, str], tmp_path: Path):
    sink = {"connector": "filesystem", "format": "json", "path": str(tmp_path / "out")}
    run(copy_plan(json_table, sink, partition=("name",)))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "name=__HIVE_DEFAULT_PARTITION__",
        "name=ann",
        "name=b,c",
    ]
    assert lines_in(tmp_path / "out" / "name=ann") == ['{"id":1,"price":1.5,"at":"2024-01-01 00:00:01"}']


def test_rows_are_printed(json_table: dict[str, str], capsys: pytest.CaptureFixture[str]):
    run(copy_plan(json_table, {"connector": "print", "print-identifier": "out"}))
    assert capsys.readouterr().out.splitlines() == [
        "out> +I[1, ann, 1.50, 2024-01-01T00:00:01]",
        "out> +I[2, b,c, null, 2024-01-01T00:00:02.500]",
        "out> +I[3, null, 3.00, null]",
    ]


def test_nothing_comes_out_of_a_blackhole(json_table: dict[str, str], capsys: pytest.CaptureFixture[str]):
    run(copy_plan(json_table, {"connector": "blackhole"}))
    assert capsys.readouterr().out == ""


def test_generated_rows_follow_the_options():
    columns = {"n": "BIGINT", "s": "STRING", "c": "INT", "f": "DOUBLE", "t": "TIMESTAMP(3)", "a": "ARRAY<INT>"}
    options = {
        "connector": "datagen", "number-of-rows": "20", "rows-per-second": "100000", "fields.n.kind": "sequence",
        "fields.n.start": "5", "fields.n.end": "1000", "fields.s.length": "7", "fields.c.min": "3", "fields.c.max": "4",
        "fields.a.length": "2",
    }  # fmt: skip
    rows = collected(copy_plan(options, {"connector": "collect"}, columns))
    assert [row[0] for row in rows] == list(range(5, 25))
    assert all(len(row[1]) == 7 and row[2] in (3, 4) and isinstance(row[3], float) and len(row[5]) == 2 for row in rows)


def test_a_sequence_ends_generated_rows():
    options = {"connector": "datagen", "fields.n.kind": "sequence", "fields.n.start": "1", "fields.n.end": "3"}
    assert collected(copy_plan(options, {"connector": "collect"}, {"n": "INT"})) == [(1,), (2,), (3,)]


def database(tmp_path: Path, *statements: str) -> tuple[Path, dict[str, str]]:
    path = tmp_path / "data.db"
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path, {"connector": "jdbc", "url": f"jdbc:sqlite:{path}"}


def rows_in(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


DDL = "CREATE TABLE {} (id INT PRIMARY KEY, name TEXT, price NUMERIC, at TEXT)"


def test_a_database_is_written_and_read(json_table: dict[str, str], tmp_path: Path):
    path, options = database(tmp_path, DDL.format("t"), "INSERT INTO t VALUES (1, 'old', 0, NULL)")
    sink = {**options, "table-name": "t"}
    run(copy_plan(json_table, sink, key=["id"]))
    assert rows_in(path, "SELECT id, name FROM t ORDER BY id") == [(1, "ann"), (2, "b,c"), (3, None)]
    assert sorted(collected(copy_plan(sink, {"connector": "collect"}))) == [
        (1, "ann", Decimal("1.50"), 1704067201_000_000_000),
        (2, "b,c", None, 1704067202_500_000_000),
        (3, None, Decimal("3.00"), None),
    ]


def test_a_database_is_read_in_parts(tmp_path: Path):
    rows = [f"INSERT INTO t VALUES ({n}, 'x{n}', 0, NULL)" for n in range(10)]
    _, options = database(tmp_path, DDL.format("t"), *rows)
    source = {
        **options, "table-name": "t", "scan.partition.column": "id", "scan.partition.num": "3",
        "scan.partition.lower-bound": "0", "scan.partition.upper-bound": "9",
    }  # fmt: skip
    assert sorted(row[0] for row in collected(copy_plan(source, {"connector": "collect"}))) == list(range(10))


def changes_plan(sink: dict[str, str], path: Path, key: list[str]) -> dict[str, Any]:
    source = {"connector": "filesystem", "format": "debezium-json", "path": str(path)}
    plan = copy_plan(source, sink, key=key)
    plan["nodes"][1]["inputChangelogMode"] = ["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"]
    return plan


@pytest.fixture
def changes(tmp_path: Path) -> Path:
    one, two = {"id": 1, "name": "ann", "price": "1.50"}, {"id": 1, "name": "eve", "price": "2.50"}
    three = {"id": 3, "name": "bob", "price": None}
    path = tmp_path / "changes"
    messages = [
        {"before": None, "after": one, "op": "c"},
        {"before": None, "after": three, "op": "c"},
        {"before": one, "after": two, "op": "u"},
        {"before": three, "after": None, "op": "d"},
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in messages), encoding="utf-8")
    return path


def test_updates_and_deletes_reach_a_database_by_key(changes: Path, tmp_path: Path):
    path, options = database(tmp_path, DDL.format("t"), "INSERT INTO t VALUES (3, 'old', 0, NULL)")
    run(changes_plan({**options, "table-name": "t"}, changes, ["id"]))
    assert rows_in(path, "SELECT id, name, price FROM t") == [(1, "eve", 2.5)]


def test_changes_are_printed_with_their_kinds(changes: Path, capsys: pytest.CaptureFixture[str]):
    run(changes_plan({"connector": "print"}, changes, []))
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "+I[1", "+I[3", "-U[1", "+U[1", "-D[3",
    ]  # fmt: skip


def test_changes_are_refused_where_rows_are_only_added(changes: Path, tmp_path: Path):
    sink = {"connector": "filesystem", "format": "json", "path": str(tmp_path / "out")}
    with pytest.raises(UnsupportedFeatureError, match="takes no updates and deletes"):
        translate(changes_plan(sink, changes, []), environment())
    with pytest.raises(InvalidProgramError, match="needs a PRIMARY KEY"):
        _, options = database(tmp_path, DDL.format("t"))
        translate(changes_plan({**options, "table-name": "t"}, changes, []), environment())


def test_rows_with_null_in_a_column_that_forbids_it(json_table: dict[str, str], capsys: pytest.CaptureFixture[str]):
    plan = copy_plan(json_table, {"connector": "print"})
    plan["nodes"][1]["dynamicTableSink"]["table"]["resolvedTable"]["schema"]["columns"][1]["dataType"] += " NOT NULL"
    with pytest.raises(Exception, match="Column 'name' is NOT NULL"):
        run(plan)
    run(plan, config={"table.exec.sink.not-null-enforcer": "DROP"})
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_temporary_table_is_asked_for(json_table: dict[str, str]):
    plan = copy_plan(json_table, {"connector": "collect"})
    known = plan["nodes"][0]["scanTableSource"]["table"].pop("resolvedTable")
    asked = []

    def tables(identifier: str) -> Any:
        asked.append(identifier)
        return {**known["schema"], "options": known["options"]}

    assert len(collected(plan, tables=tables)) == 3 and asked == ["`c`.`d`.`src`"]
    with pytest.raises(InvalidProgramError, match=r"does not say what the table `c`.`d`.`src` is"):
        translate(plan, environment())


@pytest.mark.parametrize("connector", ["hbase", "kinesis"])
def test_a_connector_that_is_missing_is_named(connector: str, json_table: dict[str, str]):
    with pytest.raises(UnsupportedFeatureError, match=f"connector '{connector}': the connector cannot be read here"):
        translate(copy_plan({"connector": connector}, {"connector": "print"}), environment())
    with pytest.raises(UnsupportedFeatureError, match=f"connector '{connector}': the connector cannot be written here"):
        translate(copy_plan(json_table, {"connector": connector}), environment())


def test_an_option_that_is_missing_is_named():
    with pytest.raises(InvalidProgramError, match="needs the option 'path'"):
        translate(copy_plan({"connector": "filesystem", "format": "json"}, {"connector": "print"}), environment())


def test_a_node_that_is_missing_is_named_when_the_plan_is_built(json_table: dict[str, str]):
    plan = copy_plan(json_table, {"connector": "print"})
    plan["nodes"][0]["type"] = "stream-exec-match_1"
    with pytest.raises(UnsupportedFeatureError, match="the operation match is not supported"):
        translate(plan, environment())
