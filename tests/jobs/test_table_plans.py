"""Compiled plans of tables in real processes: what operators hold arrives there, and results are Flink's."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from table_plans import CASES, RECORDED, internal_rows

from penstock.table.operators import PlanContext, translate
from penstock.table.rows import ROW_KINDS

pytestmark = pytest.mark.spark


def final(changes: list[list[Any]]) -> Counter[str]:
    rows: Counter[str] = Counter()
    for kind, *values in changes:
        rows[repr([str(value) for value in values])] += 1 if kind in ("+I", "+U") else -1
    return Counter({row: count for row, count in rows.items() if count})


@pytest.mark.parametrize("name", ["group having", "full join of groups", "top n of sums", "rollup", "unnest"])
def test_final_table_is_flinks(name: str, on_spark: Any):
    env = on_spark(2)
    plan = json.loads(json.dumps(CASES[name]["plan"]))
    streams = {}
    for node in plan["nodes"]:
        if "scanTableSource" in node:
            table = node["scanTableSource"]["table"]
            source = table["identifier"].split(".")[-1].strip("`")
            streams[source] = env.from_collection(internal_rows(source))
            table["resolvedTable"]["options"] = {"connector": "penstock-stream", "stream": source}
        if "dynamicTableSink" in node:
            node["dynamicTableSink"]["table"]["resolvedTable"]["options"] = {"connector": "collect"}
    (sink,) = translate(plan, env, PlanContext(config=RECORDED["settings"], streams=streams))
    assert sink.stream is not None
    with sink.stream.execute_and_collect() as rows:
        ours = [[ROW_KINDS[row[-1]], *row[:-1]] if sink.is_changelog else ["+I", *row] for row in rows]
    assert final(ours) == final(CASES[name]["changelog"])
