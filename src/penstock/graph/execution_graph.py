"""ExecutionGraph: one vertex per subtask, with the state of its current attempt."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from penstock.graph.job_graph import JobGraph, JobVertex

REMEMBERED_ATTEMPTS = 16


class ExecutionState(Enum):
    CREATED = "CREATED"
    SCHEDULED = "SCHEDULED"
    DEPLOYING = "DEPLOYING"
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    CANCELING = "CANCELING"
    CANCELED = "CANCELED"
    FAILED = "FAILED"
    RECONCILING = "RECONCILING"

    @property
    def is_terminal(self) -> bool:
        return self in (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)


_S = ExecutionState
_ENDINGS = {_S.FAILED, _S.CANCELED}
_LEGAL: dict[ExecutionState, set[ExecutionState]] = {
    _S.CREATED: {_S.SCHEDULED, _S.RECONCILING, *_ENDINGS},
    _S.SCHEDULED: {_S.DEPLOYING, *_ENDINGS},
    _S.DEPLOYING: {_S.INITIALIZING, _S.CANCELING, *_ENDINGS},
    _S.INITIALIZING: {_S.RUNNING, _S.CANCELING, *_ENDINGS},
    _S.RUNNING: {_S.FINISHED, _S.CANCELING, *_ENDINGS},
    _S.CANCELING: {_S.CANCELED, _S.FAILED},
    _S.RECONCILING: {_S.RUNNING, _S.FINISHED, *_ENDINGS},
    _S.FINISHED: set(),
    _S.CANCELED: set(),
    _S.FAILED: set(),
}


class IllegalTransitionError(RuntimeError):
    """An execution cannot go from its state to the one asked for."""


@dataclass
class ExecutionFacts:
    """What an attempt has reported so far, over all its epochs."""

    host: str | None = None
    process: int | None = None
    epochs: int = 0
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy_ms: int = 0
    """Time spent in epochs; for the rest of the time it waited."""
    watermark: int | None = None
    state_size: int = 0
    is_provisional: bool = False
    """True while a batch job runs: its end reports all facts again."""


@dataclass
class Execution:
    """One attempt of one subtask."""

    attempt: int
    state: ExecutionState = ExecutionState.CREATED
    entered_ms: dict[ExecutionState, int] = field(default_factory=dict)
    """When it entered each state it has been in."""
    facts: ExecutionFacts = field(default_factory=ExecutionFacts)

    def may_become(self, state: ExecutionState) -> bool:
        return state in _LEGAL[self.state]

    def transition_to(self, state: ExecutionState, now_ms: int | None = None) -> None:
        if not self.may_become(state):
            raise IllegalTransitionError(f"an execution cannot go from {self.state.value} to {state.value}")
        self.state = state
        if now_ms is not None:
            self.entered_ms[state] = now_ms


@dataclass
class ExecutionVertex:
    """One subtask."""

    job_vertex: JobVertex
    subtask: int
    current: Execution = field(default_factory=lambda: Execution(0))
    earlier: deque[Execution] = field(default_factory=lambda: deque(maxlen=REMEMBERED_ATTEMPTS))
    """Attempts that have ended, oldest first."""
    records_read_before: int = 0
    """By all attempts that have ended."""

    @property
    def records_read(self) -> int:
        """By all attempts; what a restart reads again counts again."""
        return self.records_read_before + self.current.facts.records_in

    @property
    def state(self) -> ExecutionState:
        return self.current.state

    @property
    def name(self) -> str:
        return f"{self.job_vertex.name} ({self.subtask + 1}/{self.job_vertex.parallelism})"

    def new_attempt(self) -> Execution:
        """Start over after the current attempt has ended."""
        if not self.state.is_terminal:
            raise IllegalTransitionError(f"{self.name} is {self.state.value}: its attempt has not ended")
        self.records_read_before = self.records_read
        self.earlier.append(self.current)
        self.current = Execution(self.current.attempt + 1)
        return self.current


@dataclass
class ExecutionJobVertex:
    """All subtasks of one vertex."""

    job_vertex: JobVertex
    subtasks: list[ExecutionVertex]


class ExecutionGraph:
    """The parallel form of a JobGraph."""

    def __init__(self, job_graph: JobGraph) -> None:
        self.job_graph = job_graph
        self.job_vertices = [
            ExecutionJobVertex(vertex, [ExecutionVertex(vertex, subtask) for subtask in range(vertex.parallelism)])
            for vertex in job_graph.vertices
        ]

    def vertices(self) -> Iterator[ExecutionVertex]:
        return itertools.chain.from_iterable(each.subtasks for each in self.job_vertices)

    def transition_all(self, *states: ExecutionState, now_ms: int | None = None) -> None:
        """Take every subtask that has not ended through `states`."""
        for vertex in self.vertices():
            for state in states:
                if not vertex.state.is_terminal:
                    vertex.current.transition_to(state, now_ms)

    def cancel_all(self, now_ms: int | None = None) -> None:
        """Cancel every subtask that has not ended; one that was never deployed skips CANCELING, as in Flink."""
        for vertex in self.vertices():
            for state in (ExecutionState.CANCELING, ExecutionState.CANCELED):
                if vertex.current.may_become(state):
                    vertex.current.transition_to(state, now_ms)
