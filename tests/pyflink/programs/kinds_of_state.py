"""Value, list, map, reducing and aggregating state: what an empty one holds, how it is filled and cleared."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.functions import AggregateFunction, ReduceFunction
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Sum(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class All(KeyedProcessFunction):
    def open(self, runtime_context):
        self.value = runtime_context.get_state(ValueStateDescriptor("value", Types.LONG()))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", Types.STRING()))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", Types.STRING(), Types.LONG()))
        self.sum = runtime_context.get_reducing_state(ReducingStateDescriptor("sum", Sum(), Types.LONG()))
        self.mean = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def shown(self):
        items = sorted(self.map.items())
        return (
            self.value.value(),
            list(self.list.get() or []),
            items,
            sorted(self.map.keys()),
            sorted(self.map.values()),
            self.map.is_empty(),
            self.sum.get(),
        )

    def process_element(self, value, ctx):
        number = value[1]
        if number == 0:
            for state in (self.value, self.list, self.map, self.sum, self.mean):
                state.clear()
            yield "cleared %s %s" % (value[0], self.shown())
            return
        yield "before %s %s" % (value, self.shown())
        self.value.update((self.value.value() or 0) + number)
        self.list.add(str(number))
        self.list.add_all(["x", "y"])
        self.map.put("last", number)
        self.map.put("a", number)
        self.map.put("b", -number)
        self.sum.add(number)
        self.mean.add(number)
        if number == 5:
            self.list.update(["only"])
            self.map.remove("a")
            self.map.remove("nothing")
        yield "after %s %s %s" % (value, self.shown(), self.mean.get())
        yield "has a: %s, last %s, none %s" % (self.map.contains("a"), self.map.get("last"), self.map.get("none"))
        yield "in: %s, %s, iterated %s" % ("a" in self.map, self.map["last"], sorted(self.map))


pairs = env.from_collection(
    [("a", 1), ("a", 2), ("b", 9), ("a", 5), ("a", 0), ("a", 7)], Types.TUPLE([Types.STRING(), Types.LONG()])
)
for line in pairs.key_by(lambda pair: pair[0]).process(All(), Types.STRING()).execute_and_collect():
    print(line)
