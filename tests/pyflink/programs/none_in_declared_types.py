"""None in declared types."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def show(value, type_info):
    stream = env.from_collection([0]).map(lambda _: value, output_type=type_info)
    try:
        print(type_info, list(stream.rebalance().map(lambda value: repr(value)).execute_and_collect()))
    except Exception:
        print(type_info, "fails")


show(Row(None, None), Types.ROW([Types.STRING(), Types.FLOAT()]))
