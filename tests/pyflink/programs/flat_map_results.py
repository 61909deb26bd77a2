"""What flat_map may return."""

from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

numbers = env.from_collection([1, 2])
print(list(numbers.flat_map(lambda n: [n] * n).execute_and_collect()))
print(list(numbers.flat_map(lambda n: "ab").execute_and_collect()))
try:
    print(list(numbers.flat_map(lambda n: n).execute_and_collect()))
except Exception:
    print("fails")
