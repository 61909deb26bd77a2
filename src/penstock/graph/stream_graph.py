"""StreamGraph: the operators and how they are connected, before chaining."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.common.constants import UPPER_BOUND_MAX_PARALLELISM
from penstock.common.exceptions import InvalidProgramError
from penstock.common.redaction import redacted_text
from penstock.graph.batch import RuntimeMode, as_batch_operator, is_batch_job
from penstock.graph.descriptions import OperatorDescription, SinkDescription, SourceDescription
from penstock.graph.partitioners import ForwardPartitioner, RebalancePartitioner, StreamPartitioner
from penstock.graph.transformations import (
    ChainingStrategy,
    PartitionTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)

DEFAULT_SLOT_SHARING_GROUP = "default"
LOWER_BOUND_MAX_PARALLELISM = 128


@dataclass(frozen=True)
class StreamEdge:
    """A connection. `input_index` is the input of the target (0, or 1 for the second of two)."""

    source: int
    target: int
    input_index: int
    partitioner: StreamPartitioner
    side_tag: str | None = None


@dataclass(frozen=True)
class StreamNode:
    """An operator."""

    id: int
    name: str
    operator: OperatorDescription
    parallelism: int
    max_parallelism: int
    operator_id: str
    """32 hex digits; from the uid where there is one, so that state finds its operator again."""
    uid: str | None
    description: str
    slot_sharing_group: str
    chaining: ChainingStrategy
    output_type: Any = None
    buffer_timeout_ms: int = -1
    has_own_max_parallelism: bool = False
    """True if the program chose it; otherwise a job that starts from state takes over that of the state."""
    made_at: str | None = None
    """The line of the program that made it."""
    on_error: Any = None
    """An OnError; None if an element that fails fails the job."""

    @property
    def is_source(self) -> bool:
        return isinstance(self.operator, SourceDescription)

    @property
    def is_sink(self) -> bool:
        return isinstance(self.operator, SinkDescription)


@dataclass(frozen=True)
class StreamGraph:
    """The operators and their connections; every node comes after its inputs."""

    job_name: str
    nodes: Mapping[int, StreamNode]
    edges: tuple[StreamEdge, ...]
    is_chaining_enabled: bool = True
    is_batch: bool = False
    reuses_objects: bool = False
    inlines_functions: bool = True
    exchanges_columns: bool = True
    takes_checkpoints: bool = True

    def in_edges(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.target == node_id]

    def out_edges(self, node_id: int) -> list[StreamEdge]:
        return [edge for edge in self.edges if edge.source == node_id]

    def get_streaming_plan_as_json(self) -> str:
        """The plan as Flink's plan visualizer reads it."""
        from penstock.graph.plan import plan_as_json

        return plan_as_json(self)


@dataclass(frozen=True)
class _Link:
    """The operator that elements of a transformation come from, seen through unions, partitions and side outputs."""

    node: int
    partitioner: StreamPartitioner | None = None
    side_tag: str | None = None


