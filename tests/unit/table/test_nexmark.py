"""The queries of the Nexmark benchmark give what Flink gives for the same events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.nexmark_sql.events import write_events
from benchmarks.nexmark_sql.queries import DEPENDS_ON_THE_CLOCK, NEEDED, QUERIES, UPSERTS, statements
from nexmark_results import EVENTS, STEP_MS, rows_left, summary

from penstock.table import EnvironmentSettings, TableEnvironment

RECORDED = json.loads((Path(__file__).parents[2] / "pyflink" / "nexmark_results.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> TableEnvironment:
    folder = tmp_path_factory.mktemp("nexmark")
    write_events(folder, EVENTS, STEP_MS)
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("parallelism.default", "1")
    t_env.get_config().set("execution.target", "inline")
    for statement in [*statements(folder), *(each for needed in NEEDED.values() for each in needed)]:
        t_env.execute_sql(statement)
    return t_env


def rows_of(tables: TableEnvironment, name: str) -> list[str]:
    with tables.execute_sql(QUERIES[name]).collect() as rows:
        return rows_left(((str(row.get_row_kind()), row) for row in rows), UPSERTS.get(name))


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in DEPENDS_ON_THE_CLOCK])
def test_results_are_those_of_flink(tables: TableEnvironment, name: str):
    assert RECORDED[name]["count"] > 0, "a query without results proves nothing"
    assert summary(rows_of(tables, name)) == RECORDED[name]
