"""LONG wraps at 64 bits."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

numbers = env.from_collection([2**63 - 1, -(2**63), 5])
stream = numbers.map(lambda value: value + 1, output_type=Types.LONG()).rebalance().map(lambda value: repr(value))
try:
    print(list(stream.execute_and_collect()))
except Exception:
    print("fails")
