"""Two connected streams: co_map, co_flat_map, a keyed co-process function that shares state."""

from pyflink.common import Types
from pyflink.datastream import CoFlatMapFunction, CoMapFunction, KeyedCoProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


class Names(CoMapFunction):
    def map1(self, value):
        return "left %d" % value

    def map2(self, value):
        return "right %s" % value


class Letters(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from range(value)

    def flat_map2(self, value):
        if value != "b":
            yield len(value)


class Seen(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

    def process_element1(self, value, ctx):
        self.seen.add("1:%d" % value[1])
        yield ctx.get_current_key(), sorted(self.seen.get())

    def process_element2(self, value, ctx):
        self.seen.add("2:%d" % value[1])
        yield ctx.get_current_key(), sorted(self.seen.get())


left = env.from_collection([1, 2, 3], Types.INT())
right = env.from_collection(["a", "b", "cc"], Types.STRING())
print(sorted(left.connect(right).map(Names(), Types.STRING()).execute_and_collect()))
print(sorted(left.connect(right).flat_map(Letters(), Types.INT()).execute_and_collect()))

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
one = env.from_collection([("a", 1), ("b", 2)], PAIR).key_by(lambda each: each[0])
two = env.from_collection([("a", 3), ("c", 4)], PAIR).key_by(lambda each: each[0])
seen = list(one.connect(two).process(Seen()).execute_and_collect())
print(sorted(key for key, _ in seen), max(seen, key=lambda each: len(each[1])))
