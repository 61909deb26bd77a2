"""Report when a machine has been silent for 30 seconds: a timer that every new reading postpones."""

from __future__ import annotations

from penstock.common import WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from penstock.datastream.state import ValueStateDescriptor

READINGS = [("press", 0), ("saw", 5), ("press", 20), ("press", 40), ("saw", 75), ("press", 120)]


class ReadingTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class TellSilence(KeyedProcessFunction):
    def open(self, runtime_context):
        self._deadline = runtime_context.get_state(ValueStateDescriptor("deadline"))

    def process_element(self, value, ctx):
        if self._deadline.value() is not None:
            ctx.timer_service().delete_event_time_timer(self._deadline.value())
        self._deadline.update(ctx.timestamp() + 30_000)
        ctx.timer_service().register_event_time_timer(self._deadline.value())

    def on_timer(self, timestamp, ctx):
        self._deadline.clear()
        yield f"second {timestamp // 1000}: the {ctx.get_current_key()} has been silent for 30 seconds"


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.get_config().set_auto_watermark_interval(0)  # time moves with every reading
(
    env.from_collection(READINGS)
    .assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ReadingTime())
    )
    .key_by(lambda reading: reading[0])
    .process(TellSilence())
    .print()
)
env.execute("timers")
