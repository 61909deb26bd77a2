"""Lists, dicts and arrays are keys."""

from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


words = env.from_collection([("a", 1), ("b", 2), ("a", 3)])
print(sorted(words.key_by(lambda pair: [pair[0]]).reduce(lambda x, y: (x[0], x[1] + y[1])).execute_and_collect()))
print(sorted(words.key_by(lambda pair: {"k": pair[0]}).reduce(lambda x, y: (x[0], x[1] + y[1])).execute_and_collect()))
print(sorted(words.key_by(lambda pair: (pair[0], [1])).reduce(lambda x, y: (x[0], x[1] + y[1])).execute_and_collect()))
