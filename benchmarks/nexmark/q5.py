"""Query 5, hot items: in windows of 10 seconds that begin every 2, the auctions with the most bids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    ProcessAllWindowFunction,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    Time,
    TumblingEventTimeWindows,
    Types,
)
from benchmarks.job import Setting, run_as_script
from benchmarks.nexmark.counting import CountElements, WithKeyAndWindow
from benchmarks.nexmark.events import AUCTION, TIME_MS, all_bids, bids

SIZE_MS = 10_000
SLIDE_MS = 2_000


class Hottest(ProcessAllWindowFunction):  # type: ignore[misc, type-arg, unused-ignore]
    """All auctions that share the highest count. Elements: auction, count, window start and end."""

    def process(self, context: Any, elements: Iterable[Any]) -> Iterator[Any]:
        counts = list(elements)
        highest = max(counted[1] for counted in counts)
        for counted in counts:
            if counted[1] == highest:
                yield counted


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    counted_type = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])
    counted = (
        bids(env, setting)
        .key_by(lambda bid: bid[AUCTION], Types.LONG())
        .window(SlidingEventTimeWindows.of(Time.milliseconds(SIZE_MS), Time.milliseconds(SLIDE_MS)))
        .aggregate(
            CountElements(),
            window_function=WithKeyAndWindow(),
            accumulator_type=Types.LONG(),
            output_type=counted_type,
        )
    )
    # The counts of one window all have its last millisecond as their time, so one slide holds those of one window.
    slides = counted.window_all(TumblingEventTimeWindows.of(Time.milliseconds(SLIDE_MS)))
    return slides.process(Hottest(), counted_type)


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python, slide by slide."""
    slides: dict[int, Counter[int]] = {}
    for bid in all_bids(setting):
        slides.setdefault(bid[TIME_MS] // SLIDE_MS, Counter())[bid[AUCTION]] += 1
    a_window = SIZE_MS // SLIDE_MS
    hottest: list[Any] = []
    for first in range(-a_window + 1, max(slides) + 1):
        counts: Counter[int] = Counter()
        for slide in range(first, first + a_window):
            counts.update(slides.get(slide, {}))
        hottest += _hottest(first, counts)
    return hottest


def _hottest(slide: int, counts: Counter[int]) -> list[Any]:
    start = slide * SLIDE_MS
    highest = max(counts.values())
    return [(auction, count, start, start + SIZE_MS) for auction, count in counts.items() if count == highest]


if __name__ == "__main__":
    run_as_script(build)
