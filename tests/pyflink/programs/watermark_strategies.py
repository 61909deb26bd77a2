"""Watermark strategies: bounded, monotonous, none, with idleness, with alignment; what a function sees of them."""

from pyflink.common import Duration, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Add(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return record_timestamp + value[1]


class Timestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp()


class Last(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(2**63 - 1)

    def on_timer(self, timestamp, ctx):
        yield timestamp, ctx.timer_service().current_watermark()


PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
stream = env.from_collection([("a", 5), ("b", 2), ("c", 9)], PAIR)
for name, strategy in {
    "monotonous": WatermarkStrategy.for_monotonous_timestamps(),
    "bounded": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3)),
    "idle": WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(1)),
    "aligned": WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_watermark_alignment(
        "group", Duration.of_seconds(10), Duration.of_seconds(1)
    ),
    "none": WatermarkStrategy.no_watermarks(),
}.items():
    timed = stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(Second()))
    print(name, list(timed.process(Timestamps()).execute_and_collect()))
    print(name, list(timed.key_by(lambda each: 0).process(Last()).execute_and_collect()))
again = stream.assign_timestamps_and_watermarks(
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Add()))
print("twice", list(again.process(Timestamps()).execute_and_collect()))
mapped = again.map(lambda each: (each[0], 0)).filter(lambda each: each[0] != "b")
print("mapped", list(mapped.process(Timestamps()).execute_and_collect()))
