"""Query 7, highest bid: that of each 10 seconds; of two with the same price the later one."""

from __future__ import annotations

from typing import Any

from benchmarks.flink_api import DataStream, StreamExecutionEnvironment, Time, TumblingEventTimeWindows
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.events import PRICE, TIME_MS, Bid, all_bids, bid_type, bids

WINDOW_MS = 10_000


def higher(a: Bid, b: Bid) -> Bid:
    return a if (a[PRICE], a[TIME_MS]) > (b[PRICE], b[TIME_MS]) else b


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    windows = bids(env, setting).window_all(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
    return windows.reduce(higher, output_type=bid_type())


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    highest: dict[int, Bid] = {}
    for bid in all_bids(setting):
        window = bid[TIME_MS] // WINDOW_MS
        highest[window] = higher(highest.get(window, bid), bid)
    return list(highest.values())


if __name__ == "__main__":
    run_as_script(build)
