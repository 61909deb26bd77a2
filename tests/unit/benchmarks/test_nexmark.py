"""The auction house of the Nexmark queries, and their answers by other means than those of `expected`."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.job import Setting
from benchmarks.nexmark import events, q5, q7, q8, q11, q12
from benchmarks.nexmark.events import AUCTION, BIDDER, PRICE, TIME_MS, all_bids, auction_of, bid_of, person_of

EVENTS = 60_000
SETTING = Setting(EVENTS)


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids():
    kinds = Counter((events.is_person(n), events.is_auction(n), events.is_bid(n)) for n in range(5_000))
    assert kinds == {(True, False, False): 100, (False, True, False): 300, (False, False, True): 4_600}


def test_people_and_auctions_are_numbered_as_they_come():
    people = [person_of(n)[0] for n in range(EVENTS) if events.is_person(n)]
    auctions = [auction_of(n)[0] for n in range(EVENTS) if events.is_auction(n)]
    assert people == list(range(EVENTS // 50)) and auctions == list(range(EVENTS // 50 * 3))


def test_nobody_bids_on_an_auction_that_is_not_open_yet():
    for number in filter(events.is_bid, range(EVENTS)):
        auction, bidder, price, time_ms = bid_of(number)
        assert 0 <= auction <= number // 50 * 3 + 2 and bidder >= 0 and price >= 100 and time_ms == number


def test_half_of_the_bids_go_to_hot_auctions_and_three_of_four_come_from_hot_people():
    bids = all_bids(SETTING)
    on_hot = sum(bid[AUCTION] % 100 == 0 for bid in bids) / len(bids)
    by_hot = sum(bid[BIDDER] % 100 == 1 for bid in bids) / len(bids)
    assert on_hot == pytest.approx(0.5, abs=0.03) and by_hot == pytest.approx(0.75, abs=0.03)


def test_q5_names_the_auctions_with_the_most_bids_of_each_window():
    answers = q5.expected(SETTING)
    starts = {start for _, _, start, _ in answers}
    assert starts == set(range(-8_000, EVENTS, 2_000))
    start = 20_000
    counts = Counter(bid[AUCTION] for bid in all_bids(SETTING) if start <= bid[TIME_MS] < start + 10_000)
    best = max(counts.values())
    assert {(a, c) for a, c, s, _ in answers if s == start} == {(a, c) for a, c in counts.items() if c == best}


def test_q7_names_one_bid_of_the_highest_price_for_each_window():
    answers = q7.expected(SETTING)
    assert [bid[TIME_MS] // 10_000 for bid in answers] == list(range(6))
    assert answers[2][PRICE] == max(bid[PRICE] for bid in all_bids(SETTING) if bid[TIME_MS] // 10_000 == 2)


def test_q8_names_people_who_sold_something_when_they_were_new():
    answers = q8.expected(SETTING)
    person, name, start = answers[-1]
    came = person * 50
    assert start <= came < start + 10_000 and person_of(came) == (person, name)
    assert any(auction_of(n)[1] == person for n in range(start, start + 10_000) if events.is_auction(n))
    assert len(answers) == len(set(answers)) > 20


def test_q11_has_every_bid_of_the_people_shown_in_one_session():
    sessions = q11.expected(SETTING)
    shown = sum(bid[BIDDER] % 10 == 1 for bid in all_bids(SETTING))
    assert sum(count for _, count, _, _ in sessions) == shown
    by_person = Counter(bidder for bidder, *_ in sessions)
    assert max(by_person.values()) > 1, "somebody paused and came back"


def test_q12_sums_up_what_windows_of_any_length_hold():
    assert q12.comparable([(1, 2), (7, 1), (1, 3)]) == [(1, 5), (7, 1)]
