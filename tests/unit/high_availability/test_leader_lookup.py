"""Where clients look for the leader while those who know it are away."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cluster.high_availability.zookeeper_election import ZooKeeperElection
from penstock.cluster.leader_lookup import JobManagers
from penstock.common.exceptions import EnvironmentSetupError
from penstock.rest.client import RestClientError


def test_leader_that_cannot_be_looked_up_now_may_be_asked_for_again():
    class Away:
        def leader_address(self) -> str | None:
            raise EnvironmentSetupError("no server has answered; is ZooKeeper running there?")

    away: Any = Away()
    with pytest.raises(RestClientError, match="is ZooKeeper running there") as caught:
        JobManagers((), away).leader()
    assert caught.value.status == 503, "clients that submit or follow a job ask again"


def test_zookeeper_that_goes_away_while_it_is_asked_is_reported(monkeypatch):
    pytest.importorskip("kazoo", reason="needs the package kazoo")
    from kazoo.exceptions import ConnectionLoss

    def lost(*_: Any) -> None:
        raise ConnectionLoss

    election = ZooKeeperElection("localhost:1", "/penstock/leader", 1000, 1000)
    monkeypatch.setattr(election, "_connect", lambda: None)
    monkeypatch.setattr(election, "_contenders", lost)
    with pytest.raises(
        EnvironmentSetupError, match=r"localhost:1 cannot say which job manager leads \(ConnectionLoss\)"
    ):
        election.leader_address()
