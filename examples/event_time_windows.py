"""Count clicks in windows of ten seconds of event time, and keep clicks that come too late.

A click may come five seconds out of order. One that comes even later, but within another five seconds, corrects the
result of its window (allowed lateness); what comes later still goes to a side output.
"""

from __future__ import annotations

from penstock.common import Duration, Time, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import OutputTag, StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows

CLICKS = [("home", 1), ("home", 9), ("cart", 4), ("home", 16), ("home", 7), ("home", 26), ("cart", 3), ("cart", 14)]
TOO_LATE = OutputTag("too late")


class ClickTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.get_config().set_auto_watermark_interval(0)  # a watermark after every click, so that the output is always the same
clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(
    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_assigner(ClickTime())
)
counts = (
    clicks.map(lambda click: (click[0], 1))
    .key_by(lambda pair: pair[0])
    .window(TumblingEventTimeWindows.of(Time.seconds(10)))
    .allowed_lateness(5000)
    .side_output_late_data(TOO_LATE)
    .reduce(lambda a, b: (a[0], a[1] + b[1]))
)
counts.print("count")
counts.get_side_output(TOO_LATE).print("too late")
env.execute("event-time windows")
