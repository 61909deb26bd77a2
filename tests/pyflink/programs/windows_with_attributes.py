"""Windows that functions compare, hash and give attributes to."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TimeWindow, TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Assigns(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        window.label = "%s-%d" % (key, window.start)
        yield "%s %s %d" % (window.label, window == TimeWindow(window.start, window.end), window.max_timestamp())


window = TimeWindow(0, 10)
window.note = "mine"
print(
    window.start,
    window.note,
    window.max_timestamp(),
    window == TimeWindow(0, 10),
    hash(window) == hash(TimeWindow(0, 10)),
)
print(window, TimeWindow(0, 6).intersects(TimeWindow(6, 9)), TimeWindow(0, 6).cover(TimeWindow(4, 9)))
stream = env.from_collection([("a", 1), ("b", 12), ("a", 13)], Types.TUPLE([Types.STRING(), Types.INT()]))
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
windows = (
    stream.assign_timestamps_and_watermarks(strategy)
    .key_by(lambda each: each[0])
    .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
)
print(sorted(windows.process(Assigns(), Types.STRING()).execute_and_collect()))
