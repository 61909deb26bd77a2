"""Query 1, currency conversion: every bid with its price in euros. Of these, too, one in five hundred is collected."""

from __future__ import annotations

from typing import Any

from benchmarks.flink_api import DataStream, StreamExecutionEnvironment
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.events import AUCTION, BIDDER, PRICE, TIME_MS, Bid, all_bids, bid_type, bids
from benchmarks.nexmark.q0 import is_kept

EURO_CENTS_PER_DOLLAR = 89


def in_euros(bid: Bid) -> Bid:
    return bid[AUCTION], bid[BIDDER], bid[PRICE] * EURO_CENTS_PER_DOLLAR // 100, bid[TIME_MS]


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    return bids(env, setting).map(in_euros, bid_type()).filter(is_kept)


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    return [bid for bid in map(in_euros, all_bids(setting)) if is_kept(bid)]


if __name__ == "__main__":
    run_as_script(build)
