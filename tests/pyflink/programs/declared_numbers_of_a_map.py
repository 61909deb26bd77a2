"""The declared type of a function holds for what comes next."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

numbers = env.from_collection([1, 200, 70000])


def show(type_info, function=lambda value: value):
    stream = numbers.map(function, output_type=type_info).rebalance().map(lambda value: repr(value))
    try:
        print(type_info, list(stream.execute_and_collect()))
    except Exception:
        print(type_info, "fails")


show(Types.BYTE())
show(Types.SHORT())
show(Types.INT())
show(Types.FLOAT())
show(Types.DOUBLE())
show(Types.BOOLEAN(), lambda value: value > 100)
