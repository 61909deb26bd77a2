"""Query 12, processing-time windows: how many bids each person makes in 10 seconds of the machine's clock.

Where a window ends depends on the clock, so what is checked are the sums over all windows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    StreamExecutionEnvironment,
    Time,
    TimeWindow,
    Trigger,
    TriggerResult,
    TumblingProcessingTimeWindows,
    Types,
)
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.events import BIDDER, Bid, all_bids, bids

WINDOW_SECONDS = 10
END_OF_TIME = 2**63 - 1


class AtTheEndToo(Trigger):  # type: ignore[misc, type-arg, unused-ignore]
    """Fires when the window ends, and when the input does: then Flink forgets windows that the clock has not closed."""

    def on_element(
        self, element: Any, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        ctx.register_event_time_timer(END_OF_TIME)
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        raise NotImplementedError("these windows do not merge")

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())
        ctx.delete_event_time_timer(END_OF_TIME)


def one_bid(bid: Bid) -> tuple[int, int]:
    return bid[BIDDER], 1


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    counts: DataStream = (
        bids(env, setting)
        .map(one_bid, Types.TUPLE([Types.LONG(), Types.LONG()]))
        .key_by(lambda pair: pair[0], Types.LONG())
        .window(TumblingProcessingTimeWindows.of(Time.seconds(WINDOW_SECONDS)))
        .trigger(AtTheEndToo())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    return counts


def comparable(results: list[Any]) -> list[Any]:
    """The bids of each person, over all windows."""
    totals: Counter[int] = Counter()
    for bidder, count in results:
        totals[bidder] += count
    return list(totals.items())


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    return comparable(list(map(one_bid, all_bids(setting))))


if __name__ == "__main__":
    run_as_script(build, comparable)
