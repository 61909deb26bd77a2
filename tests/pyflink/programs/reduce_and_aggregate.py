"""reduce of keyed streams and windows, aggregate functions with and without a window function."""

from pyflink.common import Types
from pyflink.datastream import AggregateFunction, ProcessWindowFunction, ReduceFunction, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Larger(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 if value1[1] >= value2[1] else value2


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


class WithKey(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield "%s: %s" % (key, list(elements))


def keyed():
    return env.from_collection([("a", 3), ("b", 1), ("a", 5), ("a", 4), ("b", 2)], PAIR).key_by(lambda each: each[0])


print(list(keyed().reduce(Larger()).execute_and_collect()))
print(sorted(keyed().count_window(2).reduce(Larger()).execute_and_collect()))
print(sorted(keyed().count_window(2).reduce(Larger(), WithKey(), Types.STRING()).execute_and_collect()))
means = (
    keyed()
    .count_window(2)
    .aggregate(Mean(), accumulator_type=Types.TUPLE([Types.INT(), Types.INT()]), output_type=Types.DOUBLE())
)
print(sorted(means.execute_and_collect()))
named = (
    keyed()
    .count_window(2)
    .aggregate(Mean(), WithKey(), accumulator_type=Types.TUPLE([Types.INT(), Types.INT()]), output_type=Types.STRING())
)
print(sorted(named.execute_and_collect()))
print(sorted(keyed().count_window(3, 1).reduce(lambda a, b: (a[0], a[1] + b[1])).execute_and_collect()))
