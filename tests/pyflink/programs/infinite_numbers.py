"""Infinity and not-a-number where a whole number is declared, and where a floating-point number is."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def show(value, type_info):
    stream = env.from_collection([0]).map(lambda _: value, output_type=type_info)
    try:
        print(type_info, list(stream.rebalance().map(lambda value: repr(value)).execute_and_collect()))
    except Exception:
        print(type_info, "fails")


show(float("inf"), Types.LONG())
show(float("-inf"), Types.INT())
show(float("nan"), Types.SHORT())
show(float("inf"), Types.FLOAT())
show((1, float("inf")), Types.TUPLE([Types.INT(), Types.LONG()]))
show([float("nan")], Types.LIST(Types.LONG()))
