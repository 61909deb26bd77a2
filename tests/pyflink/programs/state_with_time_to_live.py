"""Keyed state of all kinds, with a time to live that does not end meanwhile."""

from pyflink.common import Time, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import AggregateFunction, ReduceFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class Longest(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return max(value, accumulator)

    def get_result(self, accumulator):
        return "longest %d" % accumulator

    def merge(self, a, b):
        return max(a, b)


def living(descriptor):
    ttl = (
        StateTtlConfig.new_builder(Time.hours(1))
        .set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
        .set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)
        .build()
    )
    descriptor.enable_time_to_live(ttl)
    return descriptor


class All(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(living(ValueStateDescriptor("value", Types.INT())))
        self.list = runtime_context.get_list_state(living(ListStateDescriptor("list", Types.INT())))
        self.map = runtime_context.get_map_state(living(MapStateDescriptor("map", Types.INT(), Types.INT())))
        self.sum = runtime_context.get_reducing_state(living(ReducingStateDescriptor("sum", Sum(), Types.INT())))
        self.longest = runtime_context.get_aggregating_state(
            living(AggregatingStateDescriptor("longest", Longest(), Types.INT()))
        )

    def process_element(self, value, ctx):
        before = self.value.value(), list(self.list.get() or []), sorted(self.map.items()), self.sum.get()
        self.value.update(value[1])
        self.list.add(value[1])
        self.map.put(value[1] % 2, value[1])
        self.sum.add(value[1])
        self.longest.add(value[1])
        yield "%s before %s, now %s, %s" % (value, before, self.sum.get(), self.longest.get())
        if value[1] == 3:
            for state in (self.value, self.list, self.map, self.sum, self.longest):
                state.clear()
        if value[1] == 5:
            self.list.update([7, 8])
            self.map.remove(1)


pairs = env.from_collection(
    [("a", 1), ("a", 2), ("b", 9), ("a", 3), ("a", 5), ("a", 6)], Types.TUPLE([Types.STRING(), Types.INT()])
)
for line in pairs.key_by(lambda pair: pair[0]).process(All(), Types.STRING()).execute_and_collect():
    print(line)
