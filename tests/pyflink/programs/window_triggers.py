"""Windows with triggers: counts, purging, one of one's own."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import (
    CountTrigger,
    GlobalWindows,
    PurgingTrigger,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Show(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield "%s %s" % (key, [value for _, value in elements])


class OnEven(Trigger):
    """Fires at every even value, and at the window's end."""

    def on_element(self, element, timestamp, window, ctx):
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.FIRE if element[1] % 2 == 0 else TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE_AND_PURGE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        pass

    def clear(self, window, ctx):
        ctx.delete_event_time_timer(window.max_timestamp())


def elements():
    type_info = Types.TUPLE([Types.STRING(), Types.INT()])
    stream = env.from_collection([("a", 1), ("a", 2), ("b", 3), ("a", 4), ("a", 11), ("b", 12), ("a", 13)], type_info)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    return stream.assign_timestamps_and_watermarks(strategy).key_by(lambda each: each[0])


tens = TumblingEventTimeWindows.of(Time.milliseconds(10))
for name, windowed in {
    "count": elements().window(tens).trigger(CountTrigger.of(2)),
    "purging": elements().window(tens).trigger(PurgingTrigger.of(CountTrigger.of(2))),
    "global": elements().window(GlobalWindows.create()).trigger(CountTrigger.of(3)),
    "own": elements().window(tens).trigger(OnEven()),
}.items():
    print(name, sorted(windowed.process(Show(), Types.STRING()).execute_and_collect()))
