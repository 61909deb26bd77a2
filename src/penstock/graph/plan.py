"""The plan as JSON, in the form that Flink's plan visualizer reads."""

from __future__ import annotations

import json
from typing import Any

from penstock.graph.stream_graph import StreamGraph, StreamNode


def plan_as_dict(graph: StreamGraph) -> dict[str, Any]:
    return {"nodes": [_node(graph, node) for node in graph.nodes.values()]}


def plan_as_json(graph: StreamGraph) -> str:
    return json.dumps(plan_as_dict(graph), indent=2)


def _node(graph: StreamGraph, node: StreamNode) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": "Data Source" if node.is_source else "Data Sink" if node.is_sink else "Operator",
        "contents": node.description,
        "parallelism": node.parallelism,
        "slot_sharing_group": node.slot_sharing_group,
        "chaining_strategy": node.chaining.value,
    }
    inputs = graph.in_edges(node.id)
    if inputs:
        shown["predecessors"] = [
            {
                "id": edge.source,
                "ship_strategy": edge.partitioner.ship_strategy,
                # Flink's generator calls a single input "second" and so do the tools that read it.
                "side": "first" if edge.input_index == 0 and len({e.input_index for e in inputs}) > 1 else "second",
            }
            for edge in inputs
        ]
    return shown
