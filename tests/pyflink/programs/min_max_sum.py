"""min, max and sum of positions."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

pairs = env.from_collection(
    [("a", 3, 0.5), ("b", 1, 1.5), ("a", 1, 2.5)], Types.TUPLE([Types.STRING(), Types.INT(), Types.FLOAT()])
)
for name in ("sum", "min", "max", "min_by", "max_by"):
    getattr(pairs.key_by(lambda each: each[0]), name)(1).print(name)
    env.execute()
