"""Big integers and decimals."""

from decimal import Decimal

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def show(values, type_info):
    stream = env.from_collection([0]).flat_map(lambda _: iter(values), output_type=type_info)
    try:
        print(type_info, list(stream.rebalance().map(lambda value: repr(value)).execute_and_collect()))
    except Exception:
        print(type_info, "fails")


show([Decimal("1.50"), Decimal("12345678901234567890.123456789")], Types.BIG_DEC())
show([1], Types.BIG_DEC())
