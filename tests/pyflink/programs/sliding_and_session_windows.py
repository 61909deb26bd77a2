"""Sliding and session windows and windows with an offset."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield "%s [%d,%d) %s" % (key, window.start, window.end, sorted(value for _, value in elements))


def keyed(values):
    stream = env.from_collection(values, Types.TUPLE([Types.STRING(), Types.INT()]))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    return stream.assign_timestamps_and_watermarks(strategy).key_by(lambda each: each[0])


ORDERED = [("a", 1), ("a", 6), ("b", 7), ("a", 18), ("b", 31)]
sliding = keyed(ORDERED).window(SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)))
print(sorted(sliding.process(Show(), Types.STRING()).execute_and_collect()))
sessions = keyed(ORDERED).window(EventTimeSessionWindows.with_gap(Time.milliseconds(6)))
print(sorted(sessions.process(Show(), Types.STRING()).execute_and_collect()))
tumbling = keyed(ORDERED).window(TumblingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(3)))
print(sorted(tumbling.process(Show(), Types.STRING()).execute_and_collect()))
