"""Values other than True and False where a boolean is declared."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

for value in (0.5, 1.5, 256, -1, "x", [], float("inf")):
    stream = env.from_collection([0]).map(lambda _, value=value: value, output_type=Types.BOOLEAN())
    try:
        print(repr(value), list(stream.rebalance().map(lambda value: repr(value)).execute_and_collect()))
    except Exception:
        print(repr(value), "fails")
