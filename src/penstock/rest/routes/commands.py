"""What the REST API does to jobs: cancel, stop, savepoints, checkpoints."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from penstock.checkpoint.savepoints import dispose_savepoint
from penstock.common import config_keys as keys
from penstock.jobmaster.dispatcher import Dispatcher, RunningJob
from penstock.rest.background import in_background
from penstock.rest.routes.endpoint import flag_in, shown, text_in
from penstock.rest.routes.errors import RestError, bad_request
from penstock.rest.routes.lookup import find_job, find_running
from penstock.rest.routes.operations import Operations

_FORMATS = ("canonical", "native")
_CHECKPOINT_TYPES = ("CONFIGURED", "FULL", "INCREMENTAL")
DISPOSALS = "savepoint-disposal"


def savepoints_of(job_id: str) -> str:
    return f"{job_id}/savepoints"


def checkpoints_of(job_id: str) -> str:
    return f"{job_id}/checkpoints"


class Commands:
    """Carries out what requests ask for; what takes time continues as an operation."""

    def __init__(self, dispatcher: Dispatcher, operations: Operations) -> None:
        self._dispatcher = dispatcher
        self._operations = operations

    def cancel(self, job_id: str, mode: str) -> dict[str, Any]:
        if mode != "cancel":
            raise bad_request(
                f"mode={mode} is not known: use mode=cancel, or POST /jobs/{job_id}/stop to stop with a savepoint"
            )
        job = find_job(self._dispatcher, job_id)
        if isinstance(job, RunningJob):
            job.master.cancel()
        elif (status := job.documents["/status"]["status"]) != "CANCELED":
            raise RestError(409, f"Job {job_id} has ended already ({status})")
        return {}

    def savepoint(self, job_id: str, body: dict[str, Any]) -> dict[str, str]:
        job = find_running(self._dispatcher, job_id)
        directory = self._directory(job, body, "target-directory")
        format_type, request_id = _format(body), text_in(body, "triggerId")
        cancels_job = flag_in(body, "cancel-job")

        def begin() -> Future[Any]:
            done = job.master.trigger_savepoint(directory, format_type)
            if cancels_job:
                done.add_done_callback(lambda done: job.master.cancel() if done.exception() is None else None)
            return done

        return self._operations.begin(savepoints_of(job_id), request_id, begin)

    def stop(self, job_id: str, body: dict[str, Any]) -> dict[str, str]:
        job = find_running(self._dispatcher, job_id)
        directory = self._directory(job, body, "targetDirectory")
        format_type, drain = _format(body), flag_in(body, "drain")
        return self._operations.begin(
            savepoints_of(job_id),
            text_in(body, "triggerId"),
            lambda: job.master.stop_with_savepoint(directory, drain, format_type),
        )

    def checkpoint(self, job_id: str, body: dict[str, Any]) -> dict[str, str]:
        job = find_running(self._dispatcher, job_id)
        request_id, kind = text_in(body, "triggerId"), text_in(body, "checkpointType")
        if kind is not None and kind.upper() not in _CHECKPOINT_TYPES:
            raise bad_request(f"checkpointType {shown(kind)} is not known; use {', '.join(_CHECKPOINT_TYPES)}")
        return self._operations.begin(checkpoints_of(job_id), request_id, job.master.trigger_checkpoint)

    def dispose(self, body: dict[str, Any]) -> dict[str, str]:
        path, request_id = text_in(body, "savepoint-path"), text_in(body, "triggerId")
        if path is None:
            raise bad_request('the body must name a savepoint: {"savepoint-path": "..."}')
        return self._operations.begin(DISPOSALS, request_id, lambda: in_background(lambda: dispose_savepoint(path)))

    def _directory(self, job: RunningJob, body: dict[str, Any], name: str) -> str | None:
        given = text_in(body, name)
        if given is not None:
            return given
        if job.config.get_optional(keys.SAVEPOINT_DIR) is None:
            raise bad_request(
                f"Config key [{keys.SAVEPOINT_DIR.key}] is not set. Property [{name}] must be provided: name a folder, "
                f"as in `penstock savepoint <job> /data/savepoints`"
            )
        return None


def _format(body: dict[str, Any]) -> str:
    chosen = str(body.get("formatType") or "canonical").lower()
    if chosen not in _FORMATS:
        raise bad_request(f"formatType {shown(body['formatType'])} is not known; use CANONICAL or NATIVE")
    return chosen
