"""union of keyed streams."""

from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

left = env.from_collection([("a", 1), ("b", 2)]).key_by(lambda pair: pair[0])
right = env.from_collection([("a", 10), ("c", 30)]).key_by(lambda pair: pair[0])
both = left.union(right)
print(type(both).__name__)
print(sorted(both.map(lambda each: each).execute_and_collect()))
