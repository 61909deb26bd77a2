"""When a lease is claimed, renewed and given up; all times are made up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.high_availability.lease_policy import Claim, Grant, Lease, LeasePolicy, Renew, Revoke

LEASE_MS, RENEW_MS = 10_000, 2_000
THEIRS = Lease(7, "b", "b:8081", beat=3)


def policy(holder: str = "a") -> LeasePolicy:
    made = LeasePolicy(holder, LEASE_MS, RENEW_MS)
    made.address = f"{holder}:8081"
    return made


def leader(now_ms: int = 0) -> LeasePolicy:
    made = policy()
    made.claimed(8, now_ms, now_ms)
    return made


def test_first_contender_claims_the_first_token_and_shows_where_it_is():
    first = policy()
    assert first.looked(None, 0) == [Claim(1)]
    assert first.claimed(1, 0, 5) == [Grant(1), Renew(Lease(1, "a", "a:8081", beat=1))]


def test_lease_is_claimed_when_it_was_seen_unchanged_for_its_whole_time():
    standby = policy()
    assert standby.looked(THEIRS, 1_000) == []
    assert standby.looked(THEIRS, 10_999) == []
    assert standby.looked(THEIRS, 11_000) == [Claim(8)]


def test_every_sign_of_life_counts_from_when_it_was_seen():
    standby = policy()
    assert standby.looked(THEIRS, 0) == []
    assert standby.looked(replace(THEIRS, beat=4), 9_999) == []
    assert standby.looked(replace(THEIRS, beat=4), 19_998) == []
    assert standby.looked(replace(THEIRS, beat=4), 19_999) == [Claim(8)]


def test_lease_that_was_given_back_is_claimed_at_once():
    assert policy().looked(replace(THEIRS, is_released=True), 0) == [Claim(8)]


def test_own_former_lease_is_claimed_at_once_with_a_new_token():
    assert policy("b").looked(THEIRS, 0) == [Claim(8)]


def test_leader_renews_its_lease_before_it_expires():
    leading = leader()
    mine = Lease(8, "a", "a:8081")
    assert leading.looked(mine, 1_999) == []
    assert leading.looked(mine, 2_000) == [Renew(replace(mine, beat=1))]
    leading.renewed(replace(mine, beat=1), 2_000)
    assert leading.looked(replace(mine, beat=1), 3_999) == []
    assert leading.looked(replace(mine, beat=1), 4_000) == [Renew(replace(mine, beat=2))]


def test_leader_gives_up_before_others_may_claim():
    leading = leader()
    assert leading.looked(Lease(8, "a"), 8_000) == [Revoke("the lease could not be renewed for 8000 ms")]
    assert leading.held is None


def test_leader_gives_up_when_the_storage_does_not_answer_for_too_long():
    leading = leader()
    assert leading.could_not_look(7_999) == []
    assert leading.could_not_look(8_000) == [Revoke("the lease could not be renewed for 8000 ms")]
    assert leading.could_not_look(9_000) == []


def test_leader_gives_up_at_once_when_there_is_a_newer_leadership():
    leading = leader()
    assert leading.looked(Lease(9, "b"), 1) == [Revoke("there is a newer leadership, 9")]


def test_token_that_arrives_too_late_is_not_used():
    slow = policy()
    assert slow.claimed(8, 0, 8_000) == [Revoke("the lease could not be renewed for 8000 ms")]
    assert slow.held is None


def test_lease_is_left_behind_for_others_to_take():
    assert leader().released() == Lease(8, "a", "a:8081", beat=1, is_released=True)
    assert policy().released() is None


@given(
    renewed=st.integers(0, 50_000),
    arrives=st.integers(0, 5_000),
    looks=st.lists(st.integers(1, 3_000), min_size=1, max_size=30),
    offset=st.integers(-(10**9), 10**9),
)
def test_nobody_claims_a_lease_that_its_holder_still_counts_on(renewed, arrives, looks, offset):
    """The holder's clock and the other's show different times but run equally fast."""
    holder, other = leader(renewed), policy("b")
    now, claims = renewed + arrives, []
    while not claims and looks:
        claims = other.looked(Lease(8, "a"), now + offset)
        now += 0 if claims else looks.pop()
    if claims:
        assert holder.could_not_look(now) != []
