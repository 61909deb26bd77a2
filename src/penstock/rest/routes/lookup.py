"""Finds what a path of the REST API names."""

from __future__ import annotations

from penstock.checkpoint.statistics import CheckpointStats
from penstock.graph.execution_graph import ExecutionJobVertex
from penstock.jobmaster.dispatcher import Dispatcher, EndedJob, RunningJob
from penstock.rest.routes.errors import RestError, not_found


def find_job(dispatcher: Dispatcher, job_id: str) -> RunningJob | EndedJob:
    job = dispatcher.find(job_id)
    if job is None:
        raise not_found(f"Job {job_id} not found")
    return job


def find_running(dispatcher: Dispatcher, job_id: str) -> RunningJob:
    job = find_job(dispatcher, job_id)
    if isinstance(job, EndedJob):
        raise RestError(409, f"Job {job_id} has ended already ({job.documents['/status']['status']})")
    return job


def find_vertex(job: RunningJob, vertex_id: str) -> ExecutionJobVertex:
    for vertex in job.master.execution_graph.job_vertices:
        if vertex.job_vertex.vertex_id == vertex_id:
            return vertex
    raise not_found(f"Job {job.job_id} has no vertex {vertex_id}; GET /jobs/{job.job_id} lists its vertices")


def find_checkpoint(job: RunningJob, checkpoint_id: str) -> CheckpointStats:
    for stats in job.master.checkpoints.history():
        if str(stats.id) == checkpoint_id:
            return stats
    raise not_found(f"Could not find checkpointing statistics for checkpoint {checkpoint_id} of job {job.job_id}.")
