"""Whether two jobs are the same, so that one can continue exactly where the other stood."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any

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
    return f"{type(operator).__name__}:{_described(watermarks)}"


def _described(value: Any, depth: int = 8) -> Any:
    """A value in words that are the same in every process: what kind of thing it is, and the numbers in it.

    A pickle would not do: that of a class of the program's script differs from run to run.
    """
    if isinstance(value, (type(None), bool, int, float, str, bytes, Enum)):
        return repr(value)
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, (list, tuple)):
        return [_described(each, depth - 1) for each in value]
    if isinstance(value, dict):
        return sorted((str(key), repr(_described(each, depth - 1))) for key, each in value.items())
    name = str(getattr(value, "__qualname__", type(value).__qualname__))
    return [name, *(_described(part, depth - 1) for part in _parts(value))]


def _parts(value: Any) -> list[Any]:
    """What else distinguishes a value from others of its kind."""
    if isinstance(value, type):
        return []
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, types.MethodType):
        return [value.__self__]
    if isinstance(value, types.FunctionType):
        numbers = [each for each in value.__code__.co_consts if isinstance(each, (int, float, str))]
        return [numbers, value.__defaults__, [cell.cell_contents for cell in value.__closure__ or ()]]
    return [getattr(value, "__dict__", {})]


def with_max_parallelism(job_graph: JobGraph, by_vertex: Mapping[int, int]) -> JobGraph:
    """The job with other max parallelisms for some vertices."""

    def changed(vertex: JobVertex) -> JobVertex:
        if vertex.id not in by_vertex:
            return vertex
        nodes = tuple(dataclasses.replace(node, max_parallelism=by_vertex[vertex.id]) for node in vertex.nodes)
        return dataclasses.replace(vertex, nodes=nodes)

    return dataclasses.replace(job_graph, vertices=tuple(map(changed, job_graph.vertices)))
