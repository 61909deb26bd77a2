"""Triggers that fire repeatedly: event time at intervals, counts of a session, own triggers with state."""

from pyflink.common import Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
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


class WithState(Trigger):
    """Fires at a count that it keeps in state; merges by adding."""

    COUNT = ReducingStateDescriptor("count", lambda a, b: a + b, Types.LONG())
    LAST = ValueStateDescriptor("last", Types.LONG())

    def on_element(self, element, timestamp, window, ctx):
        count = ctx.get_partitioned_state(self.COUNT)
        count.add(1)
        if count.get() >= 3:
            count.clear()
            return TriggerResult.FIRE_AND_PURGE
        ctx.register_event_time_timer(window.max_timestamp())
        return TriggerResult.CONTINUE

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.FIRE if time == window.max_timestamp() else TriggerResult.CONTINUE

    def can_merge(self):
        return True

    def on_merge(self, window, ctx):
        ctx.merge_partitioned_state(self.COUNT)
        ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window, ctx):
        ctx.get_partitioned_state(self.COUNT).clear()
        ctx.delete_event_time_timer(window.max_timestamp())


VALUES = [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("a", 11), ("b", 12), ("a", 13), ("a", 14), ("a", 31)]


def elements():
    stream = env.from_collection(VALUES, Types.TUPLE([Types.STRING(), Types.INT()]))
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    return stream.assign_timestamps_and_watermarks(strategy).key_by(lambda each: each[0])


tens = TumblingEventTimeWindows.of(Time.milliseconds(10))
sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(5))
for name, windowed in {
    "event time": elements().window(tens).trigger(EventTimeTrigger.create()),
    "purging event time": elements().window(tens).trigger(PurgingTrigger.of(EventTimeTrigger.create())),
    "own": elements().window(tens).trigger(WithState()),
    "own sessions": elements().window(sessions).trigger(WithState()),
    "counted sessions": elements().window(sessions).trigger(CountTrigger.of(2)),
    "never": elements().window(GlobalWindows.create()).trigger(NeverTrigger()),
    "global by default": elements().window(GlobalWindows.create()),
    "continuous": elements().window(tens).trigger(ContinuousEventTimeTrigger.of(Time.milliseconds(100))),
}.items():
    print(name, sorted(windowed.process(Show(), Types.STRING()).execute_and_collect()))
