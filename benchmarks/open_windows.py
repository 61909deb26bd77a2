"""Count per key in windows of which `--keys` are open at the same time for each of ten keys, until the input ends."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.flink_api import (
    DataStream,
    Duration,
    NumberSequenceSource,
    StreamExecutionEnvironment,
    Time,
    TimestampAssigner,
    TumblingEventTimeWindows,
    Types,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

KEYS = 10
WINDOW_MS = 1_000


class TimeInSomeWindow(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    """Consecutive records fall into different windows."""

    def __init__(self, windows: int) -> None:
        self._windows = windows

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value // KEYS % self._windows * WINDOW_MS


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    # The watermark stays behind all of them.
    lateness = Duration.of_millis((setting.keys + 1) * WINDOW_MS)
    times = WatermarkStrategy.for_bounded_out_of_orderness(lateness)
    return (
        numbers.assign_timestamps_and_watermarks(times.with_timestamp_assigner(TimeInSomeWindow(setting.keys)))
        .map(lambda number: (number % KEYS, 1), Types.TUPLE([Types.LONG(), Types.LONG()]))
        .key_by(lambda pair: pair[0], Types.LONG())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MS)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    numbers = range(setting.records)
    counts = Counter((number % KEYS, number // KEYS % setting.keys) for number in numbers)
    return [(key, count) for (key, _), count in counts.items()]


if __name__ == "__main__":
    run_as_script(build)
