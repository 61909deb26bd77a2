"""What the job master wants to know about the functions of a job, and what of a job goes to the executors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from penstock.datastream.functions import CheckpointListener, TwoPhaseCommitSinkFunction
from penstock.graph.descriptions import (
    FunctionSourceDescription,
    OperatorDescription,
    SinkDescription,
    SourceDescription,
)
from penstock.graph.job_graph import JobGraph, JobVertex


def hears_of_checkpoints(vertices: Iterable[JobVertex]) -> bool:
    """True if a function wants to be notified that a checkpoint is complete, also of the last one of the job."""
    return any(_listens(node.operator) for vertex in vertices for node in vertex.nodes)


def tasks_hear_of_checkpoints(vertices: Iterable[JobVertex]) -> bool:
    """True if such a function runs in a task. A source function runs in the driver, which notifies it itself."""
    operators = [node.operator for vertex in vertices for node in vertex.nodes]
    return any(_listens(each) for each in operators if not isinstance(each, FunctionSourceDescription))


def _listens(operator: OperatorDescription) -> bool:
    return any(isinstance(each, (CheckpointListener, TwoPhaseCommitSinkFunction)) for each in values_in(operator))


def commits_with_checkpoints(operator: OperatorDescription) -> bool:
    """True for a sink whose results become visible only with a checkpoint."""
    return isinstance(operator, SinkDescription) and operator.commits_with_checkpoints


def values_in(operator: OperatorDescription) -> list[Any]:
    """What the program has given an operator: functions, a source or sink, and whatever else describes it."""
    return [getattr(operator, each.name) for each in dataclasses.fields(operator)]


def without_collections(graph: JobGraph) -> JobGraph:
    """The graph as it goes to the executors: the driver hands out the elements of collections itself."""

    def slim(vertex: JobVertex) -> JobVertex:
        if not isinstance(vertex.head.operator, SourceDescription):
            return vertex
        head = dataclasses.replace(vertex.head, operator=vertex.head.operator.for_executors())
        return dataclasses.replace(vertex, nodes=(head, *vertex.nodes[1:]))

    return dataclasses.replace(graph, vertices=tuple(map(slim, graph.vertices)))
