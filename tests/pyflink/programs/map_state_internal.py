"""MapState.get_internal_state and the other accessors."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Counts(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.STRING(), Types.INT()))
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

    def process_element(self, value, ctx):
        state = self.counts.get_internal_state()
        state.put(value[1], (state.get(value[1]) or 0) + 1)
        self.total.update((self.total.value() or 0) + 1)
        yield f"{value[0]} {sorted(self.counts.items())} {self.total.value()} {self.counts.is_empty()}"


words = env.from_collection([("a", "x"), ("a", "y"), ("b", "x"), ("a", "x")])
words.key_by(lambda pair: pair[0]).process(Counts()).print()
env.execute()
