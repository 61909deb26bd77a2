"""What the REST API tells about one vertex of a job and its subtasks."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from typing import Any

from penstock.graph.execution_graph import ExecutionJobVertex, ExecutionState, ExecutionVertex
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.lookup import find_vertex
from penstock.rest.metric_documents import vertex_total

_S = ExecutionState
# The first state that any subtask has is the vertex's, as in Flink.
_AGGREGATE_ORDER = (_S.FAILED, _S.CANCELING, _S.CANCELED, _S.INITIALIZING, _S.RUNNING)

UNKNOWN_TIME = -1
"""Flink's own value for a time that is not known."""

_IO_METRICS = {
    "read-bytes": "numBytesIn",
    "write-bytes": "numBytesOut",
    "read-records": "numRecordsIn",
    "write-records": "numRecordsOut",
}


def aggregate_state(vertex: ExecutionJobVertex) -> ExecutionState:
    states = Counter(subtask.state for subtask in vertex.subtasks)
    for state in _AGGREGATE_ORDER:
        if states[state]:
            return state
    if states[_S.FINISHED]:
        return _S.FINISHED if states[_S.FINISHED] == len(vertex.subtasks) else _S.RUNNING
    return _S.CREATED


def job_vertex_entry(job: RunningJob, vertex: ExecutionJobVertex) -> dict[str, Any]:
    """The vertex in the details of its job."""
    states = Counter(subtask.state for subtask in vertex.subtasks)
    head = vertex.job_vertex.head
    return {
        "id": vertex.job_vertex.vertex_id,
        "slotSharingGroupId": hashlib.sha256(f"slots:{head.slot_sharing_group}".encode()).hexdigest()[:32],
        "name": vertex.job_vertex.name,
        "maxParallelism": vertex.job_vertex.max_parallelism,
        "parallelism": vertex.job_vertex.parallelism,
        "status": aggregate_state(vertex).value,
        "start-time": UNKNOWN_TIME,
        "end-time": UNKNOWN_TIME,
        "duration": UNKNOWN_TIME,
        "tasks": {state.value: states[state] for state in ExecutionState},
        "metrics": _io_metrics(job, vertex),
    }


def _io_metrics(job: RunningJob, vertex: ExecutionJobVertex) -> dict[str, Any]:
    """Flink marks a number that is not (or not wholly) known as not complete."""
    told: dict[str, Any] = {}
    for name, metric in _IO_METRICS.items():
        total = vertex_total(job, vertex.job_vertex, metric)
        told[name] = 0 if total is None else total
        told[f"{name}-complete"] = total is not None
    return told


def details(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    vertex = find_vertex(job, vertex_id)
    return {
        "id": vertex_id,
        "name": vertex.job_vertex.name,
        "parallelism": vertex.job_vertex.parallelism,
        "maxParallelism": vertex.job_vertex.max_parallelism,
        "now": int(time.time() * 1000),
        "subtasks": [_subtask(subtask) for subtask in vertex.subtasks],
        "aggregated": {"metrics": {}, "status-duration": {}},
    }


def _subtask(subtask: ExecutionVertex) -> dict[str, Any]:
    return {
        "subtask": subtask.subtask,
        "status": subtask.state.value,
        "attempt": subtask.current.attempt,
        "endpoint": None,
        "start-time": UNKNOWN_TIME,
        "end-time": UNKNOWN_TIME,
        "duration": UNKNOWN_TIME,
        "taskmanager-id": None,
        "status-duration": {},
    }


def subtask_times(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    vertex = find_vertex(job, vertex_id)
    return {
        "id": vertex_id,
        "name": vertex.job_vertex.name,
        "now": int(time.time() * 1000),
        "subtasks": [
            {"subtask": each.subtask, "endpoint": None, "duration": UNKNOWN_TIME, "timestamps": {}}
            for each in vertex.subtasks
        ],
    }
