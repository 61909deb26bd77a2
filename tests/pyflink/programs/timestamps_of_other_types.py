"""Timestamps that an assigner gives as floats, as text, by yielding, or not at all."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Yields(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        yield 1


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield "%s %s-%s %d" % (key, context.window().start, context.window().end, len(list(elements)))


class Timestamps(ProcessFunction):
    def process_element(self, value, ctx):
        yield repr(ctx.timestamp())


def show(name, values, assigner):
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    timed = env.from_collection(values).assign_timestamps_and_watermarks(strategy)
    try:
        print(name, list(timed.process(Timestamps(), Types.STRING()).execute_and_collect()))
        windows = timed.key_by(lambda each: each[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        print(name, sorted(windows.process(Show(), Types.STRING()).execute_and_collect()))
    except Exception:
        print(name, "fails")


show("float", [("a", 1.7), ("a", 12.2), ("a", 25.0)], Second())
show("text", [("a", "12")], Second())
show("none", [("a", None)], Second())
show("generator", [("a", 1)], Yields())
