"""From the state of an earlier job to what each subtask of a new one starts with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.checkpoint.folders import Folder
from penstock.checkpoint.metadata import CANONICAL, CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.topology import fingerprint, with_max_parallelism
from penstock.common.exceptions import StateMismatchError
from penstock.graph.job_graph import JobGraph, JobVertex
from penstock.runtime.key_groups import key_group_range
from penstock.runtime.protocol import SubtaskOrder
from penstock.runtime.saved_state import FileChain, SavedState
from penstock.runtime.state.codec import decode_state, unreadable


@dataclass(frozen=True)
class FoundCheckpoint:
    """A complete checkpoint or savepoint, and where its files are."""

    metadata: CheckpointMetadata
    folder: Folder
    """What the files in the metadata are relative to."""
    path: str
    """Its name for people."""


@dataclass(frozen=True)
class RestoredJob:
    """A job, fitted to the state it starts from."""

    job_graph: JobGraph
    found: FoundCheckpoint
    is_exact: bool
    """True if it is the same job, which continues as if nothing had happened."""
    orders: dict[tuple[int, int], SubtaskOrder] = field(default_factory=dict)
    positions: dict[str, Any] = field(default_factory=dict)
    committables: dict[str, list[Any]] = field(default_factory=dict)


def restore_job(job_graph: JobGraph, found: FoundCheckpoint, allows_non_restored: bool) -> RestoredJob:
    """Match state and operators by id. Raises StateMismatchError if they do not fit."""
    metadata = found.metadata
    if not allows_non_restored:
        _check_all_state_is_taken(job_graph, found)
    job_graph = _with_former_max_parallelism(job_graph, found)
    is_exact = metadata.topology == fingerprint(job_graph)
    orders = _Orders(found)
    return RestoredJob(
        job_graph,
        found,
        is_exact,
        {
            (vertex.id, subtask): orders.exact(vertex, subtask) if is_exact else orders.share(vertex, subtask)
            for vertex in job_graph.vertices
            for subtask in range(vertex.parallelism)
        },
        {operator: _decoded(content, found, operator) for operator, content in metadata.positions.items()},
        {operator: _decoded(content, found, operator) for operator, content in metadata.committables.items()},
    )


@dataclass(frozen=True)
class _Orders:
    found: FoundCheckpoint

    def exact(self, vertex: JobVertex, subtask: int) -> SubtaskOrder:
        former = self.found.metadata.vertices[vertex.id]
        others = () if former.has_fixed_keys else (each for each in range(former.parallelism) if each != subtask)
        return SubtaskOrder(
            (saved_state_of(self.found, former, subtask),),
            strays=tuple(saved_state_of(self.found, former, each) for each in others),
        )

    def share(self, vertex: JobVertex, subtask: int) -> SubtaskOrder:
        """All former subtasks that may hold state of the vertex's operators for this subtask."""
        operators = {node.operator_id for node in vertex.nodes}
        saved = []
        for former in self.found.metadata.vertices:
            mine = operators & set(former.names)
            has_lists = any("operator" in former.states_of(operator) for operator in mine)
            needs_all = has_lists or not former.has_fixed_keys
            for number in range(former.parallelism) if mine else ():
                if needs_all or _shares_key_groups(former, number, vertex, subtask):
                    saved.append(saved_state_of(self.found, former, number))
        return SubtaskOrder(tuple(saved), is_exact=False)


def _shares_key_groups(former: VertexEntry, number: int, vertex: JobVertex, subtask: int) -> bool:
    theirs = key_group_range(number, former.max_parallelism, former.parallelism)
    mine = key_group_range(subtask, vertex.max_parallelism, vertex.parallelism)
    return theirs.start < mine.stop and mine.start < theirs.stop


def saved_state_of(found: FoundCheckpoint, vertex: VertexEntry, subtask: int) -> SavedState:
    """What one former subtask of a vertex left."""
    if found.metadata.savepoint_format == CANONICAL:
        from penstock.checkpoint.canonical import CanonicalState  # Needs Arrow, which takes a while to load.

        return CanonicalState(found.folder, vertex.subtasks[subtask], subtask, vertex.names)
    return FileChain(found.folder, vertex.subtasks[subtask], subtask, vertex.names)


def _check_all_state_is_taken(job_graph: JobGraph, found: FoundCheckpoint) -> None:
    known = {node.operator_id for vertex in job_graph.vertices for node in vertex.nodes}
    left_over = [
        (operator, _described_state(vertex, operator, found))
        for vertex in found.metadata.vertices
        for operator in vertex.operators
        if operator.operator_id not in known
    ]
    left_over = [(operator, state) for operator, state in left_over if state]
    if left_over:
        lines = "".join(f"\n  {operator}: {state}" for operator, state in left_over)
        former = {each.operator_id for vertex in found.metadata.vertices for each in vertex.operators}
        others = [
            str(OperatorEntry(node.operator_id, node.name, node.uid))
            for vertex in job_graph.vertices
            for node in vertex.nodes
            if node.operator_id not in former
        ]
        raise StateMismatchError(
            f"{found.path} has state that no operator of job '{job_graph.job_name}' takes:{lines}\n"
            f"Operators of the job without state there: {', '.join(others) or 'none'}. Give the operator that is to "
            f"take the state the same uid(...) as before, or leave the state behind with --allowNonRestoredState "
            f"(-n, execution.state-recovery.ignore-unclaimed-state)"
        )


def _described_state(vertex: VertexEntry, operator: OperatorEntry, found: FoundCheckpoint) -> str:
    states = vertex.states_of(operator.operator_id)
    described = [f"{kind} state {', '.join(sorted(names))}" for kind, names in sorted(states.items())]
    if operator.operator_id in found.metadata.positions:
        described.append("how far the source was read")
    if operator.operator_id in found.metadata.committables:
        described.append("results that are committed again, because the job may have ended before that")
    return "; ".join(described)


def _with_former_max_parallelism(job_graph: JobGraph, found: FoundCheckpoint) -> JobGraph:
    """Key groups are numbered up to the max parallelism, so state fits only the same one."""
    adopted: dict[int, int] = {}
    for vertex in job_graph.vertices:
        operators = {node.operator_id: node for node in vertex.nodes}
        for former in found.metadata.vertices:
            for operator_id in operators.keys() & former.names.keys():
                has_keyed_state = "keyed" in former.states_of(operator_id)
                if vertex.max_parallelism == former.max_parallelism or not has_keyed_state:
                    continue
                node = operators[operator_id]
                if node.has_own_max_parallelism or vertex.parallelism > former.max_parallelism:
                    raise StateMismatchError(
                        f"operator '{node.name}' had max parallelism {former.max_parallelism} when {found.path} was "
                        f"written, and now has {vertex.max_parallelism} (parallelism {vertex.parallelism}); the max "
                        f"parallelism of an operator with keyed state cannot change: set_max_parallelism("
                        f"{former.max_parallelism}), and a parallelism of at most that"
                    )
                adopted[vertex.id] = former.max_parallelism
    return with_max_parallelism(job_graph, adopted) if adopted else job_graph


def _decoded(content: bytes, found: FoundCheckpoint, operator_id: str) -> Any:
    try:
        return decode_state(content)
    except Exception as error:
        names = {each.operator_id: each.name for vertex in found.metadata.vertices for each in vertex.operators}
        what = f"{found.path}: what is kept there of operator '{names.get(operator_id, operator_id)}'"
        raise unreadable(what, error) from error
