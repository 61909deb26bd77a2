"""Which operator is meant, and what is known of the operators of a savepoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.checkpoint.metadata import CheckpointMetadata, OperatorEntry, VertexEntry
from penstock.checkpoint.restoring import FoundCheckpoint
from penstock.common.exceptions import StateMismatchError
from penstock.graph.stream_graph import operator_id_of
from penstock.runtime.timers import TIMER_TABLE_PREFIX

_LISTED = ", "
"""Between the names of operator states in the list of what a state file holds."""


@dataclass(frozen=True)
class OperatorIdentifier:
    """Identifies an operator. Wherever one is expected, a str with the operator's uid or name works, too.

    >>> OperatorIdentifier.for_uid("totals").uid
    'totals'
    """

    operator_id: str
    """32 hex digits."""
    uid: str | None = None

    @staticmethod
    def for_uid(uid: str) -> OperatorIdentifier:
        """The operator that the program gave this `uid(...)`."""
        return OperatorIdentifier(operator_id_of(uid), uid)

    @staticmethod
    def for_uid_hash(uid_hash: str) -> OperatorIdentifier:
        """The operator with this id, set by `set_uid_hash(...)` or shown by `SavepointReader.operators()`."""
        return OperatorIdentifier(uid_hash.lower())


Operator = str | OperatorIdentifier


@dataclass(frozen=True)
class StateInfo:
    """A state of an operator. `kind`: keyed state, timers, or operator state (list, union list or broadcast)."""

    name: str
    kind: Literal["keyed", "timers", "operator"]


@dataclass(frozen=True)
class OperatorState:
    """An operator of the job that wrote a savepoint, and the names of its states."""

    uid: str | None
    name: str
    operator_id: str
    parallelism: int
    max_parallelism: int
    states: tuple[StateInfo, ...]


def operators_of(metadata: CheckpointMetadata) -> list[OperatorState]:
    return [
        OperatorState(
            operator.uid,
            operator.name,
            operator.operator_id,
            vertex.parallelism,
            vertex.max_parallelism,
            tuple(states_of(vertex, operator.operator_id)),
        )
        for vertex in metadata.vertices
        for operator in vertex.operators
    ]


def states_of(vertex: VertexEntry, operator_id: str) -> list[StateInfo]:
    found = vertex.states_of(operator_id)
    keyed = sorted(found.get("keyed", ()))
    listed = sorted({name for names in found.get("operator", ()) for name in names.split(_LISTED)})
    return [
        *(StateInfo(name, "timers" if name.startswith(TIMER_TABLE_PREFIX) else "keyed") for name in keyed),
        *(StateInfo(name, "operator") for name in listed),
    ]


def find_operator(found: FoundCheckpoint, wanted: Operator) -> tuple[VertexEntry, OperatorEntry]:
    """The operator that has this identifier or uid, or is the only one of this name."""
    matches = matching_operators(found, wanted)
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(operator.operator_id for _, operator in matches)
        raise StateMismatchError(
            f"{found.path} has {len(matches)} operators called {wanted!r}; say which by "
            f"OperatorIdentifier.for_uid_hash(...), their ids are {ids}"
        )
    known = ", ".join(str(operator) for vertex in found.metadata.vertices for operator in vertex.operators)
    raise StateMismatchError(f"{found.path} has no operator {wanted!r}; its operators are: {known or 'none'}")


def matching_operators(found: FoundCheckpoint, wanted: Operator) -> list[tuple[VertexEntry, OperatorEntry]]:
    entries = [(vertex, operator) for vertex in found.metadata.vertices for operator in vertex.operators]
    operator_id = wanted.operator_id if isinstance(wanted, OperatorIdentifier) else operator_id_of(wanted)
    by_id = [entry for entry in entries if entry[1].operator_id == operator_id]
    return by_id or [entry for entry in entries if wanted in (entry[1].uid, entry[1].name)]
