"""Contenders that look at the same folder, at times that the test sets."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from penstock.cluster.high_availability.lease_election import LeaseElection
from penstock.cluster.high_availability.lease_files import LeaseFiles
from penstock.cluster.high_availability.lease_policy import Lease, LeasePolicy

WITHIN_S = 10
NEVER_MS = 10**9
"""Contenders do not look by themselves here, but when they begin and when they are told to."""


class Clock:
    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


class Contender:
    """Looks when it is told to, and remembers what it was told."""

    def __init__(self, folder: Path, name: str, clock: Clock) -> None:
        self.election = LeaseElection(LeaseFiles(folder), LeasePolicy(name, 10_000, 2_000), NEVER_MS, clock)
        self.events: list[str] = []
        self._told = threading.Condition()
        self.election.contend(f"{name}:8081", self._grant, self._revoke)

    def _grant(self, token: int) -> None:
        self._tell(f"granted {token}")

    def _revoke(self) -> None:
        self._tell("revoked")

    def _tell(self, event: str) -> None:
        with self._told:
            self.events.append(event)
            self._told.notify_all()

    def look(self) -> None:
        self.election.look()

    def has_heard(self, *events: str) -> bool:
        with self._told:
            return self._told.wait_for(lambda: self.events == list(events), WITHIN_S)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def contenders(tmp_path, clock) -> tuple[Contender, Contender]:
    return Contender(tmp_path / "leader", "a", clock), Contender(tmp_path / "leader", "b", clock)


def test_one_leads_and_the_other_knows_where(contenders):
    a, b = contenders
    assert a.has_heard("granted 1") and b.has_heard()
    assert (a.election.is_leader, a.election.token) == (True, 1)
    assert (b.election.is_leader, b.election.token) == (False, None)
    assert a.election.leader_address() == b.election.leader_address() == "a:8081"


def test_leader_that_looks_in_time_stays_leader(contenders, clock):
    a, b = contenders
    for _ in range(20):
        a.look()
        b.look()
        clock.now_ms += 2_000
    assert a.has_heard("granted 1") and b.has_heard()


def test_other_takes_over_when_the_leader_shows_no_sign_of_life(contenders, clock):
    a, b = contenders
    clock.now_ms += 10_000
    b.look()
    assert b.has_heard("granted 2")
    a.look()
    assert a.has_heard("granted 1", "revoked") and not a.election.is_leader
    assert a.election.leader_address() == "b:8081"


def test_of_two_that_claim_the_same_token_one_gets_it(clock, tmp_path):
    LeaseFiles(tmp_path / "leader").claim(1)
    a, b = Contender(tmp_path / "leader", "a", clock), Contender(tmp_path / "leader", "b", clock)
    clock.now_ms += 10_000
    a.look()
    b.look()
    assert a.has_heard("granted 2") and b.has_heard()


def test_leader_that_was_paused_leads_again_if_nobody_took_over(contenders, clock):
    a, _ = contenders
    clock.now_ms += 60_000
    a.look()
    a.look()
    assert a.has_heard("granted 1", "revoked", "granted 2")


def test_lease_that_is_given_back_is_taken_over_at_once(contenders):
    a, b = contenders
    a.election.close()
    assert b.election.leader_address() is None
    b.look()
    assert b.has_heard("granted 2")


def test_leader_gives_up_when_the_folder_cannot_be_read(contenders, clock, tmp_path):
    a, _ = contenders
    leader = tmp_path / "leader"
    leader.rename(tmp_path / "elsewhere")
    leader.touch()  # A file where the folder was: listing and writing fail.
    clock.now_ms += 4_000
    a.look()
    assert a.election.is_leader
    clock.now_ms += 4_000
    a.look()
    assert a.has_heard("granted 1", "revoked")
    assert a.election.leader_address() is None


def test_files_of_former_leaders_are_removed(tmp_path):
    files = LeaseFiles(tmp_path / "leader")
    for token in range(1, 6):
        assert files.claim(token) and not files.claim(token)
        files.write(Lease(token, "a", "a:8081", beat=1))
    files.forget_before(5)
    assert sorted(path.name for path in (tmp_path / "leader").iterdir()) == ["lease-0000000004", "lease-0000000005"]
    assert files.newest() == Lease(5, "a", "a:8081", beat=1)


def test_file_that_is_no_lease_keeps_others_from_claiming(tmp_path, clock):
    folder = tmp_path / "leader"
    folder.mkdir()
    (folder / "lease-0000000007").write_text('{"river": 1}')
    contender = Contender(folder, "a", clock)
    assert contender.has_heard() and contender.election.leader_address() is None
