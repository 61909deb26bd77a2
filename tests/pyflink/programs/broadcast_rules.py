"""A keyed stream connected with broadcast rules."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)

RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Keyed(KeyedBroadcastProcessFunction):
    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.INT()))

    def process_element(self, value, ctx):
        self.sum.update((self.sum.value() or 0) + value[1])
        yield "%s %d %s" % (ctx.get_current_key(), self.sum.value(), "seen")

    def process_broadcast_element(self, value, ctx):
        state = ctx.get_broadcast_state(RULES)
        state.put(value[0], (state.get(value[0]) or 0) + value[1])
        yield "rule %s=%d of %s" % (value[0], state.get(value[0]), sorted(state.keys()))


class Plain(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        try:
            ctx.get_broadcast_state(RULES).put("x", 1)
            yield "written"
        except Exception:
            yield "refused"

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        yield "%d rules" % len(list(ctx.get_broadcast_state(RULES).items()))


PAIR = Types.TUPLE([Types.STRING(), Types.INT()])
rules = env.from_collection([("min", 1), ("max", 9), ("min", 2)], PAIR)
orders = env.from_collection([("ada", 3), ("bob", 4), ("ada", 5)], PAIR)
keyed = orders.key_by(lambda order: order[0]).connect(rules.broadcast(RULES)).process(Keyed(), Types.STRING())
for line in sorted(keyed.execute_and_collect()):
    print(line)
plain = orders.connect(rules.broadcast(RULES)).process(Plain(), Types.STRING())
for line in sorted(plain.execute_and_collect()):
    print(line)
