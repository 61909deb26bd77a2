"""Whether two jobs are the same, so that one can go on exactly where the other stood."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping

import cloudpickle  # type: ignore[import-untyped]

from penstock.graph.descriptions import SourceDescription, WatermarksDescription
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.graph.stream_graph import StreamNode


def fingerprint(job_graph: JobGraph) -> str:
    """Equal for jobs whose tasks, channels and watermark strategies are the same.

    What tasks remember besides state (watermarks, whose turn it is in round robin) fits only then. Functions may
    differ: their state is matched by the operators' ids.
    """
    # Node numbers count up over all jobs of a program: a node's place in this job says the same for every run.
    place = {node.id: at for at, node in enumerate(node for vertex in job_graph.vertices for node in vertex.nodes)}
    vertices = [
        (
            [(node.operator_id, node.parallelism, node.max_parallelism, _kind(node)) for node in vertex.nodes],
            [(place[edge.source], place[edge.target], edge.side_tag) for edge in vertex.chained_edges],
        )
        for vertex in job_graph.vertices
    ]
    edges = [
        (e.target_vertex, place[e.source_node], e.input_index, type(e.partitioner).__name__, e.side_tag)
        for e in job_graph.edges
    ]
    return hashlib.sha256(repr((vertices, edges)).encode()).hexdigest()[:32]


def _kind(node: StreamNode) -> str:
    operator = node.operator
    watermarks = operator.watermarks if isinstance(operator, SourceDescription) else operator
    if not isinstance(watermarks, WatermarksDescription):
        return type(operator).__name__
    return f"{type(operator).__name__}:{hashlib.sha256(cloudpickle.dumps(watermarks)).hexdigest()}"


def with_max_parallelism(job_graph: JobGraph, by_vertex: Mapping[int, int]) -> JobGraph:
    """The job with other max parallelisms for some vertices."""

    def changed(vertex: JobVertex) -> JobVertex:
        if vertex.id not in by_vertex:
            return vertex
        nodes = tuple(dataclasses.replace(node, max_parallelism=by_vertex[vertex.id]) for node in vertex.nodes)
        return dataclasses.replace(vertex, nodes=nodes)

    return dataclasses.replace(job_graph, vertices=tuple(map(changed, job_graph.vertices)))
