"""Every document about a job, by its path below `/jobs/:id`.

A running job's are made when they are asked for; when it ends all are made once, and stay after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.jobmaster.dispatcher import EndedJob, RunningJob
from penstock.rest.documents import accumulators as accumulator_documents
from penstock.rest.documents import checkpoints as checkpoint_documents
from penstock.rest.documents import epochs as epoch_documents
from penstock.rest.documents import jobs as job_documents
from penstock.rest.documents import metrics as metric_documents
from penstock.rest.documents import progress as progress_documents
from penstock.rest.documents import vertices as vertex_documents
from penstock.rest.routes.errors import not_found

OVERVIEW = "/overview"
"""The job's entry in `/jobs/overview`; not a path of its own in Flink's API."""

ATTEMPTS = "/attempts"
"""All attempts of a vertex's subtasks, of which a request gets one."""

OF_JOB: dict[str, Callable[[RunningJob], Any]] = {
    "": job_documents.details,
    OVERVIEW: job_documents.overview,
    "/status": job_documents.status,
    "/plan": job_documents.plan,
    "/config": job_documents.configuration,
    "/jobmanager/config": lambda job: job_documents.all_settings(job.config),
    "/exceptions": job_documents.exceptions,
    "/accumulators": accumulator_documents.of_job,
    "/execution-result": job_documents.execution_result,
    "/metrics": metric_documents.job_metrics,
    "/checkpoints": checkpoint_documents.statistics,
    "/checkpoints/config": checkpoint_documents.settings,
    "/epochs": epoch_documents.kept,
    "/stdout": job_documents.printed,
    "/log": job_documents.log,
    "/progress": progress_documents.progress,
}
OF_VERTEX: dict[str, Callable[[RunningJob, str], Any]] = {
    "": vertex_documents.details,
    "/subtasktimes": vertex_documents.subtask_times,
    "/taskmanagers": vertex_documents.by_host,
    "/watermarks": metric_documents.watermarks,
    "/accumulators": accumulator_documents.of_vertex,
    "/subtasks/accumulators": accumulator_documents.of_subtasks,
    "/metrics": metric_documents.vertex_metrics,
    "/backpressure": epoch_documents.backpressure,
    "/flamegraph": vertex_documents.flame_graph,
    ATTEMPTS: vertex_documents.attempts,
}


def describe(job: RunningJob) -> dict[str, Any]:
    """All documents about a job."""
    documents = {path: make(job) for path, make in OF_JOB.items()}
    for vertex in job.master.job_graph.vertices:
        for path, make_one in OF_VERTEX.items():
            documents[f"/vertices/{vertex.vertex_id}{path}"] = make_one(job, vertex.vertex_id)
    for stats in job.master.checkpoints.history():
        path = f"/checkpoints/details/{stats.id}"
        documents[path] = checkpoint_documents.details(job, str(stats.id))
        for at in stats.tasks:
            vertex_id = job.master.job_graph.vertices[at].vertex_id
            documents[f"{path}/subtasks/{vertex_id}"] = checkpoint_documents.task_details(job, str(stats.id), vertex_id)
    return documents


def document(job: RunningJob | EndedJob, path: str, make: Callable[[RunningJob], Any]) -> Any:
    """The document at a path: made now, or the one that was kept."""
    if isinstance(job, RunningJob):
        return make(job)
    if path not in job.documents:
        raise not_found(f"There is nothing at /jobs/{job.job_id}{path}")
    return job.documents[path]
