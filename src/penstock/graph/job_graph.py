"""JobGraph: operators fused into chains. Each chain is a vertex and runs as one task per subtask."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.graph.descriptions import DriverSinkDescription
from penstock.graph.partitioners import ForwardPartitioner, StreamPartitioner, connected_upstream
from penstock.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from penstock.graph.transformations import ChainingStrategy


@dataclass(frozen=True)
class JobEdge:
    """A connection between two vertices, over which records are exchanged."""

    index: int
    """Its number within the job."""
    source_vertex: int
    target_vertex: int
    source_node: int
    """The operator of the source's chain whose output it carries."""
    input_index: int
    partitioner: StreamPartitioner
    side_tag: str | None = None


@dataclass(frozen=True)
class JobVertex:
    """A chain: `nodes` in the order records pass them; the first one has the inputs."""

    id: int
    nodes: tuple[StreamNode, ...]
    chained_edges: tuple[StreamEdge, ...]
    stage: int
    """Longest path from a source: the stage whose tasks run it. -1: it runs in the driver."""

    @property
    def head(self) -> StreamNode:
        return self.nodes[0]

    @property
    def parallelism(self) -> int:
        return self.head.parallelism

    @property
    def max_parallelism(self) -> int:
        return self.head.max_parallelism

    @property
    def name(self) -> str:
        """Flink's form: `Source: A -> B -> (C, D)`."""
        return self._name_from(self.head.id)

    def _name_from(self, node_id: int) -> str:
        node = next(each for each in self.nodes if each.id == node_id)
        following = [self._name_from(edge.target) for edge in self.chained_edges if edge.source == node_id]
        if not following:
            return node.name
        return f"{node.name} -> {following[0] if len(following) == 1 else '(' + ', '.join(following) + ')'}"

    @property
    def vertex_id(self) -> str:
        """32 hex digits, as in Flink's REST API."""
        return hashlib.sha256(f"vertex:{self.head.operator_id}".encode()).hexdigest()[:32]


DRIVER_STAGE = -1


@dataclass(frozen=True)
class JobGraph:
    """Vertices in topological order; a vertex's id is its place."""

    job_name: str
    vertices: tuple[JobVertex, ...]
    edges: tuple[JobEdge, ...]
    is_batch: bool = False
    """True if all input is there before the first result: keyed operators get it sorted by key."""
    reuses_objects: bool = False
    """True if functions of a chain pass each other the same objects, not copies."""
    inlines_functions: bool = True
    """True if generated loops do the work of functions themselves where they can, instead of calling them."""
    exchanges_columns: bool = True
    """True if elements that are in columns are sent that way."""
    takes_checkpoints: bool = True
    """False if no interval is set: checkpoints are then taken only as savepoints and at the end."""
    script_classes: tuple[Any, ...] = ()
    """What state refers to by name, although no module has it: all classes of the program's script, since state may
    contain objects of a class that no function of the job names, and the classes made inside functions and functions
    of the script that the job refers to."""

    def in_edges(self, vertex: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.target_vertex == vertex]

    def out_edges(self, vertex: int) -> list[JobEdge]:
        return [edge for edge in self.edges if edge.source_vertex == vertex]

    def channels_into(self, vertex: int, subtask: int) -> list[tuple[JobEdge, int]]:
        """Every (edge, sending subtask) that a subtask receives from."""
        return [
            (edge, sender)
            for edge in self.in_edges(vertex)
            for sender in connected_upstream(
                edge.partitioner,
                subtask,
                self.vertices[edge.source_vertex].parallelism,
                self.vertices[vertex].parallelism,
            )
        ]

    @property
    def chains(self) -> list[list[int]]:
        """Node ids by chain."""
        return [[node.id for node in vertex.nodes] for vertex in self.vertices]


def build_job_graph(graph: StreamGraph) -> JobGraph:
    """Chain what may be chained, and give every vertex its stage."""
    chained = {edge for edge in graph.edges if is_chainable(graph, edge)}
    heads = [node for node in graph.nodes.values() if not any(e in chained for e in graph.in_edges(node.id))]
    chains = {head.id: _chain_of(graph, head, chained) for head in heads}
    head_of = {node.id: head_id for head_id, (nodes, _) in chains.items() for node in nodes}
    order = _topological(graph, chained, heads, head_of)
    place = {head_id: at for at, head_id in enumerate(order)}
    edges = tuple(
        JobEdge(
            at,
            place[head_of[edge.source]],
            place[edge.target],
            edge.source,
            edge.input_index,
            edge.partitioner,
            edge.side_tag,
        )
        for at, edge in enumerate(edge for edge in graph.edges if edge not in chained)
    )
    stages = _stages(len(order), edges, [chains[head_id][0] for head_id in order])
    vertices = tuple(
        JobVertex(at, chains[head_id][0], chains[head_id][1], stages[at]) for at, head_id in enumerate(order)
    )
    return JobGraph(
        graph.job_name,
        vertices,
        edges,
        graph.is_batch,
        graph.reuses_objects,
        graph.inlines_functions,
        graph.exchanges_columns,
        graph.takes_checkpoints,
    )


def is_chainable(graph: StreamGraph, edge: StreamEdge) -> bool:
    """Flink's rules."""
    upstream, downstream = graph.nodes[edge.source], graph.nodes[edge.target]
    return (
        graph.is_chaining_enabled
        and len(graph.in_edges(edge.target)) == 1
        and isinstance(edge.partitioner, ForwardPartitioner)
        and upstream.slot_sharing_group == downstream.slot_sharing_group
        and upstream.parallelism == downstream.parallelism
        and upstream.max_parallelism == downstream.max_parallelism
        and upstream.chaining in (ChainingStrategy.ALWAYS, ChainingStrategy.HEAD)
        and downstream.chaining is ChainingStrategy.ALWAYS
    )


def _chain_of(
    graph: StreamGraph, head: StreamNode, chained: set[StreamEdge]
) -> tuple[tuple[StreamNode, ...], tuple[StreamEdge, ...]]:
    """The nodes of a chain, each after the one that feeds it, and the edges within."""
    nodes, inner, waiting = [], [], [head]
    while waiting:
        node = waiting.pop(0)
        nodes.append(node)
        following = [edge for edge in graph.out_edges(node.id) if edge in chained]
        inner.extend(following)
        waiting = [graph.nodes[edge.target] for edge in following] + waiting
    return tuple(nodes), tuple(inner)


def _topological(
    graph: StreamGraph, chained: set[StreamEdge], heads: list[StreamNode], head_of: Mapping[int, int]
) -> list[int]:
    """Head ids, each after all that feed it; among equals the order of the program."""
    feeds: dict[int, set[int]] = {head.id: set() for head in heads}
    for edge in graph.edges:
        if edge not in chained:
            feeds[head_of[edge.target]].add(head_of[edge.source])
    order: list[int] = []
    done: set[int] = set()
    while len(order) < len(heads):
        ready = next(head.id for head in heads if head.id not in done and feeds[head.id] <= done)
        order.append(ready)
        done.add(ready)
    return order


def _stages(count: int, edges: tuple[JobEdge, ...], chains: list[tuple[StreamNode, ...]]) -> list[int]:
    stages = [0] * count
    for vertex in range(count):
        inputs = [edge for edge in edges if edge.target_vertex == vertex]
        if not inputs:
            continue
        if all(isinstance(node.operator, DriverSinkDescription) for node in chains[vertex]):
            stages[vertex] = DRIVER_STAGE
        else:
            stages[vertex] = 1 + max(stages[edge.source_vertex] for edge in inputs)
    return stages
