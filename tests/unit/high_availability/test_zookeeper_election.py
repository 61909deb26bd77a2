"""Contenders at a real ZooKeeper: the one whose classes come with PySpark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from free_ports import free_port
from zookeeper_server import ZooKeeperServer

from penstock.cluster.high_availability.zookeeper_election import ZooKeeperElection
from penstock.common.exceptions import EnvironmentSetupError

pytestmark = pytest.mark.slow

WITHIN_S = 30
NODE = "/flink/default/leader"
SESSION_MS = 2_000


class Contender:
    def __init__(self, zookeeper: ZooKeeperServer, name: str) -> None:
        self.election = ZooKeeperElection(f"127.0.0.1:{zookeeper.port}", NODE, SESSION_MS, 5_000)
        self.events: list[str] = []
        self.tokens: list[int] = []
        self._told = threading.Condition()
        self.election.contend(f"{name}:8081", self._grant, lambda: self._tell("revoked"))

    def _grant(self, token: int) -> None:
        self.tokens.append(token)
        self._tell("granted")

    def _tell(self, event: str) -> None:
        with self._told:
            self.events.append(event)
            self._told.notify_all()

    def has_heard(self, *events: str) -> bool:
        with self._told:
            return self._told.wait_for(lambda: self.events == list(events), WITHIN_S)


@pytest.fixture
def contenders(zookeeper: ZooKeeperServer) -> Iterator[tuple[Contender, Contender]]:
    a = Contender(zookeeper, "a")
    assert a.has_heard("granted")
    b = Contender(zookeeper, "b")
    yield a, b
    a.election.close()
    b.election.close()


def eventually(is_so) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


def test_first_leads_and_everybody_knows_where(contenders, zookeeper):
    a, b = contenders
    assert (a.election.is_leader, b.election.is_leader) == (True, False)
    asking = ZooKeeperElection(f"127.0.0.1:{zookeeper.port}", NODE, SESSION_MS, 5_000)
    assert asking.leader_address() == "a:8081"
    asking.close()
    eventually(lambda: b.election.leader_address() == "a:8081")
    assert b.events == []


def test_next_one_takes_over_with_a_larger_token_when_the_leader_leaves(contenders):
    a, b = contenders
    a.election.close()
    assert b.has_heard("granted")
    assert b.tokens > a.tokens and b.election.token == b.tokens[0]
    eventually(lambda: b.election.leader_address() == "b:8081")


def end_session(contender: Contender, zookeeper: ZooKeeperServer) -> None:
    """As ZooKeeper does when it has not heard of a client for too long."""
    from kazoo.client import KazooClient

    double = KazooClient(f"127.0.0.1:{zookeeper.port}", client_id=contender.election._client.client_id)
    double.start()
    double.stop()
    double.close()


def test_leader_that_loses_its_session_leads_no_more_and_contends_again(contenders, zookeeper):
    a, b = contenders
    end_session(a, zookeeper)
    assert a.has_heard("granted", "revoked") and b.has_heard("granted")
    assert b.tokens > a.tokens
    b.election.close()
    assert a.has_heard("granted", "revoked", "granted")
    assert a.tokens[1] > b.tokens[0]


def test_leader_without_a_server_leads_no_more_until_the_server_is_back(contenders, zookeeper):
    a, b = contenders
    zookeeper.stop()
    assert a.has_heard("granted", "revoked")
    assert not a.election.is_leader
    zookeeper.start()
    eventually(lambda: bool(a.tokens[1:] + b.tokens))
    assert max(a.tokens[1:] + b.tokens) > a.tokens[0]


def test_quorum_that_does_not_answer_is_reported():
    pytest.importorskip("kazoo", reason="needs the package kazoo")
    with pytest.raises(EnvironmentSetupError, match=r"quorum: no server of 127\.0\.0\.1:\d+ has answered within 1 s"):
        ZooKeeperElection(f"127.0.0.1:{free_port()}", NODE, SESSION_MS, 1_000).leader_address()
