"""Event-time timers of a keyed process function: registered, deleted, fired in order, with watermarks."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Timers(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(value[1] + 10)
        ctx.timer_service().register_event_time_timer(value[1] + 10)
        if value[1] % 2 == 0:
            ctx.timer_service().delete_event_time_timer(value[1] + 10)
        yield "%s at %s" % (value, ctx.timestamp())

    def on_timer(self, timestamp, ctx):
        yield "timer %d of %s, %d seen" % (timestamp, ctx.get_current_key(), self.count.value())
        if timestamp == 13:
            ctx.timer_service().register_event_time_timer(100)
            self.count.clear()
            self.count.update(-1)


stream = env.from_collection(
    [("a", 1), ("b", 2), ("a", 3), ("b", 5), ("a", 40)], Types.TUPLE([Types.STRING(), Types.INT()])
)
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
timed = stream.assign_timestamps_and_watermarks(strategy).key_by(lambda each: each[0])
for line in sorted(timed.process(Timers(), Types.STRING()).execute_and_collect()):
    print(line)
