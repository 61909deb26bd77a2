"""Dicts declared MAP."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

stream = env.from_collection([{"a": 1, "b": 300}, {}], Types.MAP(Types.STRING(), Types.INT()))
print([sorted(each.items()) for each in stream.execute_and_collect()])
mapped = env.from_collection([1, 2]).map(lambda n: {n: str(n)}, output_type=Types.MAP(Types.LONG(), Types.STRING()))
print(list(mapped.rebalance().map(lambda each: repr(each)).execute_and_collect()))
