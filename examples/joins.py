"""Two ways to join streams: within windows, and by the distance in time of two elements."""

from __future__ import annotations

from penstock.common import Time, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import ProcessJoinFunction, StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows

VIEWS = [("ann", "lamp", 1), ("bob", "desk", 3), ("ann", "book", 12)]
ORDERS = [("ann", "lamp", 4), ("bob", "desk", 11), ("ann", "book", 19)]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2] * 1000


class Together(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield f"{left[0]} ordered the {right[1]} {right[2] - left[2]} s after viewing the {left[1]}"


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
by_second = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
views = env.from_collection(VIEWS).assign_timestamps_and_watermarks(by_second)
orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(by_second)
(
    views.join(orders)
    .where(lambda view: view[0])
    .equal_to(lambda order: order[0])
    .window(TumblingEventTimeWindows.of(Time.seconds(10)))
    .apply(lambda view, order: f"{view[0]} viewed the {view[1]} and ordered the {order[1]}")
    .print("same ten seconds")
)
(
    views.key_by(lambda view: view[0])
    .interval_join(orders.key_by(lambda order: order[0]))
    .between(Time.seconds(0), Time.seconds(7))
    .process(Together())
    .print("within seven seconds")
)
env.execute("joins")
