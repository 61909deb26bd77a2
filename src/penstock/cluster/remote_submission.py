"""Hands a job to a job manager elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.cluster.job_bundle import JobBundle, bundled
from penstock.cluster.leader_lookup import JobManagers
from penstock.cluster.remote_job_client import RemoteJobClient
from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import ConfigurationError, InvalidProgramError, UnsupportedFeatureError
from penstock.datastream.dependencies import JobDependencies
from penstock.graph.descriptions import CollectSinkDescription
from penstock.graph.job_graph import JobGraph
from penstock.rest.client import Address, RestClient, RestClientError
from penstock.rest.polling import poll

_SUBMITTED_WITHIN_S = 600
"""Installing a job's requirements at the job manager takes its time."""
_LEADER_COMES_WITHIN_S = 120


def submit_job(
    job_graph: JobGraph,
    config: Configuration,
    dependencies: JobDependencies,
    spark: Any,
    announce: Callable[[str], None] | None,
) -> RemoteJobClient:
    """Upload the job and have it started; the client follows it unless it is detached."""
    if spark is not None:
        raise ConfigurationError(
            "use_spark_session: a job that goes to a job manager (execution.target: remote) runs on the job manager's "
            "Spark session; leave use_spark_session out"
        )
    managers = JobManagers.of(config) or JobManagers.of(config, f"localhost:{config.get(keys.REST_PORT)}")
    assert managers is not None
    operators = [node.operator for vertex in job_graph.vertices for node in vertex.nodes]
    collect_ids = [each.collect_id for each in operators if isinstance(each, CollectSinkDescription)]
    with bundled(job_graph, config, dependencies) as bundle:
        is_attached = bundle.submission.is_attached
        if collect_ids and not is_attached:
            raise UnsupportedFeatureError(
                "execute_and_collect: nobody would get the values of a detached job; leave -d out, or use a sink"
            )
        address, job_id = _submitted(managers, bundle)
    if announce is not None:
        announce(f"Job has been submitted with JobID {job_id}")
    client = RemoteJobClient(
        RestClient(address), job_id, job_graph.job_name, collect_ids, is_attached, managers, bundle.submission.submitter
    )
    return client.start()


def _submitted(managers: JobManagers, bundle: JobBundle) -> tuple[Address, str]:
    """The job manager that took the job, and the job's id. If the leader ends meanwhile, the next one is asked."""
    if not managers.may_change:
        return _submitted_once(managers, bundle)
    refusals: list[RestClientError] = []

    def attempt() -> tuple[Address, str] | None:
        try:
            return _submitted_once(managers, bundle)
        except RestClientError as error:
            if error.status not in (None, 503):
                raise
            refusals.append(error)
            return None

    submitted = poll(attempt, _LEADER_COMES_WITHIN_S)
    if submitted is None:
        raise refusals[-1]
    return submitted


def _submitted_once(managers: JobManagers, bundle: JobBundle) -> tuple[Address, str]:
    rest = RestClient(managers.leader(), _SUBMITTED_WITHIN_S)
    upload(rest, bundle)
    return rest.address, _submit(rest, bundle)


def upload(rest: RestClient, bundle: JobBundle) -> None:
    """Send the files that the job manager lacks."""
    answer = rest.post("/blobs/missing", {"blobs": list(bundle.blobs)})
    for blob in answer["missing"]:
        content, name = bundle.blobs[blob], bundle.names[blob]
        size = content.stat().st_size if isinstance(content, Path) else len(content)
        if size > answer["max-size"]:
            raise InvalidProgramError(
                f"{name} has {size} bytes, and the job manager at {rest.address} takes at most {answer['max-size']} "
                f"for one file; start it with a larger {keys.REST_MAX_CONTENT.key}, or let the job read the data from "
                f"where the job manager reaches it"
            )
        rest.put(f"/blobs/{blob}", content, size)


def _submit(rest: RestClient, bundle: JobBundle) -> str:
    try:
        return str(rest.post("/jobs", bundle.submission.to_json())["jobid"])
    except RestClientError as error:
        if error.status == 405:
            raise InvalidProgramError(
                f"{rest.address} takes no jobs: it is the REST API of a running job, not a job manager; start one with "
                f"`penstock jobmanager start`"
            ) from error
        if error.status in (None, 503):
            raise
        raise InvalidProgramError(f"the job manager at {rest.address} refuses the job: {error}") from error
