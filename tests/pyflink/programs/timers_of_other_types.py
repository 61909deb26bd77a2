"""Timers at times that are floats, as `time.time() * 1000` is."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timers(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1] + 10.7)
        ctx.timer_service().register_event_time_timer(value[1] + 10)
        ctx.timer_service().register_event_time_timer(value[1] + 20.5)
        ctx.timer_service().delete_event_time_timer(value[1] + 20)

    def on_timer(self, timestamp, ctx):
        yield "%r %r" % (timestamp, ctx.timestamp())


PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
timed = env.from_collection([("a", 1), ("a", 5)], PAIR).assign_timestamps_and_watermarks(strategy)
print(sorted(timed.key_by(lambda each: each[0]).process(Timers(), Types.STRING()).execute_and_collect()))
