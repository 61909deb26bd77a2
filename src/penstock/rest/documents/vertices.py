"""What the REST API reports about one vertex of a job and its subtasks."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from typing import Any

from penstock.graph.execution_graph import Execution, ExecutionJobVertex, ExecutionState, ExecutionVertex
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.documents.executions import attempt, io_metrics, now_ms, start_time, times, times_of_all
from penstock.rest.documents.executions import end_time as end_of
from penstock.rest.routes.errors import not_found
from penstock.rest.routes.lookup import find_vertex

_S = ExecutionState
# The first state that any subtask has is the vertex's, as in Flink.
_AGGREGATE_ORDER = (_S.FAILED, _S.CANCELING, _S.CANCELED, _S.INITIALIZING, _S.RUNNING)


def aggregate_state(subtasks: list[ExecutionVertex]) -> ExecutionState:
    states = Counter(subtask.state for subtask in subtasks)
    for state in _AGGREGATE_ORDER:
        if states[state]:
            return state
    if states[_S.FINISHED]:
        return _S.FINISHED if states[_S.FINISHED] == len(subtasks) else _S.RUNNING
    return _S.CREATED


def _state_counts(subtasks: list[ExecutionVertex]) -> dict[str, int]:
    states = Counter(subtask.state for subtask in subtasks)
    return {state.value: states[state] for state in ExecutionState}


def job_vertex_entry(vertex: ExecutionJobVertex) -> dict[str, Any]:
    """The vertex in the details of its job."""
    head, executions = vertex.job_vertex.head, _executions(vertex.subtasks)
    return {
        "id": vertex.job_vertex.vertex_id,
        "slotSharingGroupId": hashlib.sha256(f"slots:{head.slot_sharing_group}".encode()).hexdigest()[:32],
        "name": vertex.job_vertex.name,
        "maxParallelism": vertex.job_vertex.max_parallelism,
        "parallelism": vertex.job_vertex.parallelism,
        "status": aggregate_state(vertex.subtasks).value,
        **times_of_all(executions),
        "tasks": _state_counts(vertex.subtasks),
        "metrics": io_metrics(executions),
    }


def _executions(subtasks: list[ExecutionVertex]) -> list[Execution]:
    return [subtask.current for subtask in subtasks]


def details(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    vertex = find_vertex(job, vertex_id)
    return {
        "id": vertex_id,
        "name": vertex.job_vertex.name,
        "parallelism": vertex.job_vertex.parallelism,
        "maxParallelism": vertex.job_vertex.max_parallelism,
        "now": now_ms(),
        "subtasks": [{**attempt(each, each.current), "other-concurrent-attempts": None} for each in vertex.subtasks],
    }


def subtask_times(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    vertex = find_vertex(job, vertex_id)
    return {
        "id": vertex_id,
        "name": vertex.job_vertex.name,
        "now": now_ms(),
        "subtasks": [
            {
                "subtask": each.subtask,
                "endpoint": each.current.facts.host,
                "duration": times(start_time(each.current), end_of(each.current))["duration"],
                "timestamps": {state.value: each.current.entered_ms.get(state, 0) for state in ExecutionState},
            }
            for each in vertex.subtasks
        ],
    }


def by_host(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    """The subtasks brought together by the machine they run on, as far as they have reported it."""
    vertex = find_vertex(job, vertex_id)
    hosts: defaultdict[str, list[ExecutionVertex]] = defaultdict(list)
    for subtask in vertex.subtasks:
        if subtask.current.facts.host is not None:
            hosts[subtask.current.facts.host].append(subtask)
    return {
        "id": vertex_id,
        "name": vertex.job_vertex.name,
        "now": now_ms(),
        "taskmanagers": [
            {
                "endpoint": host,
                "status": aggregate_state(subtasks).value,
                **times_of_all(_executions(subtasks)),
                "metrics": io_metrics(_executions(subtasks)),
                "status-counts": _state_counts(subtasks),
                "taskmanager-id": None,
            }
            for host, subtasks in hosts.items()
        ],
    }


def flame_graph(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    """What the vertex's threads were seen doing since somebody began to ask; each request prolongs the sampling."""
    return job.master.flame_graphs.ask(find_vertex(job, vertex_id).job_vertex.id, now_ms())


def attempts(job: RunningJob, vertex_id: str) -> dict[str, list[dict[str, Any]]]:
    """By subtask, all attempts that are kept; the current one is the last."""
    return {
        str(each.subtask): [attempt(each, execution) for execution in (*each.earlier, each.current)]
        for each in find_vertex(job, vertex_id).subtasks
    }


def pick_attempt(attempts: dict[str, list[dict[str, Any]]], subtask: str, number: str | None) -> dict[str, Any]:
    """One attempt of a subtask; without a number the current one."""
    kept = attempts.get(subtask)
    if kept is None:
        raise not_found(f"The vertex has no subtask {subtask}; it has {len(attempts)}, counted from 0")
    chosen = [each for each in kept if number is None or str(each["attempt"]) == number]
    if chosen:
        return chosen[-1]
    raise not_found(f"Subtask {subtask} has no attempt {number}, or it is no longer kept")
