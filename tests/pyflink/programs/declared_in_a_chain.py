"""Functions that run in one chain hand over what they return; its type holds where the chain ends."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

halves = env.from_collection([0.1]).map(lambda n: n, output_type=Types.FLOAT())
print(list(halves.map(lambda n: repr(n)).execute_and_collect()))
print(list(halves.rebalance().map(lambda n: repr(n)).execute_and_collect()))
print(list(halves.key_by(lambda n: n).map(lambda n: repr(n)).execute_and_collect()))
