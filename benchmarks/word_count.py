"""Count words in event-time windows of 10 seconds; 10 words come every millisecond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    NumberSequenceSource,
    StreamExecutionEnvironment,
    Time,
    TimestampAssigner,
    TumblingEventTimeWindows,
    Types,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

WORDS_A_MS = 10
WINDOW_SECONDS = 10
TEXT_WORDS = 9_973


class TimeOfNumber(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value // WORDS_A_MS


def word_of(keys: int, has_skew: bool) -> Callable[[int], tuple[str, int]]:
    """A record by its number, from a text that repeats; skewed: 80 % of it are the first fifth of the words."""
    few = max(keys // 5, 1)
    many = keys - few or 1

    def key_at(place: int) -> int:
        mixed = place * 2654435761 >> 7
        if not has_skew:
            return mixed % keys
        return mixed % few if place % 5 else keys - 1 - mixed % many

    # Made beforehand: the benchmark is about the systems, not about making words.
    words = [f"word-{number}" for number in range(keys)]
    text = [words[key_at(place)] for place in range(TEXT_WORDS)]
    return lambda number: (text[number % TEXT_WORDS], 1)


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfNumber())
    return (
        numbers.assign_timestamps_and_watermarks(times)
        .map(word_of(setting.keys, setting.has_skew), Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(lambda pair: pair[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(WINDOW_SECONDS)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    word = word_of(setting.keys, setting.has_skew)
    a_window = WORDS_A_MS * WINDOW_SECONDS * 1000
    counts = Counter((number // a_window, word(number)[0]) for number in range(setting.records))
    return [(found, count) for (_, found), count in counts.items()]


if __name__ == "__main__":
    run_as_script(build)
