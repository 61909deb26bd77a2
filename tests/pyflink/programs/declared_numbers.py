"""Whole numbers wrap as Java does, FLOAT is single precision."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def show(values, type_info):
    stream = env.from_collection(values, type_info).map(lambda value: repr(value))
    print(type_info, list(stream.execute_and_collect()))


show([1, 127, 128, -129, 300], Types.BYTE())
show([32767, 32768, -32769], Types.SHORT())
show([2147483647], Types.INT())
show([9223372036854775807], Types.LONG())
show([0.1, 1.5, 16777217.0, 1e300], Types.FLOAT())
show([0.1, 1e300], Types.DOUBLE())
show([True, False], Types.BOOLEAN())
