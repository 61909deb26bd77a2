"""Keyed state in map, flat map and filter functions of a keyed stream, and in window functions."""

from pyflink.common import Types
from pyflink.datastream import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ReducingStateDescriptor, ValueStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Numbered(MapFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return "%s #%d" % (value[0], self.count.value())


class Pairs(FlatMapFunction):
    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.INT()))

    def flat_map(self, value):
        last = self.last.value()
        if last is not None:
            yield "%s %d>%d" % (value[0], last, value[1])
        self.last.update(value[1])


class Rising(FilterFunction):
    def open(self, runtime_context):
        self.most = runtime_context.get_reducing_state(ReducingStateDescriptor("most", max, Types.INT()))

    def filter(self, value):
        most = self.most.get()
        self.most.add(value[1])
        return most is None or value[1] > most


class Windows(ProcessWindowFunction):
    """Per-window state lives with the window, global state across the windows of a key."""

    DESCRIPTOR = ValueStateDescriptor("seen", Types.INT())

    def process(self, key, context, elements):
        size = len(list(elements))
        whole = context.global_state().get_state(self.DESCRIPTOR)
        own = context.window_state().get_state(ValueStateDescriptor("own", Types.INT()))
        whole.update((whole.value() or 0) + size)
        own.update((own.value() or 0) + size)
        yield "%s: %d of %d" % (key, own.value(), whole.value())

    def clear(self, context):
        context.window_state().get_state(ValueStateDescriptor("own", Types.INT())).clear()


PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
values = [("a", 1), ("b", 5), ("a", 3), ("a", 2), ("b", 6), ("a", 4)]
keyed = env.from_collection(values, PAIR).key_by(lambda each: each[0])
print(list(keyed.map(Numbered(), Types.STRING()).execute_and_collect()))
print(list(keyed.flat_map(Pairs(), Types.STRING()).execute_and_collect()))
print(list(keyed.filter(Rising()).execute_and_collect()))
print(sorted(keyed.count_window(2).process(Windows(), Types.STRING()).execute_and_collect()))
