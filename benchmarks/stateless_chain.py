"""map, filter, flat_map, map: no keys, no time. The last filter keeps few records: collecting them costs little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.flink_api import DataStream, NumberSequenceSource, StreamExecutionEnvironment, Types, WatermarkStrategy
from benchmarks.job import Setting, run_as_script

KEEPS_ONE_OF = 1_000


def scale(number: int) -> int:
    return number * 3 + 1


def is_odd(number: int) -> bool:
    return number % 2 == 1


def halves(number: int) -> Iterator[int]:
    yield number // 2
    yield number - number // 2


def label(number: int) -> tuple[int, str]:
    return number, "even" if number % 2 == 0 else "odd"


def is_kept(pair: tuple[int, str]) -> bool:
    return pair[0] % KEEPS_ONE_OF == 0


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    return (
        numbers.map(scale, Types.LONG())
        .filter(is_odd)
        .flat_map(halves, Types.LONG())
        .map(label, Types.TUPLE([Types.LONG(), Types.STRING()]))
        .filter(is_kept)
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    scaled = filter(is_odd, map(scale, range(setting.records)))
    return [pair for number in scaled for pair in map(label, halves(number)) if is_kept(pair)]


if __name__ == "__main__":
    run_as_script(build)
