"""The accumulators of a job, of its vertices and of their subtasks."""

from __future__ import annotations

from typing import Any

from penstock.jobmaster.counted import Accumulators, merged
from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.documents.jobs import pickled
from penstock.rest.routes.lookup import find_vertex


def of_job(job: RunningJob) -> dict[str, Any]:
    accumulators = job.master.accumulators
    return {
        "job-accumulators": [],
        "user-task-accumulators": _entries(accumulators),
        "serialized-user-task-accumulators": {
            name: pickled(each.get_local_value()) for name, each in accumulators.items()
        },
    }


def without_values(document: dict[str, Any]) -> dict[str, Any]:
    """As Flink answers unless `includeSerializedValue=true` is asked for."""
    return {**document, "serialized-user-task-accumulators": {}}


def of_vertex(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    at = find_vertex(job, vertex_id).job_vertex.id
    accumulators = merged(region.of_vertex(at) for region in job.master.counted())
    return {"id": vertex_id, "user-accumulators": _entries(accumulators)}


def of_subtasks(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    vertex = find_vertex(job, vertex_id)
    at, regions = vertex.job_vertex.id, job.master.counted()
    return {
        "id": vertex_id,
        "parallelism": vertex.job_vertex.parallelism,
        "subtasks": [
            {
                "subtask": each.subtask,
                "attempt": each.current.attempt,
                "endpoint": each.current.facts.host,
                "user-accumulators": _entries(merged(region.of_subtask(at, each.subtask) for region in regions)),
            }
            for each in vertex.subtasks
        ],
    }


def _entries(accumulators: Accumulators) -> list[dict[str, str]]:
    return [
        {"name": name, "type": type(each).__name__, "value": str(each.get_local_value())}
        for name, each in accumulators.items()
    ]
