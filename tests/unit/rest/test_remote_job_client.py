"""The handle of a job at a job manager that is away, or not alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from penstock.cluster import remote_job_client
from penstock.cluster.remote_job_client import RemoteJobClient
from penstock.rest.client import Address, RestClientError

JOB = "ab" * 16


class Server:
    """Answers as a job manager whose job does not end. `refusal` is what it says to other requests."""

    def __init__(self, refusal: RestClientError | None = None) -> None:
        self.address = Address(host="localhost", port=8081)
        self.refusal = refusal
        self.cancelled: list[str] = []

    def _answer(self, answer: Any) -> Any:
        if self.refusal is not None:
            raise self.refusal
        return answer

    def get(self, path: str, **_: str) -> Any:
        if path.endswith("/execution-result"):
            threading.Event().wait(0.05)
            return {"status": {"id": "IN_PROGRESS"}}
        return self._answer({"status": "RUNNING"})

    def patch(self, path: str) -> Any:
        self._answer({})
        self.cancelled.append(path)


class Managers:
    may_change = True

    def leader(self) -> Address:
        return Address(host="localhost", port=8082)


def detached(server: Any, managers: Any = None) -> RemoteJobClient:
    return RemoteJobClient(server, JOB, "job", [], False, managers)


@pytest.mark.parametrize("status", [None, 401, 500, 503])
def test_job_that_could_not_be_cancelled_is_reported(status):
    client = detached(Server(RestClientError("not now", status)))
    with pytest.raises(RestClientError, match="not now"):
        client.cancel().result(10)


@pytest.mark.parametrize("status", [None, 503])
def test_leader_is_asked_if_the_former_one_is_gone(status, monkeypatch):
    next_leader = Server()
    monkeypatch.setattr(remote_job_client, "RestClient", lambda address: next_leader if address.port == 8082 else None)
    client = detached(Server(RestClientError("gone", status)), Managers())
    assert client.get_job_status().result().name == "RUNNING"
    client = detached(Server(RestClientError("gone", status)), Managers())
    client.cancel()
    assert next_leader.cancelled == [f"/jobs/{JOB}?mode=cancel"]


def test_detached_job_is_followed_once_whoever_asks_for_its_result(monkeypatch):
    started = []

    class Thread(threading.Thread):
        def start(self) -> None:
            started.append(self)
            threading.Event().wait(0.05)  # Time for others to come
            super().start()

    monkeypatch.setattr(remote_job_client.threading, "Thread", Thread)
    client = detached(Server())
    monkeypatch.undo()
    askers = [threading.Thread(target=client.get_job_execution_result) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(started) == 1
