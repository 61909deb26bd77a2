"""Visits to a site: a session ends when a user was away for more than ten minutes."""

from __future__ import annotations

from penstock.common import Time, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.window import EventTimeSessionWindows

MINUTE = 60_000
VISITS = [("ann", 0), ("bob", 3), ("ann", 4), ("ann", 12), ("bob", 20), ("ann", 40), ("ann", 41)]


class VisitTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * MINUTE


class Describe(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield f"{key}, minute {window.start // MINUTE} to {window.end // MINUTE}: pages viewed: {len(list(elements))}"


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
(
    env.from_collection(VISITS)
    .assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(VisitTime())
    )
    .key_by(lambda visit: visit[0])
    .window(EventTimeSessionWindows.with_gap(Time.minutes(10)))
    .process(Describe())
    .print()
)
env.execute("session windows")