@dataclass
class StreamGraphGenerator:
    """Turns the transformations that lead to the sinks into a StreamGraph."""

    job_name: str
    default_max_parallelism: int | None = None
    is_chaining_enabled: bool = True
    runtime_mode: RuntimeMode = "STREAMING"
    reuses_objects: bool = False
    inlines_functions: bool = True
    exchanges_columns: bool = True
    takes_checkpoints: bool = True
    on_error: Any = None
    """The OnError of operators that have none of their own; None to fail."""
    generates_uids: bool = True
    """False if an operator without a uid is an error."""
    _links: dict[int, list[_Link]] = field(default_factory=dict)
    _nodes: dict[int, StreamNode] = field(default_factory=dict)
    _edges: list[StreamEdge] = field(default_factory=list)
    _uids: dict[str, str] = field(default_factory=dict)

    def generate(self, sinks: Iterable[Transformation]) -> StreamGraph:
        for sink in sinks:
            self._transform(sink)
        if not self._nodes:
            raise InvalidProgramError(
                "the job has no operators; define a source and a sink (for example stream.print()) before execute()"
            )
        nodes = {node_id: self._nodes[node_id] for node_id in sorted(self._nodes)}
        is_batch = is_batch_job(self.runtime_mode, {n.name: n.operator for n in nodes.values() if n.is_source})
        if is_batch:
            nodes = {at: replace(node, operator=as_batch_operator(node.operator)) for at, node in nodes.items()}
        edges = tuple(self._edges)
        return StreamGraph(
            self.job_name,
            nodes,
            edges,
            self.is_chaining_enabled,
            is_batch,
            self.reuses_objects,
            self.inlines_functions,
            self.exchanges_columns,
            self.takes_checkpoints,
        )

    def _transform(self, transformation: Transformation) -> list[_Link]:
        """Iterative in the depth of the program: a chain of thousands of operators must not exhaust the stack."""
        stack = [transformation]
        while stack:
            current = stack[-1]
            waiting = [each for each in current.inputs if each.id not in self._links]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if current.id not in self._links:
                self._links[current.id] = self._translate(current)
        return self._links[transformation.id]

    def _translate(self, transformation: Transformation) -> list[_Link]:
        match transformation:
            case PartitionTransformation():
                links = self._links[transformation.inputs[0].id]
                return [_Link(link.node, transformation.partitioner, link.side_tag) for link in links]
            case SideOutputTransformation():
                links = self._links[transformation.inputs[0].id]
                return [_Link(link.node, link.partitioner, transformation.tag_id) for link in links]
            case UnionTransformation():
                return [link for each in transformation.inputs for link in self._links[each.id]]
            case PhysicalTransformation():
                self._add_node(transformation)
                return [_Link(transformation.id)]
        raise InvalidProgramError(f"cannot translate {type(transformation).__name__}")

    def _add_node(self, transformation: PhysicalTransformation) -> None:
        max_parallelism = self._max_parallelism(transformation)
        self._nodes[transformation.id] = StreamNode(
            id=transformation.id,
            name=redacted_text(transformation.name),  # Names often contain URLs, and are shown everywhere.
            operator=transformation.operator,
            parallelism=transformation.parallelism,
            max_parallelism=max_parallelism,
            operator_id=self._operator_id(transformation),
            uid=transformation.uid,
            description=redacted_text(transformation.description or transformation.name),
            slot_sharing_group=self._slot_sharing_group(transformation),
            chaining=transformation.chaining,
            output_type=transformation.output_type,
            buffer_timeout_ms=transformation.buffer_timeout_ms,
            has_own_max_parallelism=bool(transformation.max_parallelism or self.default_max_parallelism),
            made_at=transformation.made_at,
            on_error=self._on_error(transformation),
        )
        for input_index, each in enumerate(transformation.inputs):
            for link in self._links[each.id]:
                self._add_edge(link, transformation, input_index)

    def _add_edge(self, link: _Link, target: PhysicalTransformation, input_index: int) -> None:
        source = self._nodes[link.node]
        same_parallelism = source.parallelism == target.parallelism
        partitioner = link.partitioner
        if partitioner is None:
            partitioner = ForwardPartitioner() if same_parallelism else RebalancePartitioner()
        elif isinstance(partitioner, ForwardPartitioner) and not same_parallelism:
            raise InvalidProgramError(
                f"forward() from '{source.name}' (parallelism {source.parallelism}) to '{target.name}' (parallelism "
                f"{target.parallelism}): forward needs the same parallelism on both sides; use rebalance() or "
                f"rescale(), or set the same parallelism"
            )
        self._edges.append(StreamEdge(source.id, target.id, input_index, partitioner, link.side_tag))

    def _on_error(self, transformation: PhysicalTransformation) -> Any:
        on_error = transformation.on_error or self.on_error
        if on_error is None or on_error.kind == "fail" or not transformation.operator.takes_on_error:
            return None
        has_nowhere_to_go = on_error.tag is not None and isinstance(transformation.operator, SinkDescription)
        return None if has_nowhere_to_go else on_error

    def _max_parallelism(self, transformation: PhysicalTransformation) -> int:
        chosen = transformation.max_parallelism or self.default_max_parallelism
        if chosen is None:
            return default_max_parallelism(transformation.parallelism)
        if transformation.parallelism > chosen:
            raise InvalidProgramError(
                f"operator '{transformation.name}' has parallelism {transformation.parallelism}, above its max "
                f"parallelism {chosen}; lower the one or raise the other"
            )
        return chosen

    def _slot_sharing_group(self, transformation: PhysicalTransformation) -> str:
        """Its own group, or that of its inputs if they agree, as in Flink."""
        if transformation.slot_sharing_group is not None:
            return transformation.slot_sharing_group
        groups = {
            self._nodes[link.node].slot_sharing_group for each in transformation.inputs for link in self._links[each.id]
        }
        return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_SHARING_GROUP

    def _operator_id(self, transformation: PhysicalTransformation) -> str:
        if transformation.uid_hash is not None:
            return transformation.uid_hash
        if transformation.uid is not None:
            if transformation.uid in self._uids:
                raise InvalidProgramError(
                    f"uid '{transformation.uid}' is used by two operators, '{self._uids[transformation.uid]}' and "
                    f"'{transformation.name}'; a uid must be unique within a job"
                )
            self._uids[transformation.uid] = transformation.name
            return operator_id_of(transformation.uid)
        if not self.generates_uids:
            raise InvalidProgramError(
                f"operator '{transformation.name}' has no uid, and pipeline.auto-generate-uids is false: every "
                f"operator needs one; call uid('...') where the program makes it"
            )
        # Without a uid: the place in the program, so that the same program finds its state again.
        inputs = [self._nodes[link.node].operator_id for each in transformation.inputs for link in self._links[each.id]]
        return _digest(f"node:{len(self._nodes)}:{','.join(inputs)}")


def default_max_parallelism(parallelism: int) -> int:
    """Flink's default: 1.5 times the parallelism as a power of two, at least 128 and at most 32768."""
    power = 1 << max(0, parallelism + parallelism // 2 - 1).bit_length()
    return min(max(power, LOWER_BOUND_MAX_PARALLELISM), UPPER_BOUND_MAX_PARALLELISM)


def operator_id_of(uid: str) -> str:
    """The id of an operator that was given a uid."""
    return _digest(f"uid:{uid}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
