"""A program that reaches the environment's own configuration through PyFlink's Java handle."""

from pyflink.common import Configuration, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.util.java_utils import get_j_env_configuration

env = StreamExecutionEnvironment.get_execution_environment()
config = Configuration(j_configuration=get_j_env_configuration(env._j_stream_execution_environment))
config.set_integer("python.fn-execution.bundle.size", 10)
config.set_string("pipeline.max-parallelism", "16")
env.set_parallelism(1)
env.from_collection([1, 2, 3], Types.INT()).map(lambda number: number * 10, Types.INT()).print()
env.execute()
again = Configuration(j_configuration=get_j_env_configuration(env._j_stream_execution_environment))
print(again.get_integer("python.fn-execution.bundle.size", 0), again.get_string("pipeline.max-parallelism", ""))
print(env.get_max_parallelism())
