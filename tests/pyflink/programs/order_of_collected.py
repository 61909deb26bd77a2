"""Elements of a bounded collection come in their order."""

from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

print(list(env.from_collection(range(10)).execute_and_collect()))
print(list(env.from_collection([3, 1, 2]).map(lambda n: n * 2).filter(lambda n: n > 2).execute_and_collect()))
with env.from_collection(range(5)).execute_and_collect() as results:
    print(next(results), next(results))
print(env.from_collection(range(10)).execute_and_collect(limit=3))
