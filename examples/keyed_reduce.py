"""Rolling results per key: every order gives the new total of its customer."""

from __future__ import annotations

from penstock.datastream import StreamExecutionEnvironment

ORDERS = [("ann", 10), ("bob", 5), ("ann", 7), ("cid", 1), ("bob", 20)]

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
by_customer = env.from_collection(ORDERS).key_by(lambda order: order[0])
by_customer.reduce(lambda total, order: (total[0], total[1] + order[1])).print("total")
by_customer.max(1).print("largest")  # sum, min, max, min_by and max_by are reduces that have a name
env.execute("keyed reduce")
