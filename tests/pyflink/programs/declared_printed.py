"""How elements of declared types are printed."""

import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def show(value, type_info):
    env.from_collection([0]).map(lambda _: value, output_type=type_info).print()
    env.execute()


show(0.1, Types.FLOAT())
show(0.1, Types.DOUBLE())
show(1e10, Types.DOUBLE())
show(100.0, Types.FLOAT())
show(True, Types.BOOLEAN())
show(("a", 1, 0.5), Types.TUPLE([Types.STRING(), Types.INT(), Types.FLOAT()]))
show(Row("a", 1), Types.ROW([Types.STRING(), Types.INT()]))
show([1, 2], Types.LIST(Types.INT()))
show({"a": 1}, Types.MAP(Types.STRING(), Types.INT()))
show(Decimal("1.50"), Types.BIG_DEC())
show(datetime.date(2024, 2, 29), Types.SQL_DATE())
