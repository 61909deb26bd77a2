"""Query 2, selection: the bids on some auctions, with auction and price."""

from __future__ import annotations

from typing import Any

from benchmarks.flink_api import DataStream, StreamExecutionEnvironment, Types
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.events import AUCTION, PRICE, Bid, all_bids, bids

ONE_AUCTION_OF = 123


def is_selected(bid: Bid) -> bool:
    return bid[AUCTION] % ONE_AUCTION_OF == 0


def auction_and_price(bid: Bid) -> tuple[int, int]:
    return bid[AUCTION], bid[PRICE]


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    pair_type = Types.TUPLE([Types.LONG(), Types.LONG()])
    return bids(env, setting).filter(is_selected).map(auction_and_price, pair_type)


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    return [auction_and_price(bid) for bid in all_bids(setting) if is_selected(bid)]


if __name__ == "__main__":
    run_as_script(build)
