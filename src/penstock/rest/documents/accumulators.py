"""The accumulators of a job."""

from __future__ import annotations

from typing import Any

from penstock.jobmaster.dispatcher import RunningJob
from penstock.rest.documents.jobs import pickled
from penstock.rest.routes.lookup import find_vertex


def of_job(job: RunningJob) -> dict[str, Any]:
    return {
        "job-accumulators": [],
        "user-task-accumulators": _entries(job),
        "serialized-user-task-accumulators": {
            name: pickled(each.get_local_value()) for name, each in list(job.master.accumulators.items())
        },
    }


def without_values(told: dict[str, Any]) -> dict[str, Any]:
    """As Flink answers unless `includeSerializedValue=true` is asked for."""
    return {**told, "serialized-user-task-accumulators": {}}


def of_vertex(job: RunningJob, vertex_id: str) -> dict[str, Any]:
    """Accumulators are kept by job: which vertex they belong to is known only where there is one, or no accumulator."""
    find_vertex(job, vertex_id)
    entries = _entries(job)
    is_known = not entries or len(job.master.job_graph.vertices) == 1
    return {"id": vertex_id, "user-accumulators": entries if is_known else None}


def _entries(job: RunningJob) -> list[dict[str, str]]:
    return [
        {"name": name, "type": type(each).__name__, "value": str(each.get_local_value())}
        for name, each in list(job.master.accumulators.items())
    ]
