"""What does not fit a declared type."""

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


show("x", Types.INT())
show(1.7, Types.INT())
show(True, Types.INT())
show(5, Types.DOUBLE())
show(5, Types.BOOLEAN())
show("12", Types.LONG())
show(None, Types.STRING())
show([1], Types.STRING())
show(1, Types.TUPLE([Types.INT()]))
