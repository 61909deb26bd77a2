"""Scalars of NumPy where a type is declared: they become plain values."""

import numpy as np
from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

for value, declared in (
    (np.int64(3), Types.INT()),
    (np.float32(2.5), Types.DOUBLE()),
    (np.float32(2.5), Types.INT()),
    (np.bool_(True), Types.BOOLEAN()),
    ((np.int32(7), np.float64(0.5)), Types.TUPLE([Types.LONG(), Types.FLOAT()])),
    (np.str_("x"), Types.STRING()),
):
    stream = env.from_collection([0]).map(lambda _, value=value: value, output_type=declared)
    print(declared, list(stream.rebalance().map(lambda value: repr(value)).execute_and_collect()))
