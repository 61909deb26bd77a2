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


class TimeOfNumber(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value) // WORDS_A_MS


def word_of(keys: int, has_skew: bool) -> Callable[[int], tuple[str, int]]:
    """A record by its number; skewed: 80 % are among the first fifth of the words."""
    words = [f"word-{number}" for number in range(keys)]
    few = max(keys // 5, 1)
    many = keys - few or 1

    def even(number: int) -> tuple[str, int]:
        return words[(number * 2654435761 >> 7) % keys], 1

    def skewed(number: int) -> tuple[str, int]:
        mixed = number * 2654435761 >> 7
        return words[mixed % few if number % 5 else keys - 1 - mixed % many], 1

    return skewed if has_skew else even


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
