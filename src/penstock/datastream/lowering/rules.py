"""Which operators of a job are lowered: maps and filters right behind a source that can do their work in Spark SQL."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from penstock.common.typeinfo import TypeInformation
from penstock.datastream.fields import FieldAggregation
from penstock.datastream.lowering.aggregation import aggregated
from penstock.datastream.lowering.expressions import Column, NotLowerable
from penstock.datastream.lowering.program import LoweredProgram, program_of
from penstock.datastream.lowering.tracing import Step, step_of, trace
from penstock.graph.descriptions import (
    FilterDescription,
    LoweredDescription,
    MapDescription,
    ReduceDescription,
    SplitSourceDescription,
)
from penstock.graph.job_graph import is_chainable
from penstock.graph.partitioners import KeyGroupStreamPartitioner
from penstock.graph.stream_graph import StreamGraph, StreamNode

LOWERED_NOTE = " (in Spark SQL)"

_log = logging.getLogger(__name__)


@runtime_checkable
class LowerableSource(Protocol):
    """A source whose rows are columns of Spark SQL."""

    def lowerable_columns(self) -> tuple[list[str], list[Column]]:
        """The names of the rows' fields, and the columns they are."""

    def get_produced_type(self) -> TypeInformation | None: ...

    def lowered(self, program: LoweredProgram, keeps_all: bool) -> Any:
        """The source with `program` carried out; `keeps_all` if another job may continue to read its files."""


def lower(graph: StreamGraph) -> StreamGraph:
    """The graph with everything lowered that can be; operators keep names and ids, and say so in their description."""
    for node in list(graph.nodes.values()):
        graph = _lowered_behind(graph, node)
    return graph


def _lowered_behind(graph: StreamGraph, source: StreamNode) -> StreamGraph:
    operator = source.operator
    if not isinstance(operator, SplitSourceDescription) or not isinstance(operator.source, LowerableSource):
        return graph
    # Timestamps and watermarks are made from the rows as they are.
    if operator.watermarks is not None or source.output_type != operator.source.get_produced_type():
        return graph
    names, columns = operator.source.lowerable_columns()
    candidates = _candidates(graph, source)
    nodes, program = _longest(names, columns, candidates)
    changed: dict[int, StreamNode] = {}
    if graph.is_batch and len(nodes) == len(candidates):
        reduce, reduced = _reduce_behind(graph, names, columns, [source, *nodes], program)
        if reduce is not None:
            program, changed[reduce.id] = reduced, _noted(reduce)
    if program is None:
        return graph
    lowered = replace(operator, source=operator.source.lowered(program, keeps_all=not graph.is_batch))
    changed[source.id] = replace(source, operator=lowered, output_type=None)
    changed.update((node.id, _marked(node, is_last=node is nodes[-1])) for node in nodes)
    return replace(graph, nodes={at: changed.get(at, node) for at, node in graph.nodes.items()})


def _marked(node: StreamNode, is_last: bool) -> StreamNode:
    assert isinstance(node.operator, (MapDescription, FilterDescription))
    operator = LoweredDescription(node.operator, node.output_type, is_last)
    return replace(_noted(node), operator=operator, output_type=None)


def _noted(node: StreamNode) -> StreamNode:
    return replace(node, description=node.description + LOWERED_NOTE)


def _candidates(graph: StreamGraph, source: StreamNode) -> list[StreamNode]:
    """Maps and filters in the source's own chain, each the only one that reads the one before it."""
    found: list[StreamNode] = []
    node = source
    while len(edges := graph.out_edges(node.id)) == 1:
        (edge,) = edges
        node = graph.nodes[edge.target]
        is_simple = type(node.operator) in (MapDescription, FilterDescription) and not node.operator.is_keyed
        if not is_simple or node.on_error is not None or edge.side_tag is not None or not is_chainable(graph, edge):
            break
        found.append(node)
    return found


def _longest(
    names: list[str], columns: Sequence[Column], candidates: Sequence[StreamNode]
) -> tuple[Sequence[StreamNode], LoweredProgram | None]:
    """As many of the operators as can be lowered together, and what takes their place."""
    steps: list[Step] = []
    program = None
    for at, node in enumerate(candidates):
        try:
            steps.append(_step(node))
            program = program_of(trace(columns, names, steps))
        except NotLowerable as reason:
            _log.debug("operator '%s' runs in Python: %s", node.name, reason)
            return candidates[:at], program
    return candidates, program


def _reduce_behind(
    graph: StreamGraph,
    names: list[str],
    columns: list[Column],
    chain: Sequence[StreamNode],
    program: LoweredProgram | None,
) -> tuple[StreamNode | None, LoweredProgram | None]:
    """The sum, min or max by key that alone reads what `program` makes, and how Spark reduces for it, if it can."""
    edges = graph.out_edges(chain[-1].id)
    if len(edges) != 1 or edges[0].side_tag is not None or len(graph.in_edges(edges[0].target)) != 1:
        return None, None
    node, partitioner = graph.nodes[edges[0].target], edges[0].partitioner
    operator = node.operator
    if not isinstance(operator, ReduceDescription) or not isinstance(partitioner, KeyGroupStreamPartitioner):
        return None, None
    if node.on_error is not None:
        return None, None
    if not isinstance(operator.function, FieldAggregation):
        return None, None
    try:
        before = program or replace(program_of(trace(columns, names, [])), has_functions=False)
        return node, aggregated(before, columns, partitioner.key_selector, operator.function)
    except NotLowerable as reason:
        _log.debug("operator '%s' runs in Python: %s", node.name, reason)
        return None, None


def _step(node: StreamNode) -> Step:
    operator = node.operator
    assert isinstance(operator, (MapDescription, FilterDescription))
    return step_of(operator.function, isinstance(operator, FilterDescription), node.output_type)
