"""Late elements: dropped, in a side output, or within the allowed lateness; watermarks after every element."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import OutputTag, StreamExecutionEnvironment
from pyflink.datastream.functions import KeyedProcessFunction, ProcessWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Ages(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp(), ctx.timer_service().current_watermark() > -(2**62)


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield "%s %s" % (key, [value for _, value in elements])


LATE = OutputTag("late", Types.TUPLE([Types.STRING(), Types.INT()]))
stream = env.from_collection([("a", 1), ("a", 25), ("a", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
timed = stream.assign_timestamps_and_watermarks(strategy).key_by(lambda each: each[0])
print([each[:2] for each in timed.process(Ages()).execute_and_collect()])
windows = (
    timed.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    .allowed_lateness(5)
    .side_output_late_data(LATE)
    .process(Show(), Types.STRING())
)
windows.get_side_output(LATE).print("late")
windows.print("windows")
env.execute()
