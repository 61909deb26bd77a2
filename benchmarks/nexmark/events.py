"""The auction house: of 50 events one is a new person, three are new auctions and 46 are bids.

Everything is a function of an event's number, so any part of the stream can be made anywhere, and again. An event
comes every millisecond. As in Nexmark, a few people and auctions are hot: half of all bids go to one auction of a
hundred, and three of four bids and auctions come from one person of a hundred; the others are spread over those who
came last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.flink_api import (
    DataStream,
    NumberSequenceSource,
    StreamExecutionEnvironment,
    TimestampAssigner,
    Types,
    WatermarkStrategy,
)
from benchmarks.job import Setting

A_ROUND, PERSONS, AUCTIONS = 50, 1, 3
FIRST_BID = PERSONS + AUCTIONS
ACTIVE_PEOPLE = 1_000
OPEN_AUCTIONS = 100
NAMES = ("Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "Leslie")

Person = tuple[int, str]
"""Its number and its name."""
Auction = tuple[int, int]
"""Its number and its seller."""
Bid = tuple[int, int, int, int]
"""Auction, bidder, price in cents and time in milliseconds."""
AUCTION, BIDDER, PRICE, TIME_MS = range(4)
"""The places in a bid."""

# Drawn beforehand: the benchmark is about the systems, not about drawing lots. They repeat after so many events, a
# prime, and so never in step with the rounds.
_LOTS = 99_991


def _drawn(seed: int, number: int) -> Any:
    """Numbers of 64 bits by SplitMix64, which is drawn alike in any language: peers have the same lots."""
    with np.errstate(over="ignore"):  # It is meant to wrap around.
        state = np.uint64(seed) + np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return mixed ^ mixed >> np.uint64(31)


def _price(lot: int) -> int:
    """Between 1 and 10,000 dollars, in cents: as often between 1 and 10 as between 1,000 and 10,000."""
    unit = (1, 10, 100, 1_000)[lot % 4]
    return (lot // 4 % 900 + 100) * unit + lot // 3_600 % unit


_lots = _drawn(7, 4 * _LOTS).reshape(4, _LOTS)
_IS_HOT_AUCTION = tuple((_lots[0] >> np.uint64(63) == 0).tolist())
_IS_HOT_PERSON = tuple((_lots[1] >> np.uint64(62) != 0).tolist())
_PLACES = tuple((_lots[2] >> np.uint64(34)).tolist())
_PRICES = tuple(map(_price, (_lots[3] >> np.uint64(24)).tolist()))


def is_person(number: int) -> bool:
    return number % A_ROUND < PERSONS


def is_auction(number: int) -> bool:
    return PERSONS <= number % A_ROUND < FIRST_BID


def is_bid(number: int) -> bool:
    return number % A_ROUND >= FIRST_BID


def person_of(number: int) -> Person:
    person = number // A_ROUND
    return person, NAMES[_PLACES[number % _LOTS] % len(NAMES)]


def auction_of(number: int) -> Auction:
    newest, lot = number // A_ROUND, number % _LOTS
    seller = newest - newest % 100 if _IS_HOT_PERSON[lot] else max(newest - _PLACES[lot] % ACTIVE_PEOPLE, 0)
    return newest * AUCTIONS + number % A_ROUND - PERSONS, seller


def bid_of(number: int) -> Bid:
    newest, lot = number // A_ROUND, number % _LOTS
    place, opened = _PLACES[lot], newest * AUCTIONS + AUCTIONS - 1
    return (
        opened - opened % 100 if _IS_HOT_AUCTION[lot] else max(opened - place % OPEN_AUCTIONS, 0),
        newest - newest % 100 + 1 if _IS_HOT_PERSON[lot] else max(newest - place % ACTIVE_PEOPLE, 0),
        _PRICES[lot],
        number,
    )


class TimeOfNumber(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def bid_type() -> Any:
    return Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])


def numbers(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    """The numbers of all events, with their times."""
    source = NumberSequenceSource(0, setting.records - 1)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfNumber())
    found = env.from_source(source, WatermarkStrategy.no_watermarks(), "events", Types.LONG())
    return found.assign_timestamps_and_watermarks(times)


def bids(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    return numbers(env, setting).filter(is_bid).map(bid_of, bid_type())


def all_bids(setting: Setting) -> list[Bid]:
    """The same in plain Python."""
    return [bid_of(number) for number in range(setting.records) if is_bid(number)]
