"""Starts a job: in this process, under the control of the command line and the dashboard, or at a job manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.cluster.fixed_job import fixed_job_id, lead, remember
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.job_client import JobClient
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.descriptions import SourceDescription
from penstock.graph.job_graph import JobGraph
from penstock.jobmaster.job_preparation import prepare_job
from penstock.rest.driver_server import make_controllable


def start_job(
    job_graph: JobGraph,
    config: Configuration,
    dependencies: JobDependencies,
    spark: Any = None,
    announce: Callable[[str], None] | None = None,
) -> JobClient:
    """Start the job in a thread of this process, where `penstock list`, `cancel` and other verbs find it.

    With `execution.target: remote` a job manager elsewhere runs it. `announce` gets the job's id before it can print
    anything.
    """
    if config.get(keys.TARGET).lower() == "remote":
        from penstock.cluster.remote_submission import submit_job  # HTTP and its kin: most jobs need none of it.

        return submit_job(job_graph, config, dependencies, spark, announce)
    job_id = fixed_job_id(config)
    leadership = None if job_id is None else lead(job_id, job_graph, config)
    client = prepare_job(job_graph, config, dependencies, spark, job_id, leadership, is_watched=_is_bounded(job_graph))
    if job_id is not None:
        remember(client)
    make_controllable(client, config)
    if announce is not None:
        announce(f"Job has been submitted with JobID {client.get_job_id()}")
    return client.start()


def _is_bounded(job_graph: JobGraph) -> bool:
    """True for a job that ends by itself: somebody waits for that, and wants to see its errors.

    A job without an end is better off with a restart.
    """
    sources = [
        node.operator
        for vertex in job_graph.vertices
        for node in vertex.nodes
        if isinstance(node.operator, SourceDescription)
    ]
    return all(source.is_bounded for source in sources)
