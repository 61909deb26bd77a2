"""What counts as the end of a job that was asked to end."""

from __future__ import annotations

import http.client
from typing import Any

import pytest

from penstock.cli.job_ends import wait_for_end
from penstock.cli.locate import LocatedJob
from penstock.rest.client import RestClientError


def no_answer(cause: Exception) -> RestClientError:
    error = RestClientError("nobody answers")
    error.__cause__ = cause
    return error


class Server:
    def __init__(self, *answers: str | RestClientError) -> None:
        self._answers = list(answers)

    def get(self, path: str) -> dict[str, str]:
        answer = self._answers.pop(0)
        if isinstance(answer, RestClientError):
            raise answer
        return {"status": answer}


def job_that(*answers: str | RestClientError) -> LocatedJob:
    client: Any = Server(*answers)
    return LocatedJob(client, {"jid": "ab" * 16})


@pytest.mark.parametrize(
    "last",
    [
        "CANCELED",
        RestClientError("not found", 404),
        no_answer(ConnectionRefusedError()),
        no_answer(http.client.RemoteDisconnected()),
        no_answer(http.client.IncompleteRead(b"{")),
        no_answer(FileNotFoundError()),
    ],
)
def test_job_has_ended_when_it_says_so_or_its_process_is_gone(last):
    wait_for_end(job_that("CANCELLING", last))


@pytest.mark.parametrize("cause", [TimeoutError(), OSError("no route to host")])
def test_job_has_not_ended_because_its_job_manager_is_out_of_reach(cause):
    with pytest.raises(RestClientError, match="nobody answers"):
        wait_for_end(job_that("CANCELLING", no_answer(cause)))
