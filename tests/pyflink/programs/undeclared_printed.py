"""How elements without declared types are printed."""

from pyflink.common import Row
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

for value in (1, 0.1, "a", ("a", 1), ["a", 1], {"a": 1}, None, True, Row("a", 1), Row(x="a", y=1)):
    env.from_collection([value]).print()
    env.execute()
