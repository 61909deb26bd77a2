"""From a compiled plan to a graph: each node becomes operators of the environment's stream graph."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.common.exceptions import UnsupportedFeatureError
from penstock.table.operators import (
    calc,
    changelog,
    correlate,
    deduplicate,
    group_aggregate,
    interval_join,
    joins,
    lookup_join,
    over,
    rank,
    scan,
    sinks,
    sort,
    temporal_join,
    window_aggregate,
    window_join,
    window_rank,
    window_table_function,
)
from penstock.table.operators.plan import ExecNode, PlanContext, TableStream, Translation
from penstock.table.operators.sinks import TableSink

if TYPE_CHECKING:
    from penstock.datastream import StreamExecutionEnvironment

_TYPE = re.compile(r"stream-exec-(.+)_(\d+)")

Translate = Callable[[Translation], TableStream]
NODES: dict[str, Translate] = {
    "table-source-scan": scan.table_source_scan,
    "values": scan.values,
    "watermark-assigner": scan.watermark_assigner,
    "calc": calc.calc,
    "python-calc": calc.calc,
    "expand": calc.expand,
    "union": calc.union,
    "exchange": calc.exchange,
    "mini-batch-assigner": calc.exchange,
    "correlate": correlate.correlate,
    "python-correlate": correlate.correlate,
    "group-aggregate": group_aggregate.group_aggregate,
    "window-aggregate": window_aggregate.window_aggregate,
    "group-window-aggregate": window_aggregate.group_window_aggregate,
    "window-table-function": window_table_function.window_table_function,
    "join": joins.join,
    "interval-join": interval_join.interval_join,
    "temporal-join": temporal_join.temporal_join,
    "lookup-join": lookup_join.lookup_join,
    "window-join": window_join.window_join,
    "deduplicate": deduplicate.deduplicate,
    "rank": rank.rank,
    "sort-limit": rank.rank,
    "limit": rank.rank,
    "window-rank": window_rank.window_rank,
    "window-deduplicate": window_rank.window_deduplicate,
    "temporal-sort": sort.temporal_sort,
    "over-aggregate": over.over_aggregate,
    "changelog-normalize": changelog.changelog_normalize,
    "drop-update-before": changelog.drop_update_before,
}


def translate(
    plan: str | Mapping[str, Any], env: StreamExecutionEnvironment, context: PlanContext | None = None
) -> list[TableSink]:
    """Add a compiled plan to the environment. Nothing runs before `env.execute`.

    A sink of the connectors `collect` and `penstock-stream` is only described: its stream is in the answer.
    """
    parsed = json.loads(plan) if isinstance(plan, str) else plan
    context = context or PlanContext()
    nodes = {each["id"]: _exec_node(position, each) for position, each in enumerate(parsed["nodes"])}
    sources: dict[int, list[int]] = {each: [] for each in nodes}
    for edge in parsed["edges"]:
        sources[edge["target"]].append(edge["source"])
    made: dict[int, TableStream] = {}
    found = []
    for each, node in nodes.items():  # A plan lists its nodes after their inputs.
        at = Translation(env, context, node, tuple(made[source] for source in sources[each]))
        if node.kind == "sink":
            found.append(sinks.sink(at))
        else:
            made[each] = NODES[node.kind](at)
    return found


def _exec_node(position: int, description: Mapping[str, Any]) -> ExecNode:
    match = _TYPE.fullmatch(description["type"])
    if match is None:
        raise UnsupportedFeatureError(
            f"tables: a plan with the node {description['type']} is not supported: plans of streaming mode can run"
        )
    node = ExecNode(position, match[1], int(match[2]), description)
    if node.kind not in NODES and node.kind != "sink":
        raise node.unsupported(f"the operation {node.kind}")
    return node
