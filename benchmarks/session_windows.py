"""Sessions in event time: each user comes five times, a second apart, and then never again."""

from __future__ import annotations

from typing import Any

from benchmarks.flink_api import (
    DataStream,
    EventTimeSessionWindows,
    NumberSequenceSource,
    StreamExecutionEnvironment,
    Time,
    TimestampAssigner,
    Types,
    WatermarkStrategy,
)
from benchmarks.job import Setting, run_as_script

USERS_AT_A_TIME = 1_000
VISITS = 5
GAP_SECONDS = 3
KEEPS_ONE_OF = 50


class TimeOfNumber(TimestampAssigner):  # type: ignore[misc, unused-ignore]
    """A record comes every millisecond."""

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


def visit_of(number: int) -> tuple[int, int]:
    """User and one visit: a thousand users take turns, and after five rounds others come."""
    return number // (USERS_AT_A_TIME * VISITS) * USERS_AT_A_TIME + number % USERS_AT_A_TIME, 1


def is_kept(session: tuple[int, int]) -> bool:
    return session[0] % KEEPS_ONE_OF == 0


def build(env: StreamExecutionEnvironment, setting: Setting) -> DataStream:
    numbers = env.from_source(
        NumberSequenceSource(0, setting.records - 1), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG()
    )
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(TimeOfNumber())
    return (
        numbers.assign_timestamps_and_watermarks(times)
        .map(visit_of, Types.TUPLE([Types.LONG(), Types.LONG()]))
        .key_by(lambda visit: visit[0], Types.LONG())
        .window(EventTimeSessionWindows.with_gap(Time.seconds(GAP_SECONDS)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .filter(is_kept)
    )


def expected(setting: Setting) -> list[Any]:
    """The answer in plain Python."""
    visits: dict[int, int] = {}
    for number in range(setting.records):
        user = visit_of(number)[0]
        visits[user] = visits.get(user, 0) + 1
    return [session for session in visits.items() if is_kept(session)]


if __name__ == "__main__":
    run_as_script(build)
