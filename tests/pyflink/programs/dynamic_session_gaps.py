"""Session windows whose gap each element gives, and their merging."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    TumblingEventTimeWindows,
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Third(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return element[2]


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        yield "%s [%d,%d) %s" % (key, window.start, window.end, [each[1] for each in elements])


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, a, b):
        return a + b


def keyed(values, tolerance=0):
    stream = env.from_collection(values, Types.TUPLE([Types.STRING(), Types.INT(), Types.INT()]))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    return stream.assign_timestamps_and_watermarks(strategy).key_by(lambda each: each[0])


VALUES = [("a", 1, 5), ("a", 4, 2), ("a", 6, 30), ("b", 7, 1), ("b", 8, 1), ("a", 40, 3), ("b", 90, 5)]
dynamic = EventTimeSessionWindows.with_dynamic_gap(Third())
print(sorted(keyed(VALUES).window(dynamic).process(Show(), Types.STRING()).execute_and_collect()))
counts = keyed(VALUES).window(dynamic).aggregate(Count(), accumulator_type=Types.INT(), output_type=Types.INT())
print(sorted(counts.execute_and_collect()))
largest = keyed(VALUES).window(dynamic).reduce(lambda a, b: a if a[1] > b[1] else b)
print(sorted(largest.execute_and_collect()))
print(dynamic.is_event_time(), TumblingEventTimeWindows.of(Time.seconds(1)).is_event_time())
try:
    list(keyed([("a", 1, 0)]).window(dynamic).process(Show(), Types.STRING()).execute_and_collect())
    print("a gap of nothing is taken")
except Exception:
    print("a gap of nothing fails")
