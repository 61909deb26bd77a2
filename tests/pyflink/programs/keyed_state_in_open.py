"""Keyed state written in open()."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Writes(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))
        self.total.update(100)

    def process_element(self, value, ctx):
        before = self.total.value()
        self.total.update((before or 0) + value[1])
        yield f"{value[0]} {before}"


words = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
try:
    print(list(words.key_by(lambda pair: pair[0]).process(Writes()).execute_and_collect()))
except Exception:
    print("fails")
