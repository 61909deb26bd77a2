"""Arrays and lists of declared types."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def show(values, type_info):
    stream = env.from_collection([1]).map(lambda _: values, output_type=type_info)
    print(type_info, list(stream.rebalance().map(lambda value: repr(value)).execute_and_collect()))


show([1, 2, 3], Types.PRIMITIVE_ARRAY(Types.INT()))
show([0.1, 0.2], Types.PRIMITIVE_ARRAY(Types.FLOAT()))
show(b"abc", Types.PRIMITIVE_ARRAY(Types.BYTE()))
show(["a", None], Types.BASIC_ARRAY(Types.STRING()))
show([1, None], Types.BASIC_ARRAY(Types.INT()))
show([("a", 1)], Types.OBJECT_ARRAY(Types.TUPLE([Types.STRING(), Types.INT()])))
show([1, 2], Types.LIST(Types.INT()))
