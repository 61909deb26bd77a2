"""Readings per sensor in event-time windows of a minute that begin every 10 seconds: how many, and their sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.flink_api import (
    AggregateFunction,
    DataStream,
    NumberSequenceSource,
    SlidingEventTimeWindows,
    StreamExecutionEnvironment,
    Time,
    Types,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script
from benchmarks.word_count import WORDS_A_MS as READINGS_A_MS
from benchmarks.word_count import TimeOfNumber, word_of

SIZE_SECONDS = 60
SLIDE_SECONDS = 10
LARGEST_VALUE = 100


class CountAndSum(AggregateFunction):  # type: ignore[misc, unused-ignore]
    """The accumulator is sensor, count and sum; it is the result, too."""

    def create_accumulator(self) -> Any:
        return "", 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], accumulator[1] + 1, accumulator[2] + value[1]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, a: Any, b: Any) -> Any:
        return a[0] or b[0], a[1] + b[1], a[2] + b[2]


def reading_of(keys: int, has_skew: bool) -> Callable[[int], tuple[str, int]]:
    """Sensor and value by the record's number; the sensors come as the words of word_count do."""
    word = word_of(keys, has_skew)
    return lambda number: (word(number)[0], number % LARGEST_VALUE)


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfNumber())
    result_type = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
    return (
        numbers.assign_timestamps_and_watermarks(times)
        .map(reading_of(setting.keys, setting.has_skew), Types.TUPLE([Types.STRING(), Types.LONG()]))
        .key_by(lambda reading: reading[0], Types.STRING())
        .window(SlidingEventTimeWindows.of(Time.seconds(SIZE_SECONDS), Time.seconds(SLIDE_SECONDS)))
        .aggregate(CountAndSum(), accumulator_type=result_type, output_type=result_type)
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python: a slide's readings are in as many windows as slides fit into one."""
    reading = reading_of(setting.keys, setting.has_skew)
    a_slide = READINGS_A_MS * SLIDE_SECONDS * 1000
    windows: dict[tuple[int, str], tuple[int, int]] = {}
    for first in range(0, setting.records, a_slide):
        slide: dict[str, tuple[int, int]] = {}
        for sensor, value in map(reading, range(first, min(first + a_slide, setting.records))):
            count, total = slide.get(sensor, (0, 0))
            slide[sensor] = count + 1, total + value
        for window in range(first // a_slide, first // a_slide + SIZE_SECONDS // SLIDE_SECONDS):
            for sensor, found in slide.items():
                count, total = windows.get((window, sensor), (0, 0))
                windows[window, sensor] = count + found[0], total + found[1]
    return [(sensor, *found) for (_, sensor), found in windows.items()]


if __name__ == "__main__":
    run_as_script(build)
