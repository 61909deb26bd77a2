"""Rules that can change while the job runs, known to all subtasks through broadcast state.

In BATCH mode the whole broadcast stream is read before the other one, so that the result is always the same.
"""

from __future__ import annotations

from penstock.datastream import BroadcastProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor

LIMITS = MapStateDescriptor("limits")


class Check(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        account, amount = value
        limit = ctx.get_broadcast_state(LIMITS).get(account)
        if limit is not None and amount > limit:
            yield f"{account}: {amount} is above its limit of {limit}"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(LIMITS).put(value[0], value[1])


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
env.set_runtime_mode(RuntimeExecutionMode.BATCH)
limits = env.from_collection([("ann", 100), ("bob", 50), ("ann", 200)]).broadcast(LIMITS)
transfers = env.from_collection([("ann", 150), ("bob", 60), ("cid", 1000), ("ann", 250)])
transfers.connect(limits).process(Check()).print()
env.execute("broadcast state")
