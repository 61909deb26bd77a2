"""Waits for the end of a job."""

from __future__ import annotations

import http.client

from penstock.cli.locate import ENDED, LocatedJob
from penstock.rest.client import RestClientError
from penstock.rest.polling import OperationFailedError, poll

_END_WITHIN_S = 60


def wait_for_end(job: LocatedJob) -> None:
    """Wait until a job has ended. A process of its own may end with it; then there is no answer any more."""

    def has_ended() -> bool | None:
        try:
            return job.client.get(f"/jobs/{job.job_id}/status")["status"] in ENDED or None
        except RestClientError as error:
            if error.status == 404 or _is_gone(error):
                return True
            raise

    if poll(has_ended, _END_WITHIN_S) is None:
        raise OperationFailedError(f"job {job.job_id} was asked to end, but has not ended within {_END_WITHIN_S} s")


def _is_gone(error: RestClientError) -> bool:
    """True if there is no process any more. One that is out of reach, or too slow to answer, may still run the job."""
    gone = (ConnectionError, FileNotFoundError, http.client.HTTPException)  # The last for an answer that was cut off.
    return error.status is None and isinstance(error.__cause__, gone)
