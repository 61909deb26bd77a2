"""Processing-time timers: registered twice, deleted, registered again by a timer."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Timers(KeyedProcessFunction):
    """At the end of a bounded input, timers that are not due yet are dropped."""

    def open(self, runtime_context):
        self.fired = runtime_context.get_list_state(ListStateDescriptor("fired", Types.STRING()))

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        now = timers.current_processing_time()
        yield "%s %s" % (ctx.get_current_key(), now > 1_600_000_000_000)
        timers.register_processing_time_timer(now + 3_600_000)
        timers.register_processing_time_timer(now + 3_600_000)
        timers.delete_processing_time_timer(now + 3_600_000)
        timers.delete_processing_time_timer(now + 7_200_000)

    def on_timer(self, timestamp, ctx):
        yield "never"


class AtTheEnd(KeyedProcessFunction):
    """A bounded input ends with the last watermark, at which every event-time timer fires."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(2**62)
        ctx.timer_service().register_event_time_timer(5)

    def on_timer(self, timestamp, ctx):
        yield "%s %d %s" % (ctx.get_current_key(), timestamp, str(ctx.time_domain()))


letters = env.from_collection(["b", "a", "b"], Types.STRING()).key_by(lambda letter: letter)
print(list(letters.process(Timers(), Types.STRING()).execute_and_collect()))
print(sorted(letters.process(AtTheEnd(), Types.STRING()).execute_and_collect()))
