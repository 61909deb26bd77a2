"""Query 0, pass through: every bid as it is. One in five hundred is collected, so that collecting costs little."""

from __future__ import annotations

from typing import Any

from benchmarks.flink_api import DataStream, StreamExecutionEnvironment
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.events import TIME_MS, Bid, all_bids, bids

KEEPS_ONE_OF = 500


def is_kept(bid: Bid) -> bool:
    return bid[TIME_MS] % KEEPS_ONE_OF == KEEPS_ONE_OF - 1


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    return bids(env, setting).filter(is_kept)


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    return [bid for bid in all_bids(setting) if is_kept(bid)]


if __name__ == "__main__":
    run_as_script(build)
