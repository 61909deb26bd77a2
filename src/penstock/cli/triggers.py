"""Waits for what a request has begun."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.cli.locate import ENDED, LocatedJob
from penstock.common.exceptions import PenstockError
from penstock.rest.client import RestClient, RestClientError

T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.5
_END_WITHIN_S = 60


class OperationFailedError(PenstockError):
    """What was asked for was begun and failed."""


def wait_for_operation(client: RestClient, path: str, request: dict[str, str]) -> dict[str, Any]:
    """The result of an operation that a POST to `path` began."""

    def result() -> dict[str, Any] | None:
        answer = client.get(f"{path}/{request['request-id']}")
        return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

    operation = _poll(result, None)
    assert operation is not None
    cause = operation.get("failure-cause") or operation.get("failureCause")
    if cause is not None:
        raise OperationFailedError(cause["stack-trace"].strip().splitlines()[-1].partition(": ")[2] or cause["class"])
    return operation


def wait_for_end(job: LocatedJob) -> None:
    """Wait until nothing of a job runs any more; a job of its own process may end with that."""

    def has_ended() -> bool | None:
        try:
            return job.client.get(f"/jobs/{job.job_id}/status")["status"] in ENDED or None
        except RestClientError as error:
            if error.status in (None, 404):
                return True
            raise

    if _poll(has_ended, _END_WITHIN_S) is None:
        raise OperationFailedError(f"job {job.job_id} was told to end, but has not within {_END_WITHIN_S} s")


def _poll(question: Callable[[], T | None], timeout_s: float | None) -> T | None:
    """Ask until there is an answer; None if there is none in time."""
    pause, deadline = _FIRST_PAUSE_S, None if timeout_s is None else time.monotonic() + timeout_s
    while (answer := question()) is None:
        if deadline is not None and time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
    return answer
