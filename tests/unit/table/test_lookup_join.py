"""Lookup joins: rows are found in a database when a row arrives, and remembered as the options say."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from table_plans import collected, copy_plan

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.connectors.options import Options
from penstock.table.operators.lookup_join import CacheOptions, JdbcLookup, LookupCache

ORDERS = {"id": "INT", "user_id": "INT"}
USERS = {"id": "INT NOT NULL", "name": "STRING", "age": "INT"}


@pytest.fixture
def users(tmp_path: Path) -> dict[str, str]:
    connection = sqlite3.connect(tmp_path / "data.db")
    connection.execute("CREATE TABLE users (id INT, name TEXT, age INT)")
    connection.executemany("INSERT INTO users VALUES (?, ?, ?)", [(1, "ann", 5), (2, "bob", 5), (2, "bo", 6)])
    connection.commit()
    connection.close()
    return {"connector": "jdbc", "url": f"jdbc:sqlite:{tmp_path / 'data.db'}", "table-name": "users"}


def lookup_plan(tmp_path: Path, users: dict[str, str], join: str, **more: Any) -> dict[str, Any]:
    """SELECT * FROM orders JOIN users FOR SYSTEM_TIME AS OF ... ON orders.user_id = users.id ..."""
    (tmp_path / "orders").write_text("10,1\n11,2\n12,3\n13,\n", encoding="utf-8")
    source = {"connector": "filesystem", "format": "csv", "path": str(tmp_path / "orders")}
    plan = copy_plan(source, {"connector": "collect"}, ORDERS)
    columns = [{"name": name, "dataType": data_type} for name, data_type in USERS.items()]
    table = {"identifier": "`c`.`d`.`users`", "resolvedTable": {"schema": {"columns": columns}, "options": users}}
    node = {
        "id": 9,
        "type": "stream-exec-lookup-join_1",
        "joinType": join,
        "joinCondition": None,
        "temporalTable": {"lookupTableSource": {"table": table}},
        "lookupKeys": {"0": {"type": "FieldRef", "index": 1}},
        "outputType": "ROW<`id` INT, `user_id` INT, `id0` INT, `name` STRING, `age` INT>",
        "description": "LookupJoin(table=[c.d.users])",
        **more,
    }
    scan, sink = plan["nodes"]
    sink["outputType"] = node["outputType"]
    return {"nodes": [scan, node, sink], "edges": [{"source": 7, "target": 9}, {"source": 9, "target": 8}]}


def compared(operator: str, column: int, value: int) -> dict[str, Any]:
    operands = [
        {"kind": "INPUT_REF", "inputIndex": column, "type": "INT"},
        {"kind": "LITERAL", "value": value, "type": "INT NOT NULL"},
    ]
    return {"kind": "CALL", "internalName": f"${operator}$1", "operands": operands, "type": "BOOLEAN"}


def test_every_row_that_is_found_is_joined(tmp_path: Path, users: dict[str, str]):
    rows = collected(lookup_plan(tmp_path, users, "INNER"))
    assert rows == [(10, 1, 1, "ann", 5), (11, 2, 2, "bob", 5), (11, 2, 2, "bo", 6)]


def test_a_row_without_a_match_is_kept_by_a_left_join(tmp_path: Path, users: dict[str, str]):
    rows = collected(lookup_plan(tmp_path, users, "LEFT"))
    assert rows[3:] == [(12, 3, None, None, None), (13, None, None, None, None)]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"filterOnTemporalTable": compared("=", 2, 6)}, [(11, 2, 2, "bo", 6)]),
        ({"joinCondition": compared("=", 4, 6)}, [(11, 2, 2, "bo", 6)]),
        ({"preFilterCondition": compared("<", 0, 11)}, [(10, 1, 1, "ann", 5)]),
        (
            {"lookupKeys": {
                "0": {"type": "FieldRef", "index": 1},
                "2": {"type": "Constant", "literal": {"kind": "LITERAL", "value": 6, "type": "INT NOT NULL"}},
            }},
            [(11, 2, 2, "bo", 6)],
        ),
    ],
)  # fmt: skip
def test_conditions(more: Any, expected: Any, tmp_path: Path, users: dict[str, str]):
    assert collected(lookup_plan(tmp_path, users, "INNER", **more)) == expected


def test_a_cache_asks_once_for_a_key(tmp_path: Path, users: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    asked = []
    look_up = JdbcLookup.rows

    def counted(self: JdbcLookup, key: Any) -> Any:
        asked.append(key)
        return look_up(self, key)

    monkeypatch.setattr(JdbcLookup, "rows", counted)
    plan = lookup_plan(tmp_path, {**users, "lookup.cache": "PARTIAL"}, "INNER")
    (tmp_path / "orders").write_text("10,1\n11,1\n12,3\n13,3\n", encoding="utf-8")
    assert len(collected(plan)) == 2
    assert asked == [(1,), (3,)]


def test_what_is_cached_expires():
    now = 0
    cache = LookupCache(CacheOptions(max_rows=2, after_write_ms=100, after_access_ms=60), lambda: now)
    cache.put((1,), [("a",)])
    now = 50
    assert cache.get((1,)) == [("a",)]
    now = 99
    assert cache.get((1,)) == [("a",)]
    now = 100
    assert cache.get((1,)) is None
    cache.put((1,), [])
    cache.put((2,), [])
    cache.put((3,), [])
    assert cache.get((1,)) is None and cache.get((2,)) == [] and cache.get((3,)) == []
    now = 160
    assert cache.get((2,)) is None


def test_options_of_the_cache():
    assert CacheOptions.of(Options({}, "t")) == CacheOptions()
    old = {"lookup.cache.max-rows": "7", "lookup.cache.ttl": "2 s"}
    assert CacheOptions.of(Options(old, "t")) == CacheOptions(max_rows=7, after_write_ms=2000)
    with pytest.raises(UnsupportedFeatureError, match="FULL is not supported"):
        CacheOptions.of(Options({"lookup.cache": "FULL"}, "t"))


def test_a_connector_without_lookups_is_named(tmp_path: Path, users: dict[str, str]):
    with pytest.raises(UnsupportedFeatureError, match="rows cannot be looked up in it"):
        collected(lookup_plan(tmp_path, {**users, "connector": "kafka"}, "INNER"))
