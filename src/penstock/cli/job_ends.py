"""Waits for the end of a job."""

from __future__ import annotations

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
            if error.status in (None, 404):
                return True
            raise

    if poll(has_ended, _END_WITHIN_S) is None:
        raise OperationFailedError(f"job {job.job_id} was asked to end, but has not ended within {_END_WITHIN_S} s")
