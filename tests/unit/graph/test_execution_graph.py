from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.datastream import StreamExecutionEnvironment
from penstock.graph.execution_graph import (
    Execution,
    ExecutionGraph,
    ExecutionState,
    ExecutionVertex,
    IllegalTransitionError,
)
from penstock.graph.job_graph import build_job_graph

# Flink's state machine, written down a second time on purpose.
LEGAL = {
    "CREATED": "SCHEDULED RECONCILING FAILED CANCELED",
    "SCHEDULED": "DEPLOYING FAILED CANCELED",
    "DEPLOYING": "INITIALIZING CANCELING FAILED CANCELED",
    "INITIALIZING": "RUNNING CANCELING FAILED CANCELED",
    "RUNNING": "FINISHED CANCELING FAILED CANCELED",
    "CANCELING": "CANCELED FAILED",
    "RECONCILING": "RUNNING FINISHED FAILED CANCELED",
    "FINISHED": "",
    "CANCELED": "",
    "FAILED": "",
}
states = st.sampled_from(ExecutionState)


def is_legal(before: ExecutionState, after: ExecutionState) -> bool:
    return after.value in LEGAL[before.value].split()


@given(st.lists(states, max_size=30))
def test_state_moves_only_along_legal_edges(requests):
    execution = Execution(0)
    for request in requests:
        before = execution.state
        if is_legal(before, request):
            execution.transition_to(request)
            assert execution.state is request
        else:
            with pytest.raises(
                IllegalTransitionError, match=f"an execution cannot go from {before.value} to {request.value}"
            ):
                execution.transition_to(request)
            assert execution.state is before


@given(st.lists(st.one_of(states, st.just("new attempt")), max_size=40))
def test_new_attempt_starts_only_when_the_last_one_has_ended(steps):
    vertex = ExecutionVertex(small_job().vertices[0], 0)
    for step in steps:
        before, attempt = vertex.state, vertex.current.attempt
        if step != "new attempt":
            if is_legal(before, step):
                vertex.current.transition_to(step)
        elif before.is_terminal:
            vertex.new_attempt()
            assert (vertex.state, vertex.current.attempt) == (ExecutionState.CREATED, attempt + 1)
        else:
            with pytest.raises(IllegalTransitionError, match="its attempt has not ended"):
                vertex.new_attempt()
            assert vertex.current.attempt == attempt


def test_transition_of_all_leaves_out_what_has_ended():
    graph = ExecutionGraph(small_job())
    first, second = graph.vertices()
    first.current.transition_to(ExecutionState.FAILED)
    graph.transition_all(ExecutionState.SCHEDULED, ExecutionState.DEPLOYING)
    assert (first.state, second.state) == (ExecutionState.FAILED, ExecutionState.DEPLOYING)


@given(st.lists(states, max_size=8))
def test_cancelling_ends_every_subtask_from_any_state(requests):
    graph = ExecutionGraph(small_job())
    for request in requests:
        for vertex in graph.vertices():
            if is_legal(vertex.state, request):
                vertex.current.transition_to(request)
    before = [vertex.state for vertex in graph.vertices()]
    graph.cancel_all()
    after = [state if state.is_terminal else ExecutionState.CANCELED for state in before]
    assert [vertex.state for vertex in graph.vertices()] == after


def test_end_states_are_the_three_that_nothing_leaves():
    assert {state.value for state in ExecutionState if state.is_terminal} == {"FINISHED", "CANCELED", "FAILED"}


def small_job():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.from_sequence(1, 3).map(str)
    return build_job_graph(env.get_stream_graph())
