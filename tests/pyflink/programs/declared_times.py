"""Dates, times, timestamps and instants."""

import datetime

from pyflink.common import Types
from pyflink.common.time import Instant
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)


def show(value, type_info):
    stream = env.from_collection([0]).map(lambda _: value, output_type=type_info)
    print(type_info, list(stream.rebalance().map(lambda value: repr(value)).execute_and_collect()))


show(datetime.date(2024, 2, 29), Types.SQL_DATE())
show(datetime.time(12, 30, 15, 250000), Types.SQL_TIME())
show(datetime.datetime(2024, 2, 29, 12, 30, 15, 250123), Types.SQL_TIMESTAMP())
instants = env.from_collection([0]).map(lambda _: Instant.of_epoch_milli(1234567), output_type=Types.INSTANT())
print(list(instants.rebalance().map(lambda value: value.to_epoch_milli()).execute_and_collect()))
